// SPDX-License-Identifier: Apache-2.0

package bothytest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

type frame struct {
	Op string          `json:"op"`
	ID string          `json:"id,omitempty"`
	D  json.RawMessage `json:"d,omitempty"`
}

// socket is one connection of a client.
type socket struct {
	ws      *websocket.Conn
	session string
	agent   bool
	ready   bool
	sent    int64
	wake    chan struct{}
}

// append adds an entry to the log, behind a gap as other people's events leave it. The caller holds the lock.
func (s *Server) append(e entry) int64 {
	const gap = 3
	e.envelope.Seq = s.head() + 1 + int64(len(s.log)%gap)
	s.log = append(s.log, e)
	for c := range s.sockets {
		c.poke()
	}
	s.notify()
	return e.envelope.Seq
}

func (c *socket) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (s *Server) head() int64 {
	if len(s.log) == 0 {
		return 0
	}
	return s.log[len(s.log)-1].envelope.Seq
}

// Publish adds an event that everybody may see, and returns its position.
func (s *Server) Publish(eventType string, data any) (seq int64, eventID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := bothy.NewID()
	return s.append(entry{envelope: api.EventEnvelope{
		EventID: id, Type: eventType, OccurredAt: time.Now().UTC(), Actor: api.EventActor{Kind: api.ActorKindSystem}, Data: encode(data),
	}}), id
}

// DropConnections cuts every connection without a word.
func (s *Server) DropConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		_ = c.ws.CloseNow()
	}
}

// CloseConnections closes every connection with a code.
func (s *Server) CloseConnections(code int, reason string) {
	s.mu.Lock()
	open := make([]*socket, 0, len(s.sockets))
	for c := range s.sockets {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		_ = c.ws.Close(websocket.StatusCode(code), reason)
	}
}

// RepeatEvents sends everything again to open connections of agents, as after a lost acknowledgement.
func (s *Server) RepeatEvents() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		if c.agent {
			c.sent = min(c.sent, s.acked)
			c.poke()
		}
	}
}

// ForgetAcks takes back what was acknowledged, as after a crash of the server before it was saved.
func (s *Server) ForgetAcks(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = min(s.acked, seq)
}

// NewEpoch begins the log anew, as after a restore: with the same events under other numbers.
func (s *Server) NewEpoch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.acked = bothy.NewID(), 0
	for i := range s.log {
		s.log[i].envelope.Seq = int64(i + 1)
	}
}

// Ephemeral sends an event that is stored nowhere to all people.
func (s *Server) Ephemeral(eventType string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		if c.ready && !c.agent {
			_ = c.send(context.Background(), "ephemeral", "", api.EphemeralEnvelope{
				EventID: bothy.NewID(), Type: eventType, OccurredAt: time.Now().UTC(), Actor: api.EventActor{Kind: api.ActorKindSystem}, Data: encode(data),
			})
		}
	}
}

// Reauthenticate asks every person to prove itself anew.
func (s *Server) Reauthenticate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		if c.ready && !c.agent {
			_ = c.send(context.Background(), "reauth_required", "", api.ReauthRequired{DeadlineMs: 60000, Reason: api.ReauthRequiredReasonExpiring, DpopNonce: s.nonce()})
		}
	}
}

// Connected counts the connections that are ready.
func (s *Server) Connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for c := range s.sockets {
		if c.ready {
			n++
		}
	}
	return n
}

func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	fault, deaf := s.fault(r), s.muted
	s.mu.Unlock()
	switch {
	case deaf:
		cut(w)
		return
	case fault != nil:
		http.Error(w, "no", fault.Status)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"bothy.v1"}})
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	if ws.Subprotocol() != "bothy.v1" {
		s.mu.Lock()
		s.broken("gateway without the subprotocol bothy.v1")
		s.mu.Unlock()
		return
	}
	c := &socket{ws: ws, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	s.sockets[c] = true
	hello := api.Hello{
		ProtocolVersion: 1, ServerVersion: "1.0.0", InstanceID: s.InstanceID, SyncEpoch: s.epoch, HeartbeatIntervalMs: s.HeartbeatInterval.Milliseconds(),
		IdentifyTimeoutMs: 10000, MaxFrameBytes: 256 << 10, DpopNonce: s.nonce(), ServerTime: time.Now().UTC(),
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.sockets, c)
		if s.holder == c {
			s.holder = nil
		}
		s.notify()
		s.mu.Unlock()
	}()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if c.send(ctx, "hello", "", hello) != nil {
		return
	}
	s.converse(ctx, cancel, c)
}

