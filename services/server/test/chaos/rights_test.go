// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/system"
)

// rightTakenAway takes a person's right on a space away while events of it stream to them. Once the taking away is
// answered, nothing that is written later reaches them, neither live nor when they come back and catch up; and nothing
// of the space follows the event that told them.
func rightTakenAway(t *testing.T, w *world) {
	ctx := t.Context()
	person := w.team.People[0]
	var space struct {
		ID string `json:"id"`
	}
	if err := w.Owner.Call(ctx, http.MethodPost, "/spaces", map[string]any{"name": "Closed"}, &space); err != nil {
		t.Fatal(err)
	}
	channel, err := w.AddChannel(ctx, space.ID, "closed")
	if err != nil {
		t.Fatal(err)
	}
	var leaks []string
	heard := 0
	for round := range plan.rightsRounds {
		r := &rightsRound{w: w, person: person, channel: channel, spaceID: space.ID}
		r.run(t, round)
		leaks, heard = append(leaks, r.leaks...), heard+len(r.heard)
	}
	if heard == 0 {
		t.Error("the person heard nothing while they had the right")
	}
	for _, l := range leaks {
		t.Error(l)
	}
	w.report(t, "right_taken_away", map[string]any{"rounds": plan.rightsRounds, "heard": heard}, leaks, nil)
}

type rightsRound struct {
	w       *world
	person  *system.Client
	channel system.Channel
	spaceID string

	mu sync.Mutex
	// late holds what was sent after the right was gone.
	late  map[string]bool
	heard []string
	// told is the position of the event that told the person of the loss.
	told    int64
	revoked bool
	leaks   []string
}

func (r *rightsRound) run(t *testing.T, round int) {
	t.Helper()
	r.late = map[string]bool{}
	grant, err := r.w.Grant(t.Context(), r.person.ID, "space", r.spaceID, "read")
	if err != nil {
		t.Fatal(err)
	}
	socket, err := system.Dial(t.Context(), r.person, system.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	reading.Go(func() { _ = socket.Read(ctx, r.hear) })
	writing, stop := context.WithCancel(ctx)
	var writers sync.WaitGroup
	writers.Go(func() { r.write(writing, round) })
	if !waitFor(patience, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.heard) >= 5 }) {
		t.Error("the person hears nothing with the right")
	}
	r.mu.Lock()
	r.revoked = true // events of the loss may overtake the answer
	r.mu.Unlock()
	if err := r.w.Revoke(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.late["begun"] = true
	r.mu.Unlock()
	time.Sleep(300 * time.Millisecond) // the writers go on for the person not to hear
	stop()
	writers.Wait()
	if !waitFor(patience, func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.told > 0 }) {
		t.Error("the person was not told of the loss")
	}
	at := socket.Position()
	cancel()
	reading.Wait()
	socket.Close()
	r.comeBack(t, at)
}

// comeBack catches up from before the loss: what was missed is filtered by the rights of now.
func (r *rightsRound) comeBack(t *testing.T, at system.Position) {
	t.Helper()
	from := system.Position{Epoch: at.Epoch, Cursor: max(r.told-20, 0)}
	socket, err := system.Dial(t.Context(), r.person, system.SocketOptions{From: &from})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_ = socket.Read(ctx, func(e system.Event) {
		if id := clientID(e); id != "" && r.isOurs(e) {
			r.leak("event %d of the space was caught up with after the right was gone", e.Seq)
		}
	})
}

func (r *rightsRound) write(ctx context.Context, round int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id := system.NewID()
		r.mu.Lock()
		if r.late["begun"] {
			r.late[id] = true
		}
		r.mu.Unlock()
		if _, err := r.w.Owner.Send(context.WithoutCancel(ctx), r.channel.ThreadID, id, fmt.Sprintf("round %d, %d", round, n)); err != nil {
			r.leak("the owner cannot write: %v", err)
		}
	}
}

func (r *rightsRound) hear(e system.Event) {
	r.mu.Lock()
	revoked := r.revoked
	if e.Type == "access.changed" && revoked {
		r.told = e.Seq
	}
	told := r.told
	r.mu.Unlock()
	id := clientID(e)
	if id == "" || !r.isOurs(e) {
		return
	}
	r.mu.Lock()
	r.heard = append(r.heard, id)
	late := r.late[id]
	r.mu.Unlock()
	if late {
		r.leak("a message that was sent after the right was gone arrived as %d", e.Seq)
	}
	if told > 0 {
		r.leak("event %d of the space followed the news of the loss at %d", e.Seq, told)
	}
}

func (r *rightsRound) leak(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaks = append(r.leaks, fmt.Sprintf(format, args...))
}

func (r *rightsRound) isOurs(e system.Event) bool {
	var data struct {
		Message struct {
			ThreadID string `json:"thread_id"`
		} `json:"message"`
	}
	return json.Unmarshal(e.Data, &data) == nil && data.Message.ThreadID == r.channel.ThreadID
}

// clientID is the client ID of the message that an event tells of, or nothing.
func clientID(e system.Event) string {
	var data struct {
		Message struct {
			ClientMsgID string `json:"client_msg_id"`
		} `json:"message"`
	}
	if e.Type != "message.created" || json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return data.Message.ClientMsgID
}
