// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/ledger"
	"github.com/OWNER/bothy/services/server/test/system"
)

// sizes are how much a scenario does.
type sizes struct {
	size               string
	rate               int
	listeners, writers int
	kills              int
	betweenKills       time.Duration
	databaseKills      int
	rightsRounds       int
	slowMessages       int
	agentRounds        int
}

// patience bounds every wait for something that has to happen.
const patience = 30 * time.Second

// recovery bounds the wait for a database that was killed: before it replays its log it flushes the file system, which
// others may keep busy.
const recovery = 2 * time.Minute

// world is one installation that all scenarios of a run share: each begins and ends with a server that works.
type world struct {
	*system.Installation
	team   *system.Team
	server *system.Server
	seed   uint64
}

// TestChaos runs the scenarios one after the other, because each has the machine's attention for itself.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	w := setUp(t)
	t.Run("server killed", func(t *testing.T) { serverKilled(t, w) })
	t.Run("database killed", func(t *testing.T) { databaseKilled(t, w) })
	t.Run("right taken away", func(t *testing.T) { rightTakenAway(t, w) })
	t.Run("slow socket", func(t *testing.T) { slowSocket(t, w) })
	t.Run("agent killed", func(t *testing.T) { agentKilled(t, w) })
}

func setUp(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "bothy-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- PostgreSQL runs as another user
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary, err := system.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{seed: seed(t)}
	if w.Installation, err = system.Install(t.Context(), system.Options{Dir: dir, Binary: binary, Config: settings()}); err != nil {
		t.Fatal(err)
	}
	if w.server, err = w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of the server:\n%s", w.server.Log())
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	const channels = 3
	if w.team, err = w.Populate(t.Context(), plan.listeners+plan.writers, channels); err != nil {
		t.Fatal(err)
	}
	return w
}

// settings let one address do what many would, and give the supervision of the database as many restarts as the plan
// has kills. A write that takes too long ends a connection in the middle of a frame, where no close code can be sent; so
// that a slow test machine does not come to that, it has time, and the bound of the queue is what is tested.
func settings() map[string]string {
	keys := map[string]string{"database.embedded.max_restarts": "50", "gateway.write_timeout": "60s"}
	for _, class := range []string{"public_auth", "auth_session", "sensitive", "read", "write", "message", "admin", "gateway_connect", "gateway_connect_principal", "sync_catchup", "invoke", "agent_runtime", "run_update"} {
		keys["ratelimit.class."+class+".burst"] = "100000"
		keys["ratelimit.class."+class+".per_minute"] = "100000"
	}
	return keys
}

// seed is BOTHY_CHAOS_SEED, or a new one, which the report names.
func seed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("BOTHY_CHAOS_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return rand.Uint64() >> 32
}

// random gives the choices of a scenario.
func (w *world) random() *rand.Rand { return rand.New(rand.NewPCG(w.seed, 0)) } // #nosec G404 -- choices of a test

func (w *world) listeners() []*system.Client { return w.team.People[:plan.listeners] }

// authors write over connections of their own, so that what happens to one set of connections is not seen by others.
func (w *world) authors() []*system.Client {
	h := system.NewHTTPClient(plan.rate)
	h.Timeout = 10 * time.Second
	var out []*system.Client
	for _, p := range w.team.People[plan.listeners:] {
		out = append(out, p.WithHTTP(h))
	}
	return out
}

// scene is a running load with its ledger and listeners.
type scene struct {
	w       *world
	book    *ledger.Ledger
	threads []string
	stop    context.CancelFunc
	writing sync.WaitGroup
	hearing sync.WaitGroup
	silence context.CancelFunc

	mu sync.Mutex
	// answers counts how the server answered a try, by status; 0 is no answer.
	answers map[int]int
	// latest is the longest time from a message's first try to its arrival, per listener.
	latest map[string]time.Duration
	sentAt map[string]time.Time
	faults []string
}

// begin connects the listeners and then starts to write.
func (w *world) begin(t *testing.T) *scene {
	t.Helper()
	ctx, silence := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &scene{w: w, book: ledger.New(), silence: silence, answers: map[int]int{}, latest: map[string]time.Duration{}, sentAt: map[string]time.Time{}}
	for n := range 2 {
		c, err := w.AddChannel(t.Context(), w.team.SpaceID, fmt.Sprintf("%s-%d", system.NewID()[24:], n))
		if err != nil {
			t.Fatal(err)
		}
		s.threads = append(s.threads, c.ThreadID)
	}
	s.listen(ctx, t)
	writing, stop := context.WithCancel(ctx)
	s.stop = stop
	// A scenario that gives up leaves nothing running.
	t.Cleanup(func() { stop(); silence() })
	s.writing.Go(func() { s.write(writing) })
	return s
}

func (s *scene) listen(ctx context.Context, t *testing.T) {
	t.Helper()
	connected := make(chan struct{}, plan.listeners)
	for n, p := range s.w.listeners() {
		name := fmt.Sprintf("listener %d", n)
		s.book.Listen(name)
		var once sync.Once
		s.hearing.Go(func() {
			system.Follow(ctx, p, nil, func(system.Position) { once.Do(func() { connected <- struct{}{} }) }, func(e system.Event) { s.hear(name, e) })
		})
	}
	for range s.w.listeners() {
		select {
		case <-connected:
		case <-time.After(patience):
			t.Fatal("a listener does not get connected")
		}
	}
}