func (c *socket) send(ctx context.Context, op, id string, d any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, encode(frame{Op: op, ID: id, D: encode(d)}))
}

func (s *Server) converse(ctx context.Context, cancel context.CancelFunc, c *socket) {
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	started := false
	defer func() {
		if !started {
			close(done)
		}
	}()
	for {
		_, text, err := c.ws.Read(ctx)
		if err != nil {
			return
		}
		var f frame
		if err := strict(text, &f); err != nil {
			s.mu.Lock()
			s.broken("frame %s: %v", text, err)
			s.mu.Unlock()
			_ = c.ws.Close(4001, "malformed")
			return
		}
		if code, reason := s.take(ctx, c, f); code != 0 {
			_ = c.ws.Close(websocket.StatusCode(code), reason)
			return
		}
		s.mu.Lock()
		ready := c.ready
		s.mu.Unlock()
		if ready && !started {
			started = true
			go func() {
				defer close(done)
				s.deliver(ctx, c)
			}()
		}
	}
}

// take answers one frame; a code ends the connection.
func (s *Server) take(ctx context.Context, c *socket, f frame) (code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.notify()
	wrong := func(err error) (int, string) {
		s.broken("frame %s: %v", f.Op, err)
		return 4001, "malformed"
	}
	if !c.ready && f.Op != "identify" && f.Op != "resume" {
		s.broken("frame %s before identify", f.Op)
		return 4003, "identify_timeout"
	}
	if err := complete(f); err != nil {
		return wrong(err)
	}
	switch f.Op {
	case "identify":
		var d api.Identify
		if err := strict(f.D, &d); err != nil {
			return wrong(err)
		}
		return s.identify(ctx, c, f.ID, d)
	case "resume":
		var d api.Resume
		if err := strict(f.D, &d); err != nil {
			return wrong(err)
		}
		return s.resume(ctx, c, f.ID, d)
	case "heartbeat":
		var d api.HeartbeatFrame
		if err := strict(f.D, &d); err != nil {
			return wrong(err)
		}
		if d.Agent != nil {
			s.heartbeats = append(s.heartbeats, *d.Agent)
		}
		_ = c.send(ctx, "heartbeat_ack", f.ID, api.HeartbeatAckFrame{ServerTime: time.Now().UTC(), IntervalMs: s.HeartbeatInterval.Milliseconds(), Cursor: c.sent})
	case "ack":
		var d api.Ack
		if err := strict(f.D, &d); err != nil {
			return wrong(err)
		}
		if d.Seq > c.sent {
			s.broken("ack of %d, sent was %d", d.Seq, c.sent)
		}
		s.acked = max(s.acked, d.Seq)
	case "reauth":
		var d api.Reauth
		if err := strict(f.D, &d); err != nil {
			return wrong(err)
		}
		if d.Dpop == nil || !s.proven(*d.Dpop, "GET", s.http.URL+"/api/v1/gateway", d.Token) {
			return 4004, "authentication_failed"
		}
	case "focus":
		var d api.Focus
		if err := strict(f.D, &d); err != nil {
			return wrong(err)
		}
		s.focus = d.ThreadIds
	default:
		s.broken("unknown op %s", f.Op)
		return 4002, "unknown_op"
	}
	return 0, ""
}

func (s *Server) identify(ctx context.Context, c *socket, id string, d api.Identify) (code int, reason string) {
	ready := api.Ready{SessionID: bothy.NewID(), SyncEpoch: s.epoch, HeadSeq: s.head(), Cursor: s.head(), ResumeWindowMs: 60000}
	c.session = ready.SessionID
	if strings.HasPrefix(d.Token, "bothy_agent_") {
		if d.Token != s.Token {
			return 4004, "authentication_failed"
		}
		if d.Cursor != nil || d.Dpop != nil {
			s.broken("identify of an agent with cursor or proof")
		}
		s.hold(c)
		ready.Cursor = s.acked
		ready.Principal = api.ReadyPrincipal{ID: s.AgentID, Kind: api.PrincipalKindAgent, Handle: "scout", DisplayName: "Scout"}
	} else {
		if d.Dpop == nil || !s.proven(*d.Dpop, "GET", s.http.URL+"/api/v1/gateway", d.Token) {
			return 4004, "authentication_failed"
		}
		if d.Cursor != nil {
			if d.SyncEpoch == nil || *d.SyncEpoch != s.epoch || *d.Cursor > s.head() {
				return 4007, "cursor_out_of_range:epoch"
			}
			ready.Cursor = *d.Cursor
		}
		s.focus = nil
		if d.Focus != nil {
			s.focus = d.Focus.ThreadIds
		}
		ready.Principal = api.ReadyPrincipal{ID: s.PersonID, Kind: api.PrincipalKindPerson, Handle: "ana", DisplayName: "Ana"}
	}
	c.sent, c.ready = ready.Cursor, true
	if ready.Cursor < ready.HeadSeq && !c.agent {
		ready.Catchup = &api.CatchupRange{FromSeq: ready.Cursor + 1, ToSeq: ready.HeadSeq}
	}
	_ = c.send(ctx, "ready", id, ready)
	if ready.Catchup != nil {
		s.catchUp(ctx, c)
	}
	return 0, ""
}

