// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	gosync "sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

var errGone = errors.New("peer is gone")

// pipe is a transport in memory. The client side sends and receives whole frames.
type pipe struct {
	in     chan []byte
	out    chan []byte
	closed chan struct{}
	once   gosync.Once
	mu     gosync.Mutex
	code   int
	reason string
	// stuck makes writes hang until their context ends: a peer that does not read.
	stuck bool
	// onClose is called with the first close.
	onClose func()
}

func newPipe() *pipe {
	return &pipe{in: make(chan []byte, 64), out: make(chan []byte, 4096), closed: make(chan struct{})}
}

func (p *pipe) Read(ctx context.Context) ([]byte, error) {
	select {
	case b := <-p.in:
		return b, nil
	case <-p.closed:
		return nil, errGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipe) Write(ctx context.Context, b []byte) error {
	p.mu.Lock()
	stuck := p.stuck
	p.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return context.DeadlineExceeded
	}
	select {
	case p.out <- b:
		return nil
	case <-p.closed:
		return errGone
	case <-ctx.Done():
		return context.DeadlineExceeded
	}
}

func (p *pipe) Close(code int, reason string) {
	p.mu.Lock()
	if p.code == 0 {
		p.code, p.reason = code, reason
	}
	p.mu.Unlock()
	p.once.Do(func() {
		if p.onClose != nil {
			p.onClose()
		}
		close(p.closed)
	})
}

func (p *pipe) closeCode() (int, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code, p.reason
}

// world is the server around a gateway: a log, rights, and everything else that it asks.
type world struct {
	mu      gosync.Mutex
	log     []eventlog.Record
	rights  map[ids.ID]map[ids.ID]bool // principal -> channel
	stale   map[ids.ID]bool
	actors  map[string]actor.Actor
	ended   map[ids.ID]bool
	holder  map[ids.ID]ids.ID
	acked   map[ids.ID]int64
	threads map[ids.ID]ids.ID
	minSeq  int64
	refuse  error
	limit   map[string]int
	// limitPerKey bounds each bucket of a class, where limit bounds all of them together.
	limitPerKey, taken map[string]int
	events             []string
	codes              []int
}

func newWorld() *world {
	return &world{
		rights: map[ids.ID]map[ids.ID]bool{}, stale: map[ids.ID]bool{}, actors: map[string]actor.Actor{}, ended: map[ids.ID]bool{},
		holder: map[ids.ID]ids.ID{}, acked: map[ids.ID]int64{}, threads: map[ids.ID]ids.ID{}, minSeq: 1, limit: map[string]int{}, taken: map[string]int{},
	}
}

func (w *world) Authenticate(_ context.Context, c actor.Credentials) (actor.Actor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.actors[c.Authorization]
	if !ok || w.ended[a.ID] {
		return actor.Actor{}, errs.New(errs.CodeUnauthenticated, "no")
	}
	return a, nil
}

func (w *world) Revalidate(_ context.Context, a actor.Actor) (actor.Actor, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[a.ID] {
		return actor.Actor{}, errs.New(errs.CodeUnauthenticated, "ended").WithReason("token_revoked")
	}
	return a, nil
}

func (w *world) Authorize(ctx context.Context, action authorize.Action, r authorize.Resource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuse != nil {
		return w.refuse
	}
	if r.Kind == authorize.ResourceThread && !w.rights[actor.From(ctx).ID][r.ChannelID] {
		return errs.NotFound()
	}
	authorize.Note(ctx, authorize.Check{Action: action, Resource: r, Allowed: true})
	return nil
}

func (w *world) Allowed(context.Context, authorize.Action, authorize.Resource) (bool, error) {
	return true, nil
}

func (w *world) Scope(context.Context, authorize.Action) (authorize.Scope, error) {
	return authorize.Scope{}, nil
}

func (w *world) Observe(context.Context, authorize.Observed) {}

func (w *world) Admit(principal ids.ID, _ authorize.Action, r authorize.Resource, _ int64) authorize.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stale[principal]:
		return authorize.Unknown
	case r.Kind == authorize.ResourceSelf:
		return authorize.Admitted
	case w.rights[principal][r.ChannelID]:
		return authorize.Admitted
	default:
		return authorize.Denied
	}
}

