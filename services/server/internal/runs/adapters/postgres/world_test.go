// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/runs/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/runs/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// world is one channel with a person and an agent, and fakes of the other modules that
// refuse what the real ones would refuse.
type world struct {
	t       testing.TB
	db      *pgtest.DB
	clock   *clocktest.Fake
	units   *pg.Units
	service *app.Service
	updates *httpapi.Updates

	person, agent, channel, space, thread, instance ids.ID

	mu        sync.Mutex
	levels    map[ids.ID]authorize.Level
	agents    map[ids.ID]agents.Agent
	channels  map[ids.ID]chat.Channel
	messages  map[ids.ID]messaging.Message
	outcomes  map[ids.ID][]messaging.TriggerOutcome
	seq       int64
	events    []eventlog.Event
	ephemeral []eventlog.Ephemeral
	audit     []auditing.Entry
	jobs      map[string]time.Time
	key       *ecdsa.PrivateKey
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, db: pgtest.New(t, pgtest.WithMigrations("0001", "0008"), pgtest.AsApp()), clock: clocktest.New(start), person: ids.New(), agent: ids.New(),
		channel: ids.New(), space: ids.New(), thread: ids.New(), instance: ids.New(), levels: map[ids.ID]authorize.Level{},
		agents: map[ids.ID]agents.Agent{}, channels: map[ids.ID]chat.Channel{}, messages: map[ids.ID]messaging.Message{},
		outcomes: map[ids.ID][]messaging.TriggerOutcome{}, jobs: map[string]time.Time{},
	}
	w.units = w.db.UnitsAt(txn.NewRegistry(), w.clock)
	var err error
	if w.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	w.levels[w.person], w.levels[w.agent] = authorize.LevelTrigger, authorize.LevelWrite
	w.addAgent(w.agent)
	w.channels[w.channel] = chat.Channel{
		ID: w.channel, SpaceID: w.space, Kind: "text", Name: "general", MainThreadID: w.thread, TriggerRule: chat.TriggerMention, ConfigVersion: 1,
		AgentSources: "any",
	}
	w.service = app.New(app.Deps{
		Config: config(), Clock: w.clock, Units: w.units, Authorizer: authorizer{w}, Rights: rights{w}, Audit: recorder{w}, Log: w, Publisher: w,
		Instance: installation{w}, Keys: keys{w}, Structure: structure{w}, Threads: threads{w: w}, Messages: messagesFake{w}, Agents: agentsFake{w},
		People: people{}, Jobs: jobsFake{w}, Runs: postgres.NewRuns(w.db.DB), Steps: postgres.NewSteps(w.db.DB),
		Followups: postgres.NewFollowups(w.db.DB), Present: httpapi.Presenter{},
	})
	w.updates = httpapi.NewUpdates(w.service)
	return w
}

func config() app.Config {
	return app.Config{
		CancelGrace: 30 * time.Second, QueuedMaxAge: 24 * time.Hour, StallAfter: 5 * time.Minute, InterruptGrace: 2 * time.Minute,
		LateFinishWindow: time.Hour, TokenTTL: 15 * time.Minute, EditTriggerWindow: 15 * time.Minute, MaxChainDepth: 3, MaxChildren: 8,
		MaxChainRuns: 20, MaxAgents: 3, MaxQueued: 50, ContextMessages: 50, ContextBytes: 1 << 18, PatchBytes: 1 << 16, DocumentBytes: 1 << 18,
		OutputBytes: 1 << 18, MaxSteps: 1000, PresenceTimeout: 90 * time.Second, PersistInterval: 30 * time.Second, MessageBytes: 8000,
		PublicURL: "https://chat.example.org",
	}
}

func (w *world) addAgent(id ids.ID) {
	now := start
	w.agents[id] = agents.Agent{
		ID: id, Active: true, BillingMode: agents.BillingOrganization, ToolClass: "chat", MaxConcurrent: 4, UntrustedContext: "mark",
		Presence: "online", LastHeartbeatAt: &now,
	}
	w.levels[id] = authorize.LevelWrite
}