func (s *scene) hear(name string, e system.Event) {
	if e.Type != "message.created" {
		return
	}
	var data struct {
		Message struct {
			ClientMsgID string `json:"client_msg_id"`
			ThreadID    string `json:"thread_id"`
		} `json:"message"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		s.fault("%s got an event that cannot be read: %v", name, err)
		return
	}
	s.mu.Lock()
	at, ours := s.sentAt[data.Message.ClientMsgID]
	if ours {
		s.latest[name] = max(s.latest[name], e.At.Sub(at))
	}
	s.mu.Unlock()
	if ours {
		s.book.Hear(name, ledger.Heard{Seq: e.Seq, ClientID: data.Message.ClientMsgID})
	}
}

func (s *scene) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

// write sends at the rate of the plan. Every message is repeated under its client ID until the server has taken or
// refused it.
func (s *scene) write(ctx context.Context) {
	authors := s.w.authors()
	tick := time.NewTicker(time.Second / time.Duration(plan.rate))
	defer tick.Stop()
	var sending sync.WaitGroup
	defer sending.Wait()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		author, thread, id := authors[n%len(authors)], s.threads[n%len(s.threads)], system.NewID()
		s.book.Intend(id, thread, fmt.Sprintf("message %d", n))
		s.mu.Lock()
		s.sentAt[id] = time.Now()
		s.mu.Unlock()
		sending.Go(func() { s.send(author, thread, id, fmt.Sprintf("message %d", n)) })
	}
}

// send goes on after the writing has ended, so that no message is left in doubt.
func (s *scene) send(author *system.Client, thread, id, text string) {
	const shortest, longest = 20 * time.Millisecond, 320 * time.Millisecond
	pause := shortest
	ctx, cancel := context.WithTimeout(context.Background(), 2*recovery)
	defer cancel()
	for ctx.Err() == nil {
		s.book.Sent(id)
		m, err := author.Send(ctx, thread, id, text)
		status := http.StatusOK
		if err != nil {
			status = system.StatusOf(err)
		}
		s.mu.Lock()
		s.answers[status]++
		s.mu.Unlock()
		switch {
		case err == nil:
			if err := s.book.Acknowledge(id, m.ID, m.ThreadSeq); err != nil {
				s.fault("%v", err)
			}
			return
		case status == http.StatusInternalServerError:
			s.fault("the server failed: %v", err)
		case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
			s.book.Refuse(id)
			s.fault("a message was refused: %v", err)
			return
		}
		time.Sleep(pause) // between two tries of a client
		pause = min(2*pause, longest)
	}
	s.fault("message %s found no answer in time", id)
}

// end stops writing, lets the listeners hear the rest, and compares everything.
func (s *scene) end(t *testing.T, scenario string, facts map[string]any) {
	t.Helper()
	s.stop()
	s.writing.Wait()
	threads := map[string][]ledger.Stored{}
	count := 0
	for _, thread := range s.threads {
		list, err := s.w.Owner.Messages(t.Context(), thread)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			threads[thread] = append(threads[thread], ledger.Stored{MessageID: m.ID, ClientID: m.ClientMsgID, Content: m.Content, ThreadSeq: m.ThreadSeq})
		}
		count += len(list)
	}
	waitFor(patience, func() bool {
		for n := range s.w.listeners() {
			if s.book.HeardBy(fmt.Sprintf("listener %d", n)) < count {
				return false
			}
		}
		return true
	})
	s.silence()
	s.hearing.Wait()
	findings := append(s.book.Check(threads), s.faults...)
	for _, f := range findings {
		t.Error(f)
	}
	counts := s.book.Counts()
	if counts[ledger.Acknowledged] == 0 {
		t.Error("nothing was written")
	}
	facts["stored"], facts["answers"], facts["ledger"] = count, s.answers, counts
	t.Logf("%d stored, answers %v, %v", count, s.answers, facts)
	s.w.report(t, scenario, facts, findings, s.book.Entries())
}

// waitFor asks until it is so or the time is over.
func waitFor(limit time.Duration, so func() bool) bool {
	const pause = 5 * time.Millisecond
	for deadline := time.Now().Add(limit); !so(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// report writes what happened to .data/chaos, or to the folder that BOTHY_CHAOS_OUT names.
func (w *world) report(t *testing.T, scenario string, facts map[string]any, findings []string, entries []ledger.Entry) {
	t.Helper()
	folder := os.Getenv("BOTHY_CHAOS_OUT")
	if folder == "" {
		_, file, _, _ := runtime.Caller(0)
		folder = filepath.Join(filepath.Dir(file), "..", "..", "..", "..", ".data", "chaos")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if findings == nil {
		findings = []string{}
	}
	out := map[string]any{
		"schema": 1, "scenario": scenario, "size": plan.size, "seed": w.seed, "at": time.Now().UTC(), "rate": plan.rate,
		"listeners": plan.listeners, "findings": findings, "ledger_entries": entries,
	}
	maps.Copy(out, facts)
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, scenario+".json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
