// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/instance"
	instancepg "github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// bundle is an instance with one space, two channels and a few members.
type bundle struct {
	t      testing.TB
	db     *pgtest.DB
	units  *pg.Units
	svc    *app.Service
	inst   *instanceapp.Service
	places *places
	people *people
	agents agentPolicies
	log    *eventLog
	audit  *auditLog

	space, open, closed     ids.ID
	owner, ana, ben, helper ids.ID
	changes                 *[]authorize.AccessChanged
}

func setup(t testing.TB) *bundle {
	t.Helper()
	db := pgtest.New(t, pgtest.WithMigrations("0001", "0002", "0003"))
	b := &bundle{
		t: t, db: db, places: &places{}, people: &people{byID: map[ids.ID]authz.Principal{}}, agents: agentPolicies{},
		log: &eventLog{}, audit: &auditLog{}, space: ids.New(), open: ids.New(), closed: ids.New(), changes: &[]authorize.AccessChanged{},
	}
	registry := txn.NewRegistry()
	quiet := slog.New(slog.DiscardHandler)
	hooks := &hookSet{b: b}
	registry.SetHooks(txn.Hooks{
		RightsBegin: hooks.begin, RightsCheck: hooks.check, Log: b.log.write,
	})
	txn.Subscribe(registry, b.accessChanged)
	b.units = db.Units(registry)
	b.inst = instanceapp.New(instanceapp.DefaultConfig(), instanceapp.Deps{
		Store: instancepg.New(db.DB), Units: b.units, Clock: clock.System{}, Log: quiet,
	})
	b.log.versions = b.inst
	b.svc = b.newService()
	b.places.spaces = []authz.SpaceState{{ID: b.space}}
	b.places.channels = []authz.ChannelState{
		{ID: b.open, SpaceID: b.space, Inherits: true}, {ID: b.closed, SpaceID: b.space},
	}
	b.owner = b.person(authz.Principal{Kind: actor.KindPerson, Active: true, Owner: true})
	b.ana = b.person(authz.Principal{Kind: actor.KindPerson, Active: true})
	b.ben = b.person(authz.Principal{Kind: actor.KindPerson, Active: true})
	b.helper = b.person(authz.Principal{Kind: actor.KindAgent, Active: true})
	return b
}

// newService makes a further process on the same database.
func (b *bundle) newService() *app.Service { return b.newServiceWith(app.DefaultConfig()) }

func (b *bundle) newServiceWith(cfg app.Config) *app.Service {
	svc := app.New(cfg, app.Deps{
		Store: postgres.New(b.db.DB), Units: b.units, Clock: clock.System{}, Counters: b.inst, Versions: b.inst,
		Barrier: b.db.Barrier(), Settings: b.inst, Events: b.log, Audit: b.audit, Log: slog.New(slog.DiscardHandler),
	})
	svc.SetSources(app.Sources{Principals: b.people, Credentials: alive{}, Places: b.places, Agents: b.agents, Handles: b.people})
	return svc
}

func (b *bundle) person(p authz.Principal) ids.ID {
	p.ID = ids.New()
	b.people.set(p)
	return p.ID
}

func (b *bundle) as(principal ids.ID) context.Context {
	p := b.people.get(principal)
	return actor.With(context.Background(), actor.Actor{
		ID: principal, Kind: p.Kind, SessionID: ids.New(), StepUpUntil: time.Now().Add(time.Minute),
	})
}

func (b *bundle) give(subject, target ids.ID, kind, level string, caps ...string) app.GrantRow {
	b.t.Helper()
	g, _, err := b.svc.CreateGrant(b.as(b.owner), newGrant(subject, kind, target, level, caps...))
	if err != nil {
		b.t.Fatalf("give %s: %v", level, err)
	}
	return g
}

// observe brings a process up to the end of the log.
func (b *bundle) observe(svc *app.Service) {
	for _, e := range b.log.all() {
		svc.Observe(context.Background(), e)
	}
}

func (b *bundle) accessChanged(_ context.Context, e authorize.AccessChanged) error {
	*b.changes = append(*b.changes, e)
	return nil
}

// hookSet leads to the service, which is made after the registry.
type hookSet struct{ b *bundle }

func (h *hookSet) begin(ctx context.Context, c txn.RightsChange) error {
	return h.b.svc.RightsBegin(ctx, c)
}

func (h *hookSet) check(ctx context.Context, c txn.RightsChange) error {
	return h.b.svc.RightsCheck(ctx, c)
}

type people struct {
	mu   sync.Mutex
	byID map[ids.ID]authz.Principal
}

func (p *people) set(x authz.Principal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID[x.ID] = x
}

func (p *people) get(id ids.ID) authz.Principal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[id]
}

