// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/graphemes"
	chathttp "github.com/OWNER/bothy/services/server/internal/chat/adapters/httpapi"
	chatpg "github.com/OWNER/bothy/services/server/internal/chat/adapters/postgres"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
	chatdomain "github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/instance"
	instancepg "github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/markdown"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	syncpg "github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres"
	syncapp "github.com/OWNER/bothy/services/server/internal/sync/app"
)

var start = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// world is one channel with three members. Chat and the event log are the real ones, so what
// is promised about order and counters is promised together; rights and the directory are
// fakes.
type world struct {
	t        testing.TB
	db       *pgtest.DB
	clock    *clocktest.Fake
	registry *txn.Registry
	units    *pg.Units
	rules    *rules
	people   *directory
	channels *chatapp.Channels
	threads  *chatapp.Threads
	deps     app.Deps
	messages *app.Messages
	port     app.Port
	handlers *httpapi.Handlers
	posted   *posted

	anna, bob, agent ids.ID
	channel          chatdomain.Channel
	thread           ids.ID
}

// counters is the part of instance that the log needs.
type counters struct{ store *instancepg.Store }

func (c counters) Raise(ctx context.Context, name instance.Counter, by int64, got func(int64)) error {
	return c.store.Raise(ctx, string(name), by, got)
}

func newWorld(t testing.TB, opts ...pgtest.Option) *world {
	t.Helper()
	opts = append([]pgtest.Option{pgtest.WithMigrations("0001", "0005", "0007", "0009")}, opts...)
	w := &world{
		t: t, db: pgtest.New(t, opts...), clock: clocktest.New(start), registry: txn.NewRegistry(), posted: &posted{},
		anna: ids.New(), bob: ids.New(), agent: ids.New(), rules: &rules{},
	}
	w.people = &directory{byHandle: map[string]identity.Principal{
		"anna": person(w.anna, "anna", "Anna"), "bob": person(w.bob, "bob", "Bob"),
		"builder": {ID: w.agent, Kind: actor.KindAgent, Status: identity.StatusActive, Handle: "builder", DisplayName: "Builder"},
		"gone":    {ID: ids.New(), Kind: actor.KindPerson, Status: identity.StatusDisabled, Handle: "gone", DisplayName: "Gone"},
	}}
	appender := syncapp.NewAppender(syncapp.AppendConfig{MaxEventsPerUnit: 1000, MaxPayloadBytes: 262144},
		counters{instancepg.New(w.db.DB)}, syncpg.NewEvents(w.db.DB), authz.DecidedVersion)
	w.registry.SetHooks(txn.Hooks{Log: appender.NumberEvents})
	txn.Subscribe(w.registry, w.posted.OnMessagePosted)
	txn.Subscribe(w.registry, w.posted.OnMessageEdited)
	txn.Subscribe(w.registry, w.posted.OnMessageDeleted)
	w.registry.Seal()
	w.units = pg.NewUnits(w.db.DB, w.registry, w.clock, pg.UnitConfig{})

	spaces, channels, threads := chatpg.NewSpaces(w.db.DB), chatpg.NewChannels(w.db.DB), chatpg.NewThreads(w.db.DB)
	chatDeps := chatapp.Deps{
		Config: chatapp.Config{MaxSpaces: 10, MaxPerSpace: 10, NameClusters: 80, TopicClusters: 1024, PromptMaxBytes: 32768, TitleClusters: 120, ClusterMaxRunes: 32},
		Units:  w.units, Authorizer: w.rules, Log: appender, Directory: w.people, Affected: w.rules,
		Spaces: spaces, Channels: channels, Threads: threads, Payloads: chathttp.Payloads{}, Clusters: graphemes.Clusters{},
	}
	w.channels, w.threads = chatapp.NewChannels(chatDeps), chatapp.NewThreads(chatDeps)
	chatSpaces := chatapp.NewSpaces(chatDeps)
	w.deps = app.Deps{
		Config: app.Config{MaxMentions: 50, BroadcastPerHour: 2, MaxRevisions: 3, AutoTitleClusters: 20, PublicURL: "https://bothy.example"},
		Units:  w.units, Authorizer: w.rules, Rights: w.rules, Log: appender, Redactor: appender, Directory: w.people,
		Places: w.threads, Structure: chatapp.NewStructure(channels), Threads: w.threads,
		ThreadReads: chathttp.NewSnapshot(chatSpaces, w.channels, w.threads), Messages: postgres.NewMessages(w.db.DB),
		Parser:   markdown.New(markdown.Config{MaxContentBytes: 65536, MaxClusterPoints: 32, MaxNesting: 32}),
		Payloads: httpapi.Payloads{}, Clock: w.clock,
	}
	w.messages = app.NewMessages(w.deps)
	w.port, w.handlers = app.NewPort(w.messages), httpapi.New(w.messages)

	space, err := chatSpaces.Create(w.as(w.anna), chatapp.NewSpace{Name: "Team"})
	if err != nil {
		t.Fatal(err)
	}
	w.channel = w.newChannel(space.ID, "general")
	w.thread = w.channel.MainThreadID
	return w
}