func (w *world) changeAgent(id ids.ID, fn func(*agents.Agent)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.agents[id]
	fn(&a)
	w.agents[id] = a
}

func (w *world) setLevel(id ids.ID, l authorize.Level) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.levels[id] = l
}

// do runs fn in a unit and fails the test when that fails.
func (w *world) do(ctx context.Context, fn func(ctx context.Context) error) {
	w.t.Helper()
	if err := w.units.Do(ctx, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) asPerson() context.Context {
	return actor.With(w.t.Context(), actor.Actor{ID: w.person, Kind: actor.KindPerson, SessionID: ids.New()})
}

func (w *world) asAgent(id ids.ID) context.Context {
	return actor.With(w.t.Context(), actor.Actor{ID: id, Kind: actor.KindAgent, TokenID: ids.New()})
}

// acting is the agent under a token, verified as a request would.
func (w *world) acting(agent ids.ID, token string) context.Context {
	w.t.Helper()
	acting, err := w.service.VerifyInvocation(w.t.Context(), agent, token)
	if err != nil {
		w.t.Fatalf("verify the token: %v", err)
	}
	return actor.With(w.t.Context(), actor.Actor{ID: agent, Kind: actor.KindAgent, TokenID: ids.New(), ActingFor: &acting})
}

// message writes a message of a person without publishing it.
func (w *world) message(author ids.ID, content string) messaging.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	m := messaging.Message{
		ID: ids.New(), ThreadID: w.thread, ChannelID: w.channel, ThreadSeq: w.seq, Kind: messaging.KindMessage, Content: content, PlainText: content,
		Author: messaging.Author{Kind: actor.KindPerson, ID: author}, CreatedAt: w.clock.Now(), TriggerState: messaging.TriggerNone, Revision: 1,
	}
	w.messages[m.ID] = m
	return m
}

func (w *world) posted(m messaging.Message, mentioned ...ids.ID) messaging.MessagePosted {
	c := w.channels[w.channel]
	return messaging.MessagePosted{
		Message: m, SpaceID: w.space, Mentioned: mentioned, ThreadKind: chat.ThreadMain, OperatorID: c.OperatorID, TriggerRule: c.TriggerRule,
		AgentChaining: c.AgentChaining,
	}
}

// order lets the person mention the agent and gives the message and its run.
func (w *world) order() (messaging.Message, ids.ID) {
	w.t.Helper()
	m := w.message(w.person, "please")
	w.do(w.asPerson(), func(ctx context.Context) error { return w.service.OnMessagePosted(ctx, w.posted(m, w.agent)) })
	return m, w.outcome(m.ID).RunID
}

func (w *world) outcome(message ids.ID) messaging.TriggerOutcome {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.outcomes[message]) != 1 {
		w.t.Fatalf("the message has the outcomes %+v", w.outcomes[message])
	}
	return w.outcomes[message][0]
}

type delivered struct {
	Run struct {
		ID          ids.ID     `json:"id"`
		State       string     `json:"state"`
		DeliveredAt *time.Time `json:"delivered_at"`
	} `json:"run"`
	Message *struct {
		Content string `json:"content"`
		Trust   string `json:"trust"`
	} `json:"message"`
	Followups  []json.RawMessage `json:"followups"`
	Redelivery bool              `json:"redelivery"`
	Token      string            `json:"token"`
}

// deliver prepares the invocation of a run as the gateway does; ok is false when refused.
func (w *world) deliver(run ids.ID) (d delivered, raw json.RawMessage, ok bool) {
	w.t.Helper()
	p, err := w.service.Prepare(w.asAgent(w.agent), w.agent, "agent.invocation", ids.New(), w.stored("agent.invocation", run))
	if err != nil {
		w.t.Fatalf("prepare: %v", err)
	}
	if p.Refused {
		return d, nil, false
	}
	if err := json.Unmarshal(p.Payload, &d); err != nil {
		w.t.Fatal(err)
	}
	return d, p.Payload, true
}