func (p *people) Principals(_ context.Context, list []ids.ID) ([]authz.Principal, error) {
	var out []authz.Principal
	for _, id := range list {
		if x := p.get(id); !x.ID.IsZero() {
			out = append(out, x)
		}
	}
	return out, nil
}

func (p *people) ActiveOwners(ctx context.Context) ([]ids.ID, error) {
	all, _ := p.ActivePeople(ctx)
	var out []ids.ID
	for _, x := range all {
		if x.Owner {
			out = append(out, x.ID)
		}
	}
	return out, nil
}

func (p *people) ActivePeople(context.Context) ([]authz.Principal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []authz.Principal
	for _, x := range p.byID {
		if x.Active && x.Kind == actor.KindPerson {
			out = append(out, x)
		}
	}
	return out, nil
}

// CheckHandle and ClaimHandle stand in for the name space of the members, who have no handles here.
func (p *people) CheckHandle(handle string) string {
	if handle == "admin" {
		return "reserved"
	}
	return ""
}

func (p *people) ClaimHandle(_ context.Context, handle string) (bool, error) {
	return handle == "ana", nil
}

type alive struct{}

func (alive) CheckActive(context.Context, actor.Actor) error { return nil }

// places counts what is asked, so that a test can compare the statements of two answers.
type places struct {
	mu       sync.Mutex
	spaces   []authz.SpaceState
	channels []authz.ChannelState
	asked    []string
}

func (p *places) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, what)
}

func (p *places) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.asked
	p.asked = nil
	return out
}

func (p *places) Spaces(context.Context) ([]authz.SpaceState, error) {
	p.note("spaces")
	return p.spaces, nil
}

func (p *places) Channels(context.Context) ([]authz.ChannelState, error) {
	p.note("channels")
	return p.channels, nil
}

func (p *places) Space(_ context.Context, id ids.ID) (authz.SpaceState, bool, error) {
	p.note("space")
	for _, s := range p.spaces {
		if s.ID == id {
			return s, true, nil
		}
	}
	return authz.SpaceState{}, false, nil
}

func (p *places) Channel(_ context.Context, id ids.ID) (authz.ChannelState, bool, error) {
	p.note("channel")
	for _, c := range p.channels {
		if c.ID == id {
			return c, true, nil
		}
	}
	return authz.ChannelState{}, false, nil
}

func (p *places) ThreadChannel(context.Context, ids.ID) (channel ids.ID, ok bool, err error) {
	return channel, false, nil
}

type agentPolicies map[ids.ID]authz.AgentPolicy

func (a agentPolicies) AgentPolicies(_ context.Context, list []ids.ID) ([]authz.AgentPolicy, error) {
	var out []authz.AgentPolicy
	for _, id := range list {
		if p, ok := a[id]; ok {
			out = append(out, p)
		}
	}
	return out, nil
}

// eventLog is a log in memory that refuses what was decided on older rights, as the real one
// does.
type eventLog struct {
	versions instance.Versions
	mu       sync.Mutex
	events   []authorize.Observed
}

type appendedKey struct{}

func (l *eventLog) Append(ctx context.Context, events ...eventlog.Event) error {
	u := txn.Current(ctx)
	list, _ := u.Value(appendedKey{}).([]eventlog.Event)
	u.SetValue(appendedKey{}, append(list, events...))
	return nil
}

func (l *eventLog) write(ctx context.Context) error {
	list, _ := txn.Current(ctx).Value(appendedKey{}).([]eventlog.Event)
	if len(list) == 0 {
		return nil
	}
	version, err := l.versions.Current(ctx, instance.CounterPermissionVersion)
	if err != nil {
		return err
	}
	if decided, ok := authz.DecidedVersion(ctx); ok && decided != version {
		return txn.ErrRetry
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, first := range []bool{true, false} {
		for _, e := range list {
			if (e.Type == app.EventAccessChanged) != first {
				continue
			}
			raw, err := json.Marshal(e.Payload)
			if err != nil {
				return err
			}
			l.events = append(l.events, authorize.Observed{
				Seq: int64(len(l.events) + 1), Type: e.Type, SpaceID: e.Place.SpaceID, ChannelID: e.Place.ChannelID,
				PrincipalID: e.PrincipalID, PermissionVersion: version, Payload: raw,
			})
		}
	}
	return nil
}

func (l *eventLog) all() []authorize.Observed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]authorize.Observed(nil), l.events...)
}

type auditLog struct {
	mu              sync.Mutex
	allowed, denied []auditing.Entry
}

func (a *auditLog) Allowed(_ context.Context, e auditing.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed = append(a.allowed, e)
	return nil
}

func (a *auditLog) Denied(_ context.Context, e auditing.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = append(a.denied, e)
}

func wantCode(t testing.TB, err error, code errs.Code, reason string) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	e := errs.As(err)
	if e == nil || e.Code != code || e.Reason != reason {
		t.Errorf("got %v, want %s (%s)", err, code, reason)
	}
}