func (s *Server) resume(ctx context.Context, c *socket, id string, d api.Resume) (code int, reason string) {
	if d.SyncEpoch != s.epoch {
		return 4007, "cursor_out_of_range:epoch"
	}
	agent := d.Token == s.Token
	if !agent && (d.Dpop == nil || !s.proven(*d.Dpop, "GET", s.http.URL+"/api/v1/gateway", d.Token)) {
		return 4004, "authentication_failed"
	}
	ready := api.Resumed{SessionID: d.SessionID, SyncEpoch: s.epoch, HeadSeq: s.head(), Cursor: d.Cursor, ResumeWindowMs: 60000, Focus: api.FocusState{ThreadIds: []string{}}}
	c.session = d.SessionID
	if agent {
		s.hold(c)
		ready.Cursor = s.acked
	}
	c.sent, c.ready = ready.Cursor, true
	_ = c.send(ctx, "resumed", id, ready)
	if !agent && ready.Cursor < ready.HeadSeq {
		s.catchUp(ctx, c)
	}
	return 0, ""
}

// hold makes the connection the only one of the agent.
func (s *Server) hold(c *socket) {
	c.agent = true
	if old := s.holder; old != nil && old != c {
		go func() { _ = old.ws.Close(4015, "consumer_taken") }()
	}
	s.holder = c
}

// catchUp sends what a person missed in pages of two.
func (s *Server) catchUp(ctx context.Context, c *socket) {
	const size = 2
	missed := slices.DeleteFunc(slices.Clone(s.log), func(e entry) bool { return e.agent || e.envelope.Seq <= c.sent })
	to := s.head()
	for page := range slices.Chunk(missed, size) {
		d := api.CatchupPage{FromSeq: c.sent + 1, ToSeq: to, ThroughSeq: page[len(page)-1].envelope.Seq}
		for _, e := range page {
			d.Events = append(d.Events, e.envelope)
		}
		if c.send(ctx, "catchup.page", "", d) != nil {
			return
		}
		c.sent = d.ThroughSeq
	}
	c.sent = to
	_ = c.send(ctx, "catchup.complete", "", api.CatchupComplete{Cursor: to})
}

// deliver sends live events until the connection ends.
func (s *Server) deliver(ctx context.Context, c *socket) {
	for {
		s.mu.Lock()
		for _, e := range s.log {
			if e.envelope.Seq <= c.sent || e.agent != c.agent {
				continue
			}
			envelope := e.envelope
			if e.agent {
				envelope = s.prepare(envelope)
			}
			c.sent = envelope.Seq
			if c.send(ctx, "dispatch", "", envelope) != nil {
				s.mu.Unlock()
				return
			}
		}
		s.mu.Unlock()
		select {
		case <-c.wake:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) snapshot(*http.Request, []byte) (int, any) {
	return http.StatusOK, api.Snapshot{HeadSeq: s.head(), PageSeq: s.head(), SyncEpoch: s.epoch}
}

func (s *Server) events(r *http.Request, _ []byte) (int, any) {
	after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	if err != nil || r.URL.Query().Get("sync_epoch") != s.epoch {
		return http.StatusGone, problem(http.StatusGone, api.ErrorCodeResyncRequired, "")
	}
	out := api.EventPage{SyncEpoch: s.epoch, HeadSeq: s.head(), ThroughSeq: s.head(), Complete: true}
	for _, e := range s.log {
		if !e.agent && e.envelope.Seq > after {
			out.Events = append(out.Events, e.envelope)
		}
	}
	return http.StatusOK, out
}