func (w *world) Fill(_ context.Context, principal ids.ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stale, principal)
	return nil
}
func (w *world) Release(ids.ID) {}
func (w *world) Visible(principal ids.ID) (authorize.Scope, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return authorize.Scope{PermissionVersion: 1, Channels: slices.Collect(maps.Keys(w.rights[principal]))}, !w.stale[principal]
}
func (w *world) Located(r authorize.Resource) (channel, space ids.ID, known bool) {
	return r.ChannelID, space, !r.ChannelID.IsZero()
}
func (w *world) ChannelOf(t ids.ID) (ids.ID, bool) { c, ok := w.threads[t]; return c, ok }

func (w *world) Check(_ context.Context, _ ids.ID, cursor, target int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case cursor > target:
		return errs.New(errs.CodeResyncRequired, "load").WithReason("future")
	case cursor < w.minSeq-1:
		return errs.New(errs.CodeResyncRequired, "load").WithReason("retention")
	}
	return nil
}

// pageSpan keeps pages small, so that catching up takes several.
const pageSpan = 3

func (w *world) Page(ctx context.Context, recipient ids.ID, cursor, target int64) (sync.Page, error) {
	if err := w.Fill(ctx, recipient); err != nil {
		return sync.Page{}, err
	}
	w.mu.Lock()
	through := min(cursor+pageSpan, target)
	rows := slices.Clone(w.log[cursor:through])
	w.mu.Unlock()
	page := sync.Page{FromSeq: cursor + 1, ThroughSeq: through}
	for _, e := range rows {
		if sync.Admit(w, recipient, e) == authorize.Admitted {
			page.Events = append(page.Events, e)
		}
	}
	return page, nil
}

func (w *world) Personal(_ context.Context, principal ids.ID, cursor, target int64, limit int) ([]eventlog.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []eventlog.Record
	for _, e := range w.log {
		if e.Seq > cursor && e.Seq <= target && e.PrincipalID == principal && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (w *world) Name(context.Context, ids.ID) (handle, displayName string, err error) {
	return "ana", "Ana", nil
}

func (w *world) TakeOver(_ context.Context, agent, session ids.ID, head int64) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holder[agent] = session
	if _, ok := w.acked[agent]; !ok {
		w.acked[agent] = head
	}
	return w.acked[agent], nil
}

func (w *world) Save(_ context.Context, agent, session ids.ID, acked int64) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder[agent] != session {
		return false, nil
	}
	w.acked[agent] = max(w.acked[agent], acked)
	return true, nil
}

func (w *world) Heartbeat(context.Context, ids.ID, agents.Heartbeat) error { return nil }

func (w *world) Prepare(_ context.Context, _ ids.ID, _ string, id ids.ID, _ json.RawMessage) (runs.Prepared, error) {
	payload, err := json.Marshal(map[string]any{"prepared": id})
	return runs.Prepared{Payload: payload}, err
}

func (w *world) Update(ctx context.Context, body json.RawMessage) (json.RawMessage, error) {
	authorize.Note(ctx, authorize.Check{Action: authorize.ActionRunUpdate, Allowed: true})
	return body, nil
}

func (w *world) ActiveInChannels(context.Context, []ids.ID, ids.ID, int) ([]runs.SnapshotItem, error) {
	return nil, nil
}
func (w *world) Snapshots(context.Context, ids.ID) ([]runs.SnapshotItem, error) { return nil, nil }
func (w *world) Snapshot(_ context.Context, run ids.ID) (runs.SnapshotItem, error) {
	return runs.SnapshotItem{ID: run, Payload: json.RawMessage(`{"snapshot":{}}`)}, nil
}

func (w *world) Take(class, key string) (bool, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, bounded := w.limitPerKey[class]; bounded {
		w.taken[class+key]++
		return w.taken[class+key] <= n, time.Second
	}
	left, bounded := w.limit[class]
	if !bounded {
		return true, 0
	}
	if left == 0 {
		return false, time.Second
	}
	w.limit[class]--
	return true, 0
}

func (w *world) Op(string, string) {}
func (w *world) Event(t string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, t)
}
func (w *world) Closed(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.codes = append(w.codes, code)
}

type fakeThreads struct {
	chat.Threads
	world *world
}

func (f fakeThreads) Info(_ context.Context, id ids.ID) (chat.Thread, error) {
	channel, ok := f.world.threads[id]
	if !ok {
		return chat.Thread{}, errs.NotFound()
	}
	return chat.Thread{ID: id, ChannelID: channel}, nil
}