// stored is the payload of the newest event of the type about the run.
func (w *world) stored(eventType string, run ids.ID) json.RawMessage {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range slices.Backward(w.events) {
		if e.Type == eventType && e.Resource.ID == run {
			raw, err := json.Marshal(e.Payload)
			if err != nil {
				w.t.Fatal(err)
			}
			return raw
		}
	}
	w.t.Fatalf("there is no %s about %s", eventType, run)
	return nil
}

func (w *world) count(eventType string, run ids.ID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if e.Type == eventType && e.Resource.ID == run {
			n++
		}
	}
	return n
}

// begun is a run under way with the context of its agent.
func (w *world) begun() (messaging.Message, ids.ID, context.Context) {
	w.t.Helper()
	m, run := w.order()
	d, _, ok := w.deliver(run)
	if !ok {
		w.t.Fatal("the order was refused")
	}
	ctx := w.acting(w.agent, d.Token)
	if _, err := w.service.Start(ctx, run, app.Start{}); err != nil {
		w.t.Fatalf("start: %v", err)
	}
	return m, run, ctx
}

func (w *world) row(run ids.ID) (state, reason string) {
	w.t.Helper()
	var r *string
	if err := w.db.Pool.QueryRow(w.t.Context(), "SELECT state, end_reason FROM runs WHERE id = $1", run).Scan(&state, &r); err != nil {
		w.t.Fatal(err)
	}
	if r != nil {
		reason = *r
	}
	return state, reason
}

func (w *world) expect(run ids.ID, state, reason string) {
	w.t.Helper()
	if s, r := w.row(run); s != state || r != reason {
		w.t.Fatalf("the run is %s (%s), want %s (%s)", s, r, state, reason)
	}
}

// Append implements eventlog.Appender: it is legal in units alone.
func (w *world) Append(ctx context.Context, events ...eventlog.Event) error {
	if u := txn.Current(ctx); u == nil || u.ReadOnly() {
		return errors.New("there is no unit of work to append in")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		if e.Place.ThreadID != w.thread || e.Place.ChannelID != w.channel || e.Place.SpaceID != w.space {
			return fmt.Errorf("%s has the place %+v", e.Type, e.Place)
		}
		w.events = append(w.events, e)
	}
	return nil
}

