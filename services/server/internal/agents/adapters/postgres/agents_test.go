// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/agents/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/agents/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// house is one installation with an owner and fakes of the other modules.
type house struct {
	t         testing.TB
	db        *pgtest.DB
	clock     *clocktest.Fake
	units     *pg.Units
	owner     ids.ID
	service   *app.Service
	tracker   *app.Tracker
	consumers *app.Consumers

	mu         sync.Mutex
	principals map[ids.ID]identity.Principal
	events     []eventlog.Event
	ephemeral  []eventlog.Ephemeral
	audit      []auditing.Entry
	disabled   []ids.ID
	holders    holders
	// alertAfter is zero but in the test of it.
	alertAfter time.Duration
}

// creationHead is the position of the log when the agents of a test are made.
const creationHead = 3

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{t: t, db: pgtest.New(t, pgtest.WithMigrations("0001", "0006"), pgtest.AsApp()), clock: clocktest.New(start), owner: ids.New(), principals: map[ids.ID]identity.Principal{}}
	registry := txn.NewRegistry()
	txn.Subscribe(registry, h.onDisabled)
	h.units = h.db.UnitsAt(registry, h.clock)
	h.tracker = h.newTracker()
	h.service = h.newService()
	h.consumers = app.NewConsumers(h.units, authorizer{h}, postgres.NewCursors(h.db.DB))
	return h
}

func (h *house) newService() *app.Service {
	return app.New(app.Deps{
		Units: h.units, Authorizer: authorizer{h}, Audit: h, Log: h, Directory: directory{h}, Principals: writes{h}, Tokens: tokens{h}, Holders: h,
		Rows: postgres.NewAgents(h.db.DB), Present: httpapi.Presenter{}, Tracker: h.tracker,
		Cursors: postgres.NewCursors(h.db.DB), Head: func(context.Context) (int64, error) { return creationHead, nil },
	})
}

// newTracker is the tracker of one process.
func (h *house) newTracker() *app.Tracker {
	return app.NewTracker(app.TrackerDeps{
		Config: app.Config{PresenceTimeout: 90 * time.Second, PersistInterval: 30 * time.Second, MismatchAlertAfter: h.alertAfter}, Clock: h.clock, Units: h.units,
		Authorizer: authorizer{h}, Audit: h, Publisher: h, Rows: postgres.NewAgents(h.db.DB), Present: httpapi.Presenter{},
		Log: slog.New(slog.DiscardHandler),
	})
}

func (h *house) onDisabled(_ context.Context, e agents.AgentDisabled) error {
	h.disabled = append(h.disabled, e.AgentID)
	return nil
}

func (h *house) asOwner() context.Context {
	return actor.With(h.t.Context(), actor.Actor{ID: h.owner, Kind: actor.KindPerson, Owner: true, SessionID: ids.New()})
}

func asAgent(ctx context.Context, id ids.ID) context.Context {
	return actor.With(ctx, actor.Actor{ID: id, Kind: actor.KindAgent, TokenID: ids.New()})
}

func (h *house) make(handle string) ids.ID {
	h.t.Helper()
	v, token, err := h.service.Create(h.asOwner(), app.NewAgent{
		Handle: handle, DisplayName: "Builder", Billing: domain.Billing{BillingMode: "organization"}, ToolClass: "chat", Token: &app.NewToken{Name: "adapter"},
	})
	if err != nil || token == nil || token.Secret == "" || len(token.Scopes) == 0 {
		h.t.Fatalf("%+v, %v", token, err)
	}
	return v.ID
}

func (h *house) beat(t *app.Tracker, agent ids.ID, report string) {
	h.t.Helper()
	if err := t.Heartbeat(asAgent(h.t.Context(), agent), agent, json.RawMessage(report)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) told() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, e := range h.ephemeral {
		raw, err := json.Marshal(e.Payload)
		if err != nil {
			h.t.Fatal(err)
		}
		if err := contract.Value("AgentPresenceChangedData", raw); err != nil {
			h.t.Errorf("%s: %v", raw, err)
		}
		var p struct{ State string }
		if err := json.Unmarshal(raw, &p); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, p.State)
	}
	return out
}

func TestAnAgentIsMadeWithItsToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	raw, err := json.Marshal(h.events[0].Payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := contract.Value("Agent", raw); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
	if len(h.audit) != 1 || h.audit[0].Details["token_id"] == nil {
		t.Errorf("%+v", h.audit)
	}
	if _, _, err := h.service.Create(h.asOwner(), app.NewAgent{Handle: "own", DisplayName: "Own", Billing: domain.Billing{BillingMode: "personal"}, ToolClass: "chat"}); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("%v", err)
	}
	if _, _, err := h.service.Create(asAgent(t.Context(), id), app.NewAgent{}); !errs.Is(err, errs.CodeForbidden) {
		t.Errorf("%v", err)
	}
}

func TestAChangeNamesTheVersionItWasMadeFrom(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	text, name := "Builds things", "Builder II"
	v, err := h.service.Update(h.asOwner(), id, 1, &name, domain.Settings{Description: &text})
	if err != nil || v.Version != 2 || v.Description != text || v.Principal.DisplayName != name {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := h.service.Update(h.asOwner(), id, 1, nil, domain.Settings{Description: &text}); !errs.Is(err, errs.CodeVersionConflict) {
		t.Errorf("%v", err)
	}
	events := len(h.events)
	if v, err = h.service.Update(h.asOwner(), id, 2, nil, domain.Settings{Description: &text}); err != nil || v.Version != 2 || len(h.events) != events {
		t.Errorf("nothing was different, and yet: %d, %v, %d events", v.Version, err, len(h.events)-events)
	}
}

func TestDisablingTellsTheOtherModulesInTheTransaction(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	for range 2 {
		if v, err := h.service.Disable(h.asOwner(), id); err != nil || v.Principal.Active() {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if len(h.disabled) != 1 {
		t.Errorf("told %d times", len(h.disabled))
	}
	if v, err := h.service.Enable(h.asOwner(), id); err != nil || !v.Principal.Active() || v.Version != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	policies, err := app.NewPolicies(postgres.NewAgents(h.db.DB), func(_ context.Context, list []ids.ID) (map[ids.ID]bool, error) {
		return map[ids.ID]bool{id: true}, nil
	}).AgentPolicies(t.Context(), []ids.ID{id, ids.New()})
	if err != nil || len(policies) != 1 || policies[0] != (authz.AgentPolicy{AgentID: id, BillingMode: "organization", Active: true}) {
		t.Errorf("%+v, %v", policies, err)
	}
}

func TestListsShowWhatTheCallerMaySee(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var all []ids.ID
	for i := range 5 {
		all = append(all, h.make(fmt.Sprintf("agent%d", i)))
	}
	first, next, err := h.service.List(h.asOwner(), app.Filter{}, ids.ID{}, 3)
	if err != nil || len(first) != 3 || next.IsZero() {
		t.Fatalf("%d, %s, %v", len(first), next, err)
	}
	rest, next, err := h.service.List(h.asOwner(), app.Filter{}, next, 3)
	if err != nil || len(rest) != 2 || !next.IsZero() {
		t.Fatalf("%d, %s, %v", len(rest), next, err)
	}
	own, _, err := h.service.List(asAgent(t.Context(), all[4]), app.Filter{}, ids.ID{}, 1)
	if err != nil || len(own) != 1 || own[0].ID != all[4] {
		t.Errorf("%+v, %v", own, err)
	}
	items, err := h.service.SnapshotAgents(h.asOwner(), ids.ID{}, 10)
	if err != nil || len(items) != 5 {
		t.Fatalf("%d, %v", len(items), err)
	}
	if err := contract.Value("Agent", items[0].Payload); err != nil {
		t.Errorf("%s: %v", items[0].Payload, err)
	}
	if _, err := h.service.Get(asAgent(t.Context(), all[0]), all[1]); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("%v", err)
	}
}

func TestAnAgentGoesOfflineOnceAtItsDeadline(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	h.beat(h.tracker, id, `{"state":"online","billing_mode":"organization"}`)
	h.clock.Advance(30 * time.Second)
	h.beat(h.tracker, id, `{"state":"online","billing_mode":"organization"}`)
	h.clock.Advance(90*time.Second - 1)
	h.tracker.Tick(t.Context())
	if got := h.told(); len(got) != 1 || got[0] != "online" {
		t.Fatalf("%v", got)
	}
	h.clock.Advance(1)
	h.tracker.Tick(t.Context())
	h.tracker.Tick(t.Context())
	if got := h.told(); len(got) != 2 || got[1] != "offline" {
		t.Fatalf("%v", got)
	}
	if n := h.db.Count(t, "SELECT count(*) FROM agents WHERE presence_state = 'offline'"); n != 1 {
		t.Error("the row does not say so")
	}
	h.beat(h.tracker, id, `{"state":"online","billing_mode":"organization"}`)
	if got := h.told(); len(got) != 3 || got[2] != "online" {
		t.Errorf("%v", got)
	}
}

func TestTheClockOfTheTrackerDecides(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	h.beat(h.tracker, id, `{"state":"online"}`)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); h.tracker.Run(ctx) }()
	for len(h.told()) < 2 {
		h.clock.WaitForTimers(1)
		h.clock.Advance(10 * time.Second)
	}
	stop()
	<-done
	if got := h.told(); got[1] != "offline" {
		t.Errorf("%v", got)
	}
}