func (w *world) newChannel(space ids.ID, name string) chatdomain.Channel {
	w.t.Helper()
	c, err := w.channels.Create(w.as(w.anna), chatapp.NewChannel{SpaceID: space, Kind: chatdomain.KindText, Name: name, Inherits: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func person(id ids.ID, handle, name string) identity.Principal {
	return identity.Principal{ID: id, Kind: actor.KindPerson, Status: identity.StatusActive, Handle: handle, DisplayName: name}
}

// as is a context of a member.
func (w *world) as(who ids.ID) context.Context {
	kind := actor.KindPerson
	if who == w.agent {
		kind = actor.KindAgent
	}
	return actor.With(context.Background(), actor.Actor{ID: who, Kind: kind})
}

func draft(content string) app.Draft {
	return app.Draft{ClientMsgID: ids.New(), Content: content, Notify: "normal"}
}

func (w *world) send(who ids.ID, content string) domain.Message {
	w.t.Helper()
	out, err := w.messages.Create(w.as(who), w.thread, draft(content))
	if err != nil {
		w.t.Fatalf("send %q: %v", content, err)
	}
	return out.Message
}

// logged is a row of the event log.
type logged struct {
	Seq      int64
	Type     string
	Thread   *ids.ID
	Resource *ids.ID
	Payload  json.RawMessage
}

func (w *world) events(since int64) []logged {
	w.t.Helper()
	rows, err := w.db.Pool.Query(context.Background(), "SELECT seq, type, thread_id, resource_id, payload FROM event_log WHERE seq > $1 ORDER BY seq", since)
	if err != nil {
		w.t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[logged])
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func (w *world) head() int64 {
	return w.db.Count(w.t, "SELECT value FROM sequence_counters WHERE name = 'event_seq'")
}

func types(list []logged) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, e.Type)
	}
	return out
}

// checkLog holds every payload of the module against the contract.
func (w *world) checkLog() {
	w.t.Helper()
	schemas := map[string]string{"message.created": "MessageCreatedData", "message.updated": "MessageUpdatedData", "message.deleted": "MessageDeletedData"}
	for _, e := range w.events(0) {
		schema, mine := schemas[e.Type]
		if !mine || w.db.Count(w.t, "SELECT count(*) FROM event_log WHERE seq = $1 AND redacted_at IS NOT NULL", e.Seq) > 0 {
			continue
		}
		if err := contract.Value(schema, e.Payload); err != nil {
			w.t.Errorf("%s: %v\n%s", e.Type, err, e.Payload)
		}
	}
}

// rules allows everything that is not denied. Denials are per action or per principal.
type rules struct {
	mu       sync.Mutex
	denied   map[authorize.Action]error
	standing map[ids.ID]authorize.Standing
}

func (r *rules) deny(a authorize.Action, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = map[authorize.Action]error{a: err}
}

func (r *rules) give(who ids.ID, a authorize.Standing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.standing == nil {
		r.standing = map[ids.ID]authorize.Standing{}
	}
	r.standing[who] = a
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
	return authorize.Scope{All: true}, nil
}
func (r *rules) Affect(context.Context, ...ids.ID) error { return nil }

func (r *rules) AccessOf(context.Context, []ids.ID) (map[ids.ID]authorize.Access, error) {
	return nil, nil
}

func (r *rules) Standing(_ context.Context, who, _ ids.ID) (authorize.Standing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := r.standing[who]; ok {
		return a, nil
	}
	return authorize.Standing{Reads: true, Orders: true}, nil
}

func (r *rules) WithTrigger(context.Context, ids.ID) ([]ids.ID, error) { return nil, nil }

type directory struct{ byHandle map[string]identity.Principal }

func (d *directory) ByID(_ context.Context, list []ids.ID) (map[ids.ID]identity.Principal, error) {
	out := map[ids.ID]identity.Principal{}
	for _, p := range d.byHandle {
		for _, id := range list {
			if p.ID == id {
				out[id] = p
			}
		}
	}
	return out, nil
}

func (d *directory) ByHandle(_ context.Context, handles []string) (map[string]identity.Principal, error) {
	out := map[string]identity.Principal{}
	for _, h := range handles {
		if p, ok := d.byHandle[h]; ok {
			out[h] = p
		}
	}
	return out, nil
}

func (d *directory) Visible(context.Context, int) ([]identity.Principal, bool, error) {
	return nil, true, nil
}

// posted is a subscriber: it remembers, and does what a test asks it to.
type posted struct {
	mu      sync.Mutex
	created []messaging.MessagePosted
	edited  []messaging.MessageEdited
	deleted []messaging.MessageDeleted
	react   func(ctx context.Context, e messaging.MessagePosted) error
}

func (p *posted) OnMessagePosted(ctx context.Context, e messaging.MessagePosted) error {
	p.mu.Lock()
	p.created = append(p.created, e)
	react := p.react
	p.mu.Unlock()
	if react != nil {
		return react(ctx, e)
	}
	return nil
}

func (p *posted) OnMessageEdited(_ context.Context, e messaging.MessageEdited) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edited = append(p.edited, e)
	return nil
}

func (p *posted) OnMessageDeleted(_ context.Context, e messaging.MessageDeleted) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted = append(p.deleted, e)
	return nil
}

// reasonOf is the code of a public error with its reason or the code of its first field.
func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	e := errs.As(err)
	switch {
	case e.Reason != "":
		return fmt.Sprintf("%s(%s)", e.Code, e.Reason)
	case len(e.Fields) > 0:
		return fmt.Sprintf("%s(%s %s)", e.Code, e.Fields[0].Pointer, e.Fields[0].Code)
	default:
		return string(e.Code)
	}
}