// Publish implements eventlog.EphemeralPublisher: outside of units, since nothing is undone.
func (w *world) Publish(ctx context.Context, e eventlog.Ephemeral) {
	if txn.Current(ctx) != nil {
		w.t.Errorf("%s was published before the commit", e.Type)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ephemeral = append(w.ephemeral, e)
}

type recorder struct{ *world }

func (r recorder) Allowed(ctx context.Context, e auditing.Entry) error {
	if txn.Current(ctx) == nil {
		return errors.New("audited outside a unit")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.audit = append(r.audit, e)
	return nil
}

func (r recorder) Denied(_ context.Context, e auditing.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.audit = append(r.audit, e)
}

// authorizer knows the rules that the catalogue states for runs, as far as these tests go.
type authorizer struct{ *world }

func (a authorizer) Authorize(ctx context.Context, action authorize.Action, r authorize.Resource) error {
	who := actor.From(ctx)
	if r.ChannelID == r.ID { // What is not there is asked for in a place that is not there.
		return errs.NotFound()
	}
	if r.Kind != authorize.ResourceRun || r.ChannelID != a.channel {
		return fmt.Errorf("%s was asked for %+v", action, r)
	}
	a.mu.Lock()
	level := a.levels[who.ID]
	a.mu.Unlock()
	if !level.Includes(authorize.LevelRead) {
		return errs.NotFound()
	}
	self := who.ID == r.OwnerID
	switch action {
	case authorize.ActionRunRead:
		return nil
	case authorize.ActionRunCancel:
		if slices.Contains(r.Related, who.ID) || level.Includes(authorize.LevelTrigger) {
			return nil
		}
		return errs.Forbidden("level_insufficient")
	default:
		if who.Kind == actor.KindAgent && self {
			return nil
		}
		return errs.Forbidden("subject_kind_not_allowed")
	}
}

func (a authorizer) Allowed(ctx context.Context, action authorize.Action, r authorize.Resource) (bool, error) {
	return a.Authorize(ctx, action, r) == nil, nil
}

func (a authorizer) Scope(context.Context, authorize.Action) (authorize.Scope, error) {
	return authorize.Scope{Channels: []ids.ID{a.channel}}, nil
}

type rights struct{ *world }

func (r rights) AccessOf(context.Context, []ids.ID) (map[ids.ID]authorize.Access, error) {
	return nil, errors.New("not asked here")
}

func (r rights) Standing(_ context.Context, principal, channel ids.ID) (authorize.Standing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if channel != r.channel || principal.IsZero() {
		return authorize.Standing{}, fmt.Errorf("rights of %s in %s", principal, channel)
	}
	level := r.levels[principal]
	return authorize.Standing{Reads: level.Includes(authorize.LevelRead), Orders: level.Includes(authorize.LevelTrigger)}, nil
}

func (r rights) WithTrigger(context.Context, ids.ID) ([]ids.ID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []ids.ID
	for id, level := range r.levels {
		if _, agent := r.agents[id]; !agent && level.Includes(authorize.LevelTrigger) {
			out = append(out, id)
		}
	}
	return out, nil
}

type installation struct{ *world }

func (i installation) Info(context.Context) (instance.Info, error) {
	return instance.Info{ID: i.instance}, nil
}
func (installation) SetupComplete(context.Context) (bool, error) { return true, nil }
func (installation) CompleteSetup(context.Context) error         { return nil }

type keys struct{ *world }

func (k keys) Sign(_ context.Context, p instance.Purpose, payload []byte) (string, error) {
	if p != instance.PurposeInvocation {
		return "", fmt.Errorf("signed for %s", p)
	}
	return jose.Sign(k.key, jose.Header{Type: "invocation+jwt", KeyID: "k1"}, payload)
}

func (k keys) Verify(_ context.Context, _ instance.Purpose, compact string) ([]byte, error) {
	token, err := jose.Parse(compact)
	if err == nil {
		err = token.Verify(k.key.Public())
	}
	if err != nil {
		return nil, errs.New(errs.CodeUnauthenticated, "The token is none of ours.").WithCause(err)
	}
	return token.Payload, nil
}

type structure struct{ *world }

func (s structure) Channel(_ context.Context, id ids.ID) (chat.Channel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.channels[id]
	if !ok {
		return c, errs.NotFound()
	}
	return c, nil
}

func (structure) Channels(context.Context, []ids.ID) (map[ids.ID]chat.Channel, error) {
	return nil, errors.New("not asked here")
}

func (structure) OperatorChannels(context.Context, ids.ID) ([]ids.ID, error) {
	return nil, errors.New("not asked here")
}

type threads struct {
	chat.Threads
	w *world
}

func (t threads) Info(_ context.Context, id ids.ID) (chat.Thread, error) {
	if id != t.w.thread {
		return chat.Thread{}, errs.NotFound()
	}
	return chat.Thread{ID: id, ChannelID: t.w.channel, SpaceID: t.w.space, Kind: chat.ThreadMain}, nil
}

// Lock takes an advisory lock in the place of the row, so that units wait for each other.
func (t threads) Lock(ctx context.Context, id ids.ID) (chat.Thread, error) {
	if err := pg.QueuedExec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 7))", []any{id.String()}); err != nil {
		return chat.Thread{}, err
	}
	if err := pg.Flush(ctx); err != nil {
		return chat.Thread{}, err
	}
	t.w.mu.Lock()
	c := t.w.channels[t.w.channel]
	t.w.mu.Unlock()
	if c.Archived {
		return chat.Thread{}, errs.Forbidden("target_archived")
	}
	if c.ReadOnly {
		return chat.Thread{}, errs.New(errs.CodeChannelReadOnly, "read-only")
	}
	return t.Info(ctx, id)
}

type messagesFake struct{ *world }

func (m messagesFake) Get(_ context.Context, id ids.ID) (messaging.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	msg, ok := m.messages[id]
	if !ok {
		return msg, errs.NotFound()
	}
	return msg, nil
}