func TestAnotherProcessThatHearsOfTheAgentKeepsItOnline(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	other := h.newTracker()
	h.beat(h.tracker, id, `{"state":"online"}`)
	h.clock.Advance(60 * time.Second)
	h.beat(other, id, `{"state":"online"}`) // The first report to the other is stored at once.
	h.clock.Advance(30 * time.Second)
	h.tracker.Tick(t.Context())
	if got := h.told(); len(got) != 2 || got[1] != "online" {
		t.Fatalf("%v", got)
	}
	h.clock.Advance(time.Hour)
	h.tracker.Tick(t.Context())
	if got := h.told(); got[len(got)-1] != "offline" {
		t.Errorf("%v", got)
	}
}

func TestARestartIsNoAgentGoingAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	h.beat(h.tracker, id, `{"state":"online"}`)
	h.clock.Advance(20 * time.Second)
	h.beat(h.tracker, id, `{"state":"online"}`)
	if err := h.tracker.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := h.db.Count(t, "SELECT count(*) FROM agents WHERE last_heartbeat_at = $1 AND presence_state = 'online'", h.clock.Now()); n != 1 {
		t.Fatal("the last report is not stored")
	}
	next := h.newTracker()
	if err := next.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(89 * time.Second)
	next.Tick(t.Context())
	if got := h.told(); len(got) != 1 {
		t.Fatalf("%v", got)
	}
	h.clock.Advance(time.Second)
	next.Tick(t.Context())
	if got := h.told(); len(got) != 2 || got[1] != "offline" {
		t.Errorf("%v", got)
	}
}

func TestOnlyAChangeOfWhatIsClaimedIsAudited(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	before := len(h.audit)
	for range 3 {
		h.beat(h.tracker, id, `{"state":"online","billing_mode":"personal","billing_evidence":{"key_type":"subscription","method":"cli_status"}}`)
	}
	h.beat(h.tracker, id, `{"state":"online"}`)
	if n := len(h.audit) - before; n != 2 {
		t.Fatalf("%d audited", n)
	}
	if d := h.audit[before].Details; d["billing_mode_after"] != "personal" || d["key_type"] != "subscription" {
		t.Errorf("%+v", d)
	}
	if d := h.audit[before+1].Details; d["billing_mode_before"] != "personal" || d["billing_mode_after"] != nil {
		t.Errorf("%+v", d)
	}
	if err := h.tracker.Heartbeat(asAgent(t.Context(), ids.New()), id, json.RawMessage(`{"state":"online"}`)); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("another agent: %v", err)
	}
}

func TestTheNewestConnectionHoldsTheAgent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.make("builder")
	ctx := asAgent(t.Context(), id)
	first, second := ids.New(), ids.New()
	acked, err := h.consumers.TakeOver(ctx, id, first, 100)
	if err != nil || acked != creationHead {
		t.Fatalf("%d, %v", acked, err)
	}
	if held, err := h.consumers.Save(ctx, id, first, 105); err != nil || !held {
		t.Fatalf("%v, %v", held, err)
	}
	if acked, err = h.consumers.TakeOver(ctx, id, second, 200); err != nil || acked != 105 {
		t.Fatalf("%d, %v", acked, err)
	}
	if held, err := h.consumers.Save(ctx, id, first, 150); err != nil || held {
		t.Errorf("the older connection holds %v, %v", held, err)
	}
	if held, err := h.consumers.Save(ctx, id, second, 101); err != nil || !held {
		t.Errorf("%v, %v", held, err)
	}
	if n := h.db.Count(t, "SELECT acked_seq FROM agent_consumer_cursors"); n != 105 {
		t.Errorf("the position is %d", n)
	}
	if _, err := h.consumers.TakeOver(asAgent(t.Context(), ids.New()), id, first, 1); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("another agent: %v", err)
	}
}