// append adds an event to the log and passes it on, as the tail does.
func (w *world) append(g *Gateway, e eventlog.Record) eventlog.Record {
	w.mu.Lock()
	e.Seq = int64(len(w.log)) + 1
	e.EventID = ids.New()
	if e.Payload == nil {
		e.Payload = json.RawMessage(`{}`)
	}
	w.log = append(w.log, e)
	w.mu.Unlock()
	g.Deliver(e)
	return e
}

func testConfig() Config {
	return Config{
		HeartbeatInterval: 30 * time.Second, HeartbeatGrace: 15 * time.Second, IdentifyTimeout: 10 * time.Second, ReauthLead: time.Minute,
		ResumeWindow: 2 * time.Minute, RestartSpread: 5 * time.Second, WriteTimeout: 10 * time.Second, RevalidateEvery: 30 * time.Second,
		TypingTTL: 8 * time.Second, CoalesceInterval: 150 * time.Millisecond, AckInterval: time.Second, ConsumerWindow: 3, QueueFrames: 64,
		QueueBytes: 1 << 20, MaxFrameBytes: 1 << 18, MaxSessions: 100, MaxConnections: 100, MaxPerPrincipal: 2, MaxUnidentified: 10, MaxDepth: 32,
	}
}

func newGateway(w *world) *Gateway {
	g := New(testConfig(), Deps{
		Instance: Instance{ID: ids.New(), SyncEpoch: ids.New(), ServerVersion: "1.0.0", URL: "http://localhost/api/v1/gateway"}, Authenticator: w,
		Authorizer: w, Delivery: w, CatchUp: w, Principals: w, Threads: fakeThreads{world: w}, Presence: w, Consumers: w, RunDelivery: w,
		RunUpdates: w, RunReads: w, Limiter: w, Nonce: func(context.Context) string { return "nonce" },
		Ready: func(context.Context) (bool, error) { return true, nil }, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Observer: w,
	})
	g.Start(0)
	return g
}

// client is the other end of a pipe.
type client struct {
	t    testing.TB
	pipe *pipe
	done chan struct{}
}

func connect(t testing.TB, g *Gateway) *client {
	t.Helper()
	ip := netip.MustParseAddr("192.0.2.1")
	if got := g.Admit(ip); got != RefusedNone {
		t.Fatalf("refused: %v", got)
	}
	c := &client{t: t, pipe: newPipe(), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		g.Serve(context.Background(), c.pipe, ip)
	}()
	if f := c.next(); f.Op != "hello" {
		t.Fatalf("first frame %q", f.Op)
	}
	return c
}

type gotFrame struct {
	Op string          `json:"op"`
	ID string          `json:"id"`
	D  json.RawMessage `json:"d"`
}

func (c *client) next() gotFrame {
	c.t.Helper()
	select {
	case b := <-c.pipe.out:
		var f gotFrame
		if err := json.Unmarshal(b, &f); err != nil {
			c.t.Fatalf("frame %s: %v", b, err)
		}
		return f
	case <-time.After(20 * time.Second):
		c.t.Fatal("no frame")
		return gotFrame{}
	}
}

func (c *client) send(text string) { c.pipe.in <- []byte(text) }

// expect skips frames until one of the op.
func (c *client) expect(op string) gotFrame {
	c.t.Helper()
	for range 200 {
		if f := c.next(); f.Op == op {
			return f
		}
	}
	c.t.Fatalf("no frame %s", op)
	return gotFrame{}
}

func (c *client) identify(token string, extra string) gotFrame {
	c.t.Helper()
	c.send(`{"op":"identify","id":"1","d":{"token":"` + token + `","protocol_version":1,"client":{"name":"t","version":"1","platform":"test"}` + extra + `}}`)
	return c.expect("ready")
}

// drop loses the connection as a network does.
func (c *client) drop() {
	c.pipe.once.Do(func() { close(c.pipe.closed) })
	<-c.done
}

func (c *client) closedWith(code int) {
	c.t.Helper()
	select {
	case <-c.done:
	case <-time.After(20 * time.Second):
		c.t.Fatal("the connection stays open")
	}
	if got, reason := c.pipe.closeCode(); got != code {
		c.t.Fatalf("closed with %d %s, want %d", got, reason, code)
	}
}

var c2ip = netip.MustParseAddr("192.0.2.2")