func (m messagesFake) Newest(_ context.Context, thread ids.ID, upTo int64, limit int) ([]messaging.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []messaging.Message
	for _, msg := range m.messages {
		if msg.ThreadID == thread && (upTo == 0 || msg.ThreadSeq <= upTo) {
			out = append(out, msg)
		}
	}
	slices.SortFunc(out, func(a, b messaging.Message) int { return int(a.ThreadSeq - b.ThreadSeq) })
	return out[max(len(out)-limit, 0):], nil
}

func (m messagesFake) Create(ctx context.Context, n messaging.NewMessage) (messaging.Message, error) {
	if txn.Current(ctx) == nil || n.ThreadID != m.thread || n.Author.ID.IsZero() || n.Content == "" || n.ClientMsgID.IsZero() {
		return messaging.Message{}, fmt.Errorf("written: %+v", n)
	}
	msg := m.message(n.Author.ID, n.Content)
	m.mu.Lock()
	defer m.mu.Unlock()
	msg.Author.Kind, msg.ReplyToID, msg.RunID, msg.ClientMsgID = n.Author.Kind, n.ReplyToID, n.RunID, n.ClientMsgID
	m.messages[msg.ID] = msg
	return msg, nil
}

func (m messagesFake) Anchor(ctx context.Context, thread, run, agent ids.ID) (messaging.Message, error) {
	if txn.Current(ctx) == nil || thread != m.thread || run.IsZero() || agent.IsZero() {
		return messaging.Message{}, fmt.Errorf("anchor of %s by %s in %s", run, agent, thread)
	}
	msg := m.message(agent, "")
	m.mu.Lock()
	defer m.mu.Unlock()
	msg.Kind, msg.RunID, msg.Author.Kind = messaging.KindRun, run, actor.KindAgent
	m.messages[msg.ID] = msg
	return msg, nil
}

func (m messagesFake) SetTriggerState(ctx context.Context, id ids.ID, state string, outcomes []messaging.TriggerOutcome) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	msg, ok := m.messages[id]
	known := []string{messaging.TriggerTriggered, messaging.TriggerFollowup, messaging.TriggerDenied, messaging.TriggerHeld}
	if txn.Current(ctx) == nil || !ok || !slices.Contains(known, state) || len(outcomes) == 0 {
		return fmt.Errorf("state %q of %s with %+v", state, id, outcomes)
	}
	msg.TriggerState = state
	m.messages[id], m.outcomes[id] = msg, outcomes
	return nil
}

type agentsFake struct{ *world }

func (a agentsFake) ByID(_ context.Context, list []ids.ID) (map[ids.ID]agents.Agent, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[ids.ID]agents.Agent{}
	for _, id := range list {
		if found, ok := a.agents[id]; ok {
			out[id] = found
		}
	}
	return out, nil
}

func (agentsFake) SnapshotAgents(context.Context, ids.ID, int) ([]agents.SnapshotItem, error) {
	return nil, errors.New("not asked here")
}

type people struct{}

func (people) People(_ context.Context, list []ids.ID) (map[ids.ID]app.Person, error) {
	out := map[ids.ID]app.Person{}
	for _, id := range list {
		out[id] = app.Person{ID: id, Kind: "person", Handle: "ada", DisplayName: "Ada", Locale: "en"}
	}
	return out, nil
}

type jobsFake struct{ *world }

func (j jobsFake) add(ctx context.Context, kind string, run ids.ID, at time.Time) error {
	if txn.Current(ctx) == nil || run.IsZero() || at.Before(j.clock.Now()) {
		return fmt.Errorf("job %s of %s at %s", kind, run, at)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.jobs[kind+" "+run.String()] = at
	return nil
}

func (j jobsFake) CancelTimeout(ctx context.Context, run ids.ID, at time.Time) error {
	return j.add(ctx, "cancel_timeout", run, at)
}

func (j jobsFake) QueuedExpiry(ctx context.Context, run ids.ID, at time.Time) error {
	return j.add(ctx, "queued_expiry", run, at)
}

var (
	_ runs.Delivery = (*app.Service)(nil)
	_ runs.Reads    = (*app.Service)(nil)
	_ runs.Updates  = (*httpapi.Updates)(nil)
)