// Append implements eventlog.Appender.
func (h *house) Append(ctx context.Context, events ...eventlog.Event) error {
	if u := txn.Current(ctx); u == nil || u.ReadOnly() {
		return errors.New("there is no unit of work to append in")
	}
	h.events = append(h.events, events...)
	return nil
}

// Publish implements eventlog.EphemeralPublisher.
func (h *house) Publish(ctx context.Context, e eventlog.Ephemeral) {
	if txn.Current(ctx) != nil {
		h.t.Errorf("%s was published before the commit", e.Type)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ephemeral = append(h.ephemeral, e)
}

// Allowed implements auditing.Recorder.
func (h *house) Allowed(ctx context.Context, e auditing.Entry) error {
	if txn.Current(ctx) == nil {
		return errors.New("audited outside a unit")
	}
	h.audit = append(h.audit, e)
	return nil
}

// Denied implements auditing.Recorder.
func (h *house) Denied(context.Context, auditing.Entry) {}

type authorizer struct{ *house }

func (a authorizer) Authorize(ctx context.Context, action authorize.Action, r authorize.Resource) error {
	who := actor.From(ctx)
	if r.Kind != authorize.ResourceAgent {
		return fmt.Errorf("%s was asked for %+v", action, r)
	}
	switch action {
	case authorize.ActionAgentRead, authorize.ActionAgentHeartbeat, authorize.ActionAgentEventsConsume:
		if who.ID == r.ID || who.ID == a.owner && action == authorize.ActionAgentRead {
			return nil
		}
		return errs.NotFound()
	default:
		if who.ID == a.owner {
			return nil
		}
		return errs.Forbidden("owner_only")
	}
}

func (a authorizer) Allowed(ctx context.Context, action authorize.Action, r authorize.Resource) (bool, error) {
	return a.Authorize(ctx, action, r) == nil, nil
}

func (authorizer) Scope(context.Context, authorize.Action) (authorize.Scope, error) {
	return authorize.Scope{All: true}, nil
}

type directory struct{ *house }

func (d directory) ByID(_ context.Context, list []ids.ID) (map[ids.ID]identity.Principal, error) {
	out := map[ids.ID]identity.Principal{}
	for _, id := range list {
		if p, ok := d.principals[id]; ok {
			out[id] = p
		}
	}
	return out, nil
}

func (directory) ByHandle(context.Context, []string) (map[string]identity.Principal, error) {
	return nil, errors.New("not asked here")
}

func (directory) Visible(context.Context, int) ([]identity.Principal, bool, error) {
	return nil, false, errors.New("not asked here")
}

type writes struct{ *house }

func (w writes) Create(ctx context.Context, n identity.NewPrincipal) (identity.Principal, error) {
	if txn.Current(ctx) == nil || n.Kind != actor.KindAgent || n.Handle == "" || n.CreatedBy != w.owner {
		return identity.Principal{}, fmt.Errorf("created: %+v", n)
	}
	p := identity.Principal{ID: ids.New(), Kind: n.Kind, Status: identity.StatusActive, Handle: n.Handle, DisplayName: n.DisplayName, Version: 1}
	w.principals[p.ID] = p
	return p, nil
}

func (w writes) Rename(_ context.Context, id ids.ID, handle, displayName string) (identity.Principal, error) {
	p := w.principals[id]
	if p.Handle != handle {
		return p, errors.New("the handle stays")
	}
	p.DisplayName = displayName
	w.principals[id] = p
	return p, nil
}

func (w writes) SetActive(ctx context.Context, id ids.ID, active bool, _ string) (identity.Principal, error) {
	p, ok := w.principals[id]
	if !ok || txn.Current(ctx) == nil {
		return p, errors.New("no such principal")
	}
	p.Status = identity.StatusDisabled
	if active {
		p.Status = identity.StatusActive
	}
	w.principals[id] = p
	return p, nil
}

type tokens struct{ *house }

func (tokens) CreateFirst(ctx context.Context, principal ids.ID, name string, scopes []string, _ *time.Time) (ids.ID, string, error) {
	if txn.Current(ctx) == nil || principal.IsZero() || name == "" || len(scopes) == 0 {
		return ids.ID{}, "", errors.New("a token needs a principal, a name and scopes")
	}
	return ids.New(), "bothy_agt_secret", nil
}

var (
	_ agents.Agents           = (*app.Service)(nil)
	_ agents.Presence         = (*app.Tracker)(nil)
	_ agents.Consumers        = (*app.Consumers)(nil)
	_ authz.AgentPolicySource = (*app.Policies)(nil)
)
