// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/graphemes"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
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

// world is an empty installation with an owner and an agent, and fakes of the modules below.
type world struct {
	t         testing.TB
	db        *pgtest.DB
	units     *pg.Units
	clock     *clocktest.Fake
	registry  *txn.Registry
	rules     *rules
	log       *log
	deps      app.Deps
	spaces    *app.Spaces
	channels  *app.Channels
	threads   *app.Threads
	structure *app.Structure
	source    *app.RightsSource
	handlers  *httpapi.Handlers
	snapshot  *httpapi.Snapshot
	owner     ids.ID
	agent     ids.ID
	ctx       context.Context
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, db: pgtest.New(t, pgtest.WithMigrations("0001", "0005")), clock: clocktest.New(start), registry: txn.NewRegistry(), log: &log{},
		owner: ids.New(), agent: ids.New(), rules: &rules{scope: authorize.Scope{All: true}},
	}
	w.units = pg.NewUnits(w.db.DB, w.registry, w.clock, pg.UnitConfig{})
	spaces, channels, threads := postgres.NewSpaces(w.db.DB), postgres.NewChannels(w.db.DB), postgres.NewThreads(w.db.DB)
	w.deps = app.Deps{
		Config: app.Config{
			MaxSpaces: 100, MaxPerSpace: 500, NameClusters: 80, TopicClusters: 1024, PromptMaxBytes: 32768, MaxSkills: 3, TitleClusters: 120, ClusterMaxRunes: 32,
		},
		Units: w.units, Authorizer: w.rules, Log: w.log, Directory: directory{w.agent}, Grants: w.rules, Affected: w.rules,
		Spaces: spaces, Channels: channels, Threads: threads, Payloads: httpapi.Payloads{}, Clusters: graphemes.Clusters{},
	}
	txn.Subscribe(w.registry, app.NewSetup(w.deps).OnSetupCompleted)
	w.registry.Seal()
	w.spaces, w.channels, w.threads = app.NewSpaces(w.deps), app.NewChannels(w.deps), app.NewThreads(w.deps)
	w.structure, w.source = app.NewStructure(channels), app.NewRightsSource(spaces, channels, threads)
	w.handlers, w.snapshot = httpapi.New(w.spaces, w.channels, w.threads), httpapi.NewSnapshot(w.spaces, w.channels, w.threads)
	w.ctx = actor.With(context.Background(), actor.Actor{ID: w.owner, Kind: actor.KindPerson})
	return w
}

func (w *world) space(name string) domain.Space {
	w.t.Helper()
	s, err := w.spaces.Create(w.ctx, app.NewSpace{Name: name})
	if err != nil {
		w.t.Fatalf("create space %s: %v", name, err)
	}
	return s
}

func (w *world) channel(space ids.ID, name string) domain.Channel {
	w.t.Helper()
	c, err := w.channels.Create(w.ctx, app.NewChannel{SpaceID: space, Kind: domain.KindText, Name: name, Inherits: true})
	if err != nil {
		w.t.Fatalf("create channel %s: %v", name, err)
	}
	return c
}

// rules allows everything that is not named, and remembers what was done with rights.
type rules struct {
	mu       sync.Mutex
	denied   map[authorize.Action]error
	scope    authorize.Scope
	affected []ids.ID
	granted  []authz.Target
}

func (r *rules) deny(a authorize.Action, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = map[authorize.Action]error{a: err}
}

func (r *rules) Authorize(_ context.Context, a authorize.Action, _ authorize.Resource) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied[a]
}

func (r *rules) Allowed(ctx context.Context, a authorize.Action, res authorize.Resource) (bool, error) {
	return r.Authorize(ctx, a, res) == nil, nil
}

func (r *rules) Scope(context.Context, authorize.Action) (authorize.Scope, error) {
	return r.scope, nil
}

func (r *rules) Affect(_ context.Context, principals ...ids.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.affected = append(r.affected, principals...)
	return nil
}

func (r *rules) CreateEveryone(context.Context) (ids.ID, error) { return ids.New(), nil }
func (r *rules) RevokeAll(context.Context, ids.ID) error        { return nil }
func (r *rules) GrantPrincipal(context.Context, ids.ID, authz.Target, authorize.Level, []authorize.Capability) error {
	return nil
}

func (r *rules) GrantEveryone(_ context.Context, t authz.Target, level authorize.Level, c []authorize.Capability) error {
	if level != authorize.LevelTrigger || !slices.Contains(c, authorize.CapThreadsCreate) || !slices.Contains(c, authorize.CapFilesUpload) {
		return errs.Internal(nil)
	}
	r.granted = append(r.granted, t)
	return nil
}

// log checks every payload against the contract and keeps the events of units that committed
// and of those that did not: tests that count run only units that succeed.
type log struct {
	mu     sync.Mutex
	events []eventlog.Event
}

var schemas = map[string]string{
	"space.created": "Space", "space.updated": "Space", "channel.created": "Channel", "channel.updated": "Channel", "channel.archived": "Channel",
	"channel.settings_changed": "ChannelBehavior", "agent.config_changed": "AgentConfigChangedData", "thread.created": "Thread", "thread.reopened": "Thread",
}

func (l *log) Append(_ context.Context, events ...eventlog.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		raw, err := json.Marshal(e.Payload)
		if err == nil {
			err = contract.Value(schemas[e.Type], raw)
		}
		if err != nil {
			return err
		}
		l.events = append(l.events, e)
	}
	return nil
}

// take gives the types of events since the last call.
func (l *log) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.events {
		out = append(out, e.Type)
	}
	l.events = nil
	return out
}

// directory knows one agent.
type directory struct{ agent ids.ID }

func (d directory) ByID(_ context.Context, list []ids.ID) (map[ids.ID]identity.Principal, error) {
	out := map[ids.ID]identity.Principal{}
	for _, id := range list {
		kind := actor.KindPerson
		if id == d.agent {
			kind = actor.KindAgent
		}
		out[id] = identity.Principal{ID: id, Kind: kind, Status: identity.StatusActive}
	}
	return out, nil
}

func (directory) ByHandle(context.Context, []string) (map[string]identity.Principal, error) {
	return nil, nil
}

func (directory) Visible(context.Context, int) ([]identity.Principal, bool, error) {
	return nil, true, nil
}

// reasonOf is the code of a public error with its reason.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	e := errs.As(err)
	if e.Reason != "" {
		return string(e.Code) + "(" + e.Reason + ")"
	}
	return string(e.Code)
}

// statements is what the running unit has sent or queued so far.
func statements(ctx context.Context) int {
	return pg.CountersFrom(ctx).Statements + pg.QueueLength(ctx)
}
