// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"pgregory.net/rapid"

	agentspg "github.com/OWNER/bothy/services/server/internal/agents/adapters/postgres"
	agentsapp "github.com/OWNER/bothy/services/server/internal/agents/app"
	agentsdomain "github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	authzpg "github.com/OWNER/bothy/services/server/internal/authz/adapters/postgres"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	chathttp "github.com/OWNER/bothy/services/server/internal/chat/adapters/httpapi"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/test/permissions"
)

// stage is a built process on a real database together with the model of the same world. Every
// act is done to both.
type stage struct {
	ctx   context.Context
	r     *commandRun
	clock *clocktest.Fake
	world *permissions.World
	// owner is the first owner, who does what nobody else needs to do.
	owner ids.ID
	// follower is a second process: it knows what it was told by the log and nothing else.
	follower *authzapp.Service
	// told is the last position of the log that the follower has seen, seen the last one whose
	// events were compared with the model.
	told, seen int64
	serial     int
	// direct is the structure with direct channels, places what the asked processes read of it.
	direct directPlaces
	places *remembered
}

// directPlaces adds the participants of direct channels to the structure of chat.
type directPlaces struct {
	authz.StructureSource
	db *pg.DB
}

func (d directPlaces) participants(ctx context.Context) (map[ids.ID][]ids.ID, error) {
	rows, err := d.db.Querier(ctx).Query(ctx, "SELECT channel_id, principal_id FROM model_participants ORDER BY principal_id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[ids.ID][]ids.ID{}
	for rows.Next() {
		var channel, principal ids.ID
		if err := rows.Scan(&channel, &principal); err != nil {
			return nil, err
		}
		out[channel] = append(out[channel], principal)
	}
	return out, rows.Err()
}

// Channels implements authz.StructureSource.
func (d directPlaces) Channels(ctx context.Context) ([]authz.ChannelState, error) {
	list, err := d.StructureSource.Channels(ctx)
	if err != nil {
		return nil, err
	}
	in, err := d.participants(ctx)
	for i := range list {
		list[i].Participants = in[list[i].ID]
	}
	return list, err
}

// Channel implements authz.StructureSource.
func (d directPlaces) Channel(ctx context.Context, id ids.ID) (authz.ChannelState, bool, error) {
	c, ok, err := d.StructureSource.Channel(ctx, id)
	if err != nil || !ok || !c.Direct {
		return c, ok, err
	}
	in, err := d.participants(ctx)
	c.Participants = in[id]
	return c, ok, err
}

// remembered keeps what the source says about single places between two acts: a play asks about
// the same few thousands of times. A unit asks the source.
type remembered struct {
	authz.StructureSource
	channels map[ids.ID]authz.ChannelState
	found    map[ids.ID]bool
}

func (r *remembered) forget() {
	r.channels, r.found = map[ids.ID]authz.ChannelState{}, map[ids.ID]bool{}
}

// Channel implements authz.StructureSource.
func (r *remembered) Channel(ctx context.Context, id ids.ID) (authz.ChannelState, bool, error) {
	if txn.Current(ctx) != nil {
		return r.StructureSource.Channel(ctx, id)
	}
	if found, known := r.found[id]; known {
		return r.channels[id], found, nil
	}
	c, ok, err := r.StructureSource.Channel(ctx, id)
	if err == nil {
		r.channels[id], r.found[id] = c, ok
	}
	return c, ok, err
}

// living says that every credential lives: the acts have none, and identity has tests of its own.
type living struct{}

// CheckActive implements authz.CredentialSource.
func (living) CheckActive(context.Context, actor.Actor) error { return nil }

// silent keeps no record: the questions of the model are no acts of anybody.
type silent struct{}

// Allowed implements auditing.Recorder.
func (silent) Allowed(context.Context, auditing.Entry) error { return nil }

// Denied implements auditing.Recorder.
func (silent) Denied(context.Context, auditing.Entry) {}

const (
	modelTables = `CREATE TABLE IF NOT EXISTS model_participants (channel_id uuid, principal_id uuid)`
	// modelReset leaves an instance with nothing but its first owner.
	modelReset = `DELETE FROM model_participants; DELETE FROM grants; DELETE FROM group_memberships;
		DELETE FROM groups WHERE kind <> 'everyone'; DELETE FROM threads; DELETE FROM channels; DELETE FROM spaces;
		DELETE FROM owners WHERE principal_id <> (SELECT principal_id FROM owners ORDER BY added_at, principal_id LIMIT 1);
		UPDATE principals SET status = 'disabled', disabled_at = now()
		WHERE status = 'active' AND id NOT IN (SELECT principal_id FROM owners)`
)

// onStage builds a process, lets fn play on it and takes it down.
func onStage(ctx context.Context, c *Config, rt *rapid.T, fn func(s *stage)) error {
	quietly := Console{Out: io.Discard, Err: io.Discard}
	return withConfig(ctx, c, quietly, func(ctx context.Context, r *commandRun) error {
		fake := clocktest.New(time.Now().Truncate(time.Second))
		r.clock = fake
		return r.inModules(ctx, func(ctx context.Context, r *commandRun) error {
			s := &stage{ctx: ctx, r: r, clock: fake, world: &permissions.World{Now: fake.Now()}}
			s.direct = directPlaces{r.chat.rights, r.db}
			s.places = &remembered{StructureSource: s.direct}
			s.places.forget()
			r.authz.service.SetSources(s.sources())
			if err := s.begin(rt); err != nil {
				return err
			}
			fn(s)
			return nil
		})
	})
}

func (s *stage) sources() authzapp.Sources {
	return authzapp.Sources{
		Principals: s.r.identity.sources, Credentials: living{}, Places: s.direct,
		Agents: agentsapp.NewPolicies(agentspg.NewAgents(s.r.db), s.r.activePrincipals),
	}
}

// process is a further process on the same database.
func (s *stage) process() *authzapp.Service {
	svc := authzapp.New(s.r.config.Modules.Authz, authzapp.Deps{
		Store: authzpg.New(s.r.db), Units: s.r.units, Clock: s.clock, Counters: s.r.instance.service, Versions: s.r.instance.service,
		Barrier: s.r.db.Barrier(), Events: s.r.sync.appender, Audit: silent{}, Log: slog.New(slog.DiscardHandler),
	})
	sources := s.sources()
	sources.Places = s.places
	svc.SetSources(sources)
	return svc
}

// begin reads what the instance starts with: its owner and the group of everyone.
func (s *stage) begin(rt *rapid.T) error {
	owners, err := s.r.identity.sources.ActiveOwners(s.ctx)
	if err != nil || len(owners) != 1 {
		return errors.Join(err, fmt.Errorf("%d owners", len(owners)))
	}
	s.owner = owners[0]
	s.world.Principals = []*permissions.Principal{{ID: s.owner, Kind: "person", Active: true, Owner: true}}
	var everyone ids.ID
	if err := s.r.db.Querier(s.ctx).QueryRow(s.ctx, "SELECT id FROM groups WHERE kind = 'everyone'").Scan(&everyone); err != nil {
		return fmt.Errorf("find the group of everyone: %w", err)
	}
	s.world.Groups = []*permissions.Group{{ID: everyone, Everyone: true}}
	if s.told, err = s.head(); err != nil {
		return err
	}
	s.seen = s.told
	s.populate(rt)
	s.follower = s.process()
	if err := s.follower.LoadStructure(s.ctx); err != nil {
		return err
	}
	for _, p := range s.world.Principals {
		if err := s.follower.Fill(s.ctx, p.ID); err != nil {
			return err
		}
	}
	s.seen, err = s.head()
	s.told = s.seen
	return err
}

// populate makes a small company: people with a guest, two agents, an app, spaces with channels
// that inherit and that do not, conversations, and groups.
func (s *stage) populate(rt *rapid.T) {
	for i := range 4 {
		s.addPerson(rt, i == 3)
	}
	for range 2 {
		s.addAgent(rt)
	}
	s.addApp(rt)
	for i := range 2 {
		space := s.addSpace(rt)
		s.addChannel(rt, space, true)
		s.addChannel(rt, space, i == 0)
	}
	people := s.ofKind("person")
	s.addDirect(rt, people[1:3], ids.ID{})
	s.addDirect(rt, people[:2], s.ofKind("agent")[0])
	for range 2 {
		s.addGroup(rt)
	}
}

func (s *stage) ofKind(kind string) []ids.ID {
	var out []ids.ID
	for _, p := range s.world.Principals {
		if p.Kind == kind {
			out = append(out, p.ID)
		}
	}
	return out
}

func (s *stage) head() (int64, error) {
	return s.r.instance.service.Current(s.ctx, instance.CounterEventSeq)
}

func (s *stage) version() (int64, error) {
	return s.r.instance.service.Current(s.ctx, instance.CounterPermissionVersion)
}

func (s *stage) name(prefix string) string {
	s.serial++
	return fmt.Sprintf("%s-%s-%d", prefix, ids.New().String()[24:], s.serial)
}

// as is the context of a signed-in member with a fresh proof.
func (s *stage) as(id ids.ID) context.Context {
	kind := actor.KindPerson
	if p := s.world.Principal(id); p != nil {
		kind = actor.Kind(p.Kind)
	}
	return authzapp.WithRequest(actor.With(s.ctx, actor.Actor{
		ID: id, Kind: kind, SessionID: ids.New(), StepUpUntil: s.clock.Now().Add(time.Hour),
	}))
}

func must(rt *rapid.T, what string, err error) {
	if err != nil {
		rt.Fatalf("%s: %v", what, err)
	}
}

func (s *stage) addPerson(rt *rapid.T, guest bool) {
	p, _, err := s.r.identity.service.CreateUser(s.as(s.owner), identityapp.CreateUserInput{Handle: s.name("p"), DisplayName: s.name("Person"), Guest: guest})
	must(rt, "make a person", err)
	s.world.Principals = append(s.world.Principals, &permissions.Principal{ID: p.ID, Kind: "person", Active: true, Guest: guest})
}

func (s *stage) addAgent(rt *rapid.T) {
	a, _, err := s.r.agents.service.Create(s.as(s.owner), agentsapp.NewAgent{
		Handle: s.name("a"), DisplayName: s.name("Agent"), ToolClass: "chat", Billing: agentsdomain.Billing{BillingMode: agentsdomain.BillingLocal},
	})
	must(rt, "make an agent", err)
	s.world.Principals = append(s.world.Principals, &permissions.Principal{ID: a.ID, Kind: "agent", Active: true})
}

func (s *stage) addApp(rt *rapid.T) {
	id := ids.New()
	s.write(rt, txn.RightsChange{Action: "app.install", Principals: []ids.ID{id}}, nil,
		"INSERT INTO principals (id, kind, handle, display_name, search_text, created_at) VALUES ($1, 'app', $2, $2, $2, now())", id, s.name("x"))
	s.world.Principals = append(s.world.Principals, &permissions.Principal{ID: id, Kind: "app", Active: true})
}

func (s *stage) addSpace(rt *rapid.T) ids.ID {
	space, err := s.r.chat.spaces.Create(s.as(s.owner), chatapp.NewSpace{Name: s.name("Space")})
	must(rt, "make a space", err)
	s.world.Spaces = append(s.world.Spaces, &permissions.Space{ID: space.ID})
	return space.ID
}

func (s *stage) addChannel(rt *rapid.T, space ids.ID, inherits bool) {
	c, err := s.r.chat.channels.Create(s.as(s.owner), chatapp.NewChannel{SpaceID: space, Kind: "text", Name: s.name("channel"), Inherits: inherits})
	must(rt, "make a channel", err)
	s.world.Channels = append(s.world.Channels, &permissions.Channel{ID: c.ID, Space: space, Inherits: inherits})
}

// addDirect begins a conversation. An agent takes part as its operator.
func (s *stage) addDirect(rt *rapid.T, people []ids.ID, operator ids.ID) {
	c := &permissions.Channel{ID: ids.New(), Direct: true, Operator: operator, Participants: slices.Clone(people)}
	mode := "none"
	if !operator.IsZero() {
		mode = "own"
	}
	thread := ids.New()
	change := txn.RightsChange{
		Action: "dm.create", Principals: present(append(slices.Clone(people), operator)...), Targets: []txn.Target{{Kind: "channel", ID: c.ID}},
	}
	err := s.try(change, func(ctx context.Context, exec execute) error {
		if err := exec(`INSERT INTO channels (id, kind, ck, inherits, main_thread_id, operator_mode, operator_agent_id, created_by, created_at, updated_at)
			VALUES ($1, 'dm', 'V', false, $2, $3, $4, $5, now(), now())`, c.ID, thread, mode, operator.Ptr(), people[0]); err != nil {
			return err
		}
		if err := exec("INSERT INTO threads (id, channel_id, kind, last_message_at, active_at, created_at, updated_at) VALUES ($1, $2, 'main', now(), now(), now(), now())", thread, c.ID); err != nil {
			return err
		}
		for _, p := range people {
			if err := exec("INSERT INTO model_participants VALUES ($1, $2)", c.ID, p); err != nil {
				return err
			}
		}
		return s.r.sync.appender.Append(ctx, directEvent("channel.created", c))
	})
	if !s.opens(rt, err, func() { s.world.Channels = append(s.world.Channels, c) }) {
		must(rt, "begin a conversation", err)
	}
}

func present(list ...ids.ID) []ids.ID {
	return slices.DeleteFunc(list, ids.ID.IsZero)
}

func directEvent(kind string, c *permissions.Channel) eventlog.Event {
	type member struct {
		PrincipalID ids.ID  `json:"principal_id"`
		LeftAt      *string `json:"left_at"`
	}
	members := []member{}
	for _, p := range c.Participants {
		members = append(members, member{PrincipalID: p})
	}
	return eventlog.Event{
		Type: kind, Place: eventlog.Place{ChannelID: c.ID}, Resource: eventlog.Resource{Type: "channel", ID: c.ID},
		Payload: map[string]any{
			"id": c.ID, "kind": "dm", "space_id": nil, "inherits": false, "read_only": nil, "archived": nil,
			"operator": map[string]any{"agent_id": c.Operator.Ptr()}, "participants": members,
		},
	}
}

func (s *stage) addGroup(rt *rapid.T) {
	g, err := s.r.authz.service.CreateGroup(s.as(s.owner), authzapp.NewGroup{Name: s.name("Group"), Handle: s.name("g"), Mentionable: true})
	must(rt, "make a group", err)
	s.world.Groups = append(s.world.Groups, &permissions.Group{ID: g.ID})
}

type execute func(sql string, args ...any) error

// unit changes rights by hand, as a use case that does not exist yet would.
func (s *stage) unit(rt *rapid.T, change txn.RightsChange, fn func(ctx context.Context, exec execute) error) {
	must(rt, change.Action, s.try(change, fn))
}

// try is unit for a change that may be refused.
func (s *stage) try(change txn.RightsChange, fn func(ctx context.Context, exec execute) error) error {
	opts := []txn.Option{}
	if change.Action != "" {
		opts = append(opts, txn.WithRightsChange(change))
	}
	return s.r.units.Do(s.as(s.owner), func(ctx context.Context) error {
		tx, err := pg.Tx(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, func(sql string, args ...any) error {
			_, err := tx.Exec(ctx, sql, args...)
			return err
		})
	}, opts...)
}

func (s *stage) write(rt *rapid.T, change txn.RightsChange, event *eventlog.Event, sql string, args ...any) {
	s.unit(rt, change, func(ctx context.Context, exec execute) error {
		if err := exec(sql, args...); err != nil || event == nil {
			return err
		}
		return s.r.sync.appender.Append(ctx, *event)
	})
}

// channelEvent is the event of a channel as it stands.
func (s *stage) channelEvent(ctx context.Context, kind string, id ids.ID) (eventlog.Event, error) {
	c, err := s.r.chat.channels.Get(ctx, id)
	return eventlog.Event{
		Type: kind, Place: eventlog.Place{SpaceID: c.SpaceID, ChannelID: id}, Resource: eventlog.Resource{Type: "channel", ID: id},
		Payload: chathttp.Payloads{}.Channel(c),
	}, err
}

// events reads the log behind a position.
func (s *stage) events(after int64) ([]eventlog.Record, error) {
	head, err := s.head()
	if err != nil {
		return nil, err
	}
	return s.r.sync.events.From(s.ctx, after+1, head, 10_000)
}

// follow tells the follower, and the process itself when it is its turn, what the log says.
func (s *stage) follow(svc *authzapp.Service, after int64) (int64, error) {
	list, err := s.events(after)
	for _, e := range list {
		svc.Observe(s.ctx, authorize.Observed{
			Seq: e.Seq, Type: e.Type, SpaceID: e.Place.SpaceID, ChannelID: e.Place.ChannelID, ThreadID: e.Place.ThreadID,
			PrincipalID: e.PrincipalID, PermissionVersion: e.PermissionVersion, Payload: e.Payload,
		})
		after = e.Seq
	}
	return after, err
}
