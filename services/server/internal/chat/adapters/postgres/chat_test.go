// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

func TestSetupMakesTheFirstPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	err := w.units.Do(w.ctx, func(ctx context.Context) error {
		return txn.Publish(ctx, identity.SetupCompleted{OwnerID: w.owner})
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.log.take(), []string{"space.created", "channel.created", "thread.created"}; !slices.Equal(got, want) {
		t.Errorf("events %v", got)
	}
	list, err := w.channels.List(w.ctx, app.ChannelQuery{Limit: 10})
	if err != nil || len(list) != 1 || list[0].Name != "general" || list[0].MainThreadID.IsZero() || list[0].CreatedBy != w.owner {
		t.Fatalf("channels %+v, %v", list, err)
	}
	if len(w.rules.granted) != 1 || w.rules.granted[0] != (authz.Target{Kind: "space", ID: list[0].SpaceID}) {
		t.Errorf("granted %v", w.rules.granted)
	}
}

func TestSpacesStandInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.space("A"), w.space("B")
	between, err := w.spaces.Create(w.ctx, app.NewSpace{Name: "A and a half", AfterID: a.ID})
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.spaces.List(w.ctx, app.SpaceQuery{Limit: 10})
	if err != nil || len(list) != 3 || list[0].ID != a.ID || list[1].ID != between.ID || list[2].ID != b.ID {
		t.Errorf("order %v, %v", list, err)
	}
	if _, err := w.spaces.Create(w.ctx, app.NewSpace{Name: "C", AfterID: ids.New()}); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("behind a stranger: %v", err)
	}
	if _, err := w.spaces.Create(w.ctx, app.NewSpace{Name: "a"}); reasonOf(err) != "conflict(name_taken)" {
		t.Errorf("a taken name: %v", err)
	}
}

func TestSiblingsGetFreshKeysWhenThereIsNoRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.space("A"), w.space("B")
	long := a.Key + "000000000000000000000000000000000000000000000000000000000001"
	w.db.Exec(t, "UPDATE spaces SET ck = $1 WHERE id = $2", long, b.ID)
	w.log.take()
	c, err := w.spaces.Create(w.ctx, app.NewSpace{Name: "C", AfterID: a.ID})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.log.take(); !slices.Equal(got, []string{"space.updated", "space.updated", "space.created"}) {
		t.Errorf("events %v", got)
	}
	list, err := w.spaces.List(w.ctx, app.SpaceQuery{Limit: 10})
	if err != nil || list[0].ID != a.ID || list[1].ID != c.ID || list[2].ID != b.ID {
		t.Errorf("order %v, %v", list, err)
	}
}

func TestAChangeNamesTheVersionItWasMadeFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.space("A")
	name, none := "B", (*string)(nil)
	changed, err := w.spaces.Update(w.ctx, s.ID, s.Version, app.SpacePatch{Name: &name, Icon: &none})
	if err != nil || changed.Name != "B" || changed.Version != 2 {
		t.Fatalf("%+v, %v", changed, err)
	}
	if _, err := w.spaces.Update(w.ctx, s.ID, s.Version, app.SpacePatch{Name: &name}); !errs.Is(err, errs.CodeVersionConflict) {
		t.Errorf("an old version: %v", err)
	}
	if _, err := w.spaces.Update(w.ctx, ids.New(), 1, app.SpacePatch{Name: &name}); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a stranger: %v", err)
	}
	w.rules.deny(authorize.ActionSpaceUpdate, errs.NotFound())
	if _, err := w.spaces.Update(w.ctx, s.ID, 2, app.SpacePatch{Name: &name}); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a hidden one: %v", err)
	}
}

func TestLimitsOfTheStructure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deps.Config.MaxSpaces, w.deps.Config.MaxPerSpace = 1, 1
	w.spaces, w.channels = app.NewSpaces(w.deps), app.NewChannels(w.deps)
	s := w.space("A")
	w.channel(s.ID, "a")
	_, err := w.spaces.Create(w.ctx, app.NewSpace{Name: "B"})
	_, err2 := w.channels.Create(w.ctx, app.NewChannel{SpaceID: s.ID, Kind: domain.KindText, Name: "b"})
	if reasonOf(err) != "conflict(limit_reached)" || reasonOf(err2) != "conflict(limit_reached)" {
		t.Errorf("%v, %v", err, err2)
	}
}

func TestAChannelComesWithItsMainThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.space("A")
	w.log.take()
	c := w.channel(s.ID, "general")
	if got := w.log.take(); !slices.Equal(got, []string{"channel.created", "thread.created"}) {
		t.Errorf("events %v", got)
	}
	main, err := w.threads.Get(w.ctx, c.MainThreadID)
	if err != nil || main.Kind != chat.ThreadMain || main.SpaceID != s.ID || main.Title != "" {
		t.Errorf("%+v, %v", main, err)
	}
	if _, err := w.channels.Create(w.ctx, app.NewChannel{SpaceID: s.ID, Kind: domain.KindText, Name: "General"}); reasonOf(err) != "conflict(name_taken)" {
		t.Errorf("a taken name: %v", err)
	}
	forum, err := w.channels.Create(w.ctx, app.NewChannel{SpaceID: s.ID, Kind: domain.KindForum, Name: "help"})
	if err != nil || !forum.MainThreadID.IsZero() {
		t.Errorf("a forum: %+v, %v", forum, err)
	}
}

func TestTheOperatorLearnsWhatItWorksWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	w.log.take()
	c, err := w.channels.SetOperator(w.ctx, c.ID, c.Version, domain.OperatorOwn, w.agent)
	if err != nil || c.Operator() != w.agent || c.ConfigVersion != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if got := w.log.take(); !slices.Equal(got, []string{"channel.updated", "agent.config_changed"}) {
		t.Errorf("set: %v", got)
	}
	if !slices.Contains(w.rules.affected, w.agent) {
		t.Error("the change of rights does not name the operator")
	}
	channels, err := w.structure.OperatorChannels(w.ctx, w.agent)
	if err != nil || !slices.Equal(channels, []ids.ID{c.ID}) {
		t.Errorf("channels of the operator: %v, %v", channels, err)
	}
	if c, err = w.channels.SetOperator(w.ctx, c.ID, c.Version, domain.OperatorOwn, w.agent); err != nil || w.log.take() != nil {
		t.Errorf("setting the same again: %v", err)
	}
	name := "renamed"
	if c, err = w.channels.Update(w.ctx, c.ID, c.Version, app.ChannelPatch{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if got := w.log.take(); !slices.Equal(got, []string{"channel.updated", "agent.config_changed"}) || c.ConfigVersion != 3 {
		t.Errorf("rename: %v", got)
	}
	prompt := "Answer briefly."
	skills := []domain.Skill{{Name: "deploy", Enabled: true}, {Name: "test"}}
	b, err := w.channels.UpdateBehavior(w.ctx, c.ID, c.BehaviorVersion, app.BehaviorPatch{Prompt: &prompt, Skills: &skills})
	if err != nil || b.BehaviorVersion != 2 {
		t.Fatal(err)
	}
	if got := w.log.take(); !slices.Equal(got, []string{"channel.updated", "channel.settings_changed", "agent.config_changed"}) {
		t.Errorf("behaviour: %v", got)
	}
	if b, err = w.channels.UpdateBehavior(w.ctx, c.ID, 2, app.BehaviorPatch{Prompt: &prompt, Skills: &skills}); err != nil || w.log.take() != nil || b.BehaviorVersion != 2 {
		t.Errorf("the same behaviour again: %v", err)
	}
	read, err := w.channels.Behavior(w.ctx, c.ID)
	if err != nil || read.Behavior.Prompt != prompt || len(read.Behavior.Skills) != 2 || read.Behavior.Skills[0].Name != "deploy" {
		t.Errorf("%+v, %v", read.Behavior, err)
	}
	if _, err = w.channels.SetOperator(w.ctx, c.ID, read.Version, domain.OperatorNone, ids.ID{}); err != nil {
		t.Fatal(err)
	}
	if got := w.log.take(); !slices.Equal(got, []string{"channel.updated", "agent.config_changed"}) {
		t.Errorf("unset: %v", got)
	}
}

func TestOnlyAnActiveAgentCanBeOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	for name, agent := range map[string]ids.ID{"a person": w.owner, "nobody": {}} {
		if _, err := w.channels.SetOperator(w.ctx, c.ID, c.Version, domain.OperatorOwn, agent); !errs.Is(err, errs.CodeValidationFailed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.channels.SetOperator(w.ctx, c.ID, c.Version, domain.OperatorInherit, w.agent); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("inherit with an agent: %v", err)
	}
}

func TestFaultsOfBehaviour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	four := []domain.Skill{{Name: "a"}, {Name: "a"}, {Name: "c"}, {Name: "d"}}
	_, err := w.channels.UpdateBehavior(w.ctx, c.ID, 1, app.BehaviorPatch{Skills: &four})
	if e := errs.As(err); e == nil || len(e.Fields) != 2 || e.Fields[0].Code != "too_many" || e.Fields[1].Pointer != "/skills/1/name" {
		t.Errorf("%v", err)
	}
}

func TestAnArchivedChannelTakesNoMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	w.log.take()
	archived, err := w.channels.Archive(w.ctx, c.ID, c.Version)
	if err != nil || archived.ArchivedAt == nil || archived.ArchivedBy != w.owner {
		t.Fatalf("%+v, %v", archived, err)
	}
	if _, err := w.channels.Archive(w.ctx, c.ID, c.Version); err != nil {
		t.Errorf("again: %v", err)
	}
	if got := w.log.take(); !slices.Equal(got, []string{"channel.archived"}) {
		t.Errorf("events %v", got)
	}
	if err := w.append(c.MainThreadID, "message", actor.KindPerson); reasonOf(err) != "forbidden(target_archived)" {
		t.Errorf("append: %v", err)
	}
	list, err := w.channels.List(w.ctx, app.ChannelQuery{Limit: 10})
	if err != nil || len(list) != 0 {
		t.Errorf("it is listed: %v, %v", list, err)
	}
	// The name is free for another channel now.
	w.channel(c.SpaceID, "general")
}

func (w *world) append(thread ids.ID, kind string, author actor.Kind) error {
	return w.units.Do(w.ctx, func(ctx context.Context) error {
		_, err := w.threads.AppendToThread(ctx, thread, kind, author)
		return err
	})
}

// TestNoMessageFollowsTheArchiving races writers with the archiving of their channel. Every
// writer that succeeds has done so before, because both take the place lock.
func TestNoMessageFollowsTheArchiving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := int64(0)
	for range 20 {
		wg.Go(func() {
			if err := w.append(c.MainThreadID, "message", actor.KindPerson); err == nil {
				mu.Lock()
				accepted++
				mu.Unlock()
			} else if reasonOf(err) != "forbidden(target_archived)" {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if _, err := w.channels.Archive(w.ctx, c.ID, c.Version); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if n := w.db.Count(t, "SELECT last_thread_seq FROM threads WHERE id = $1", c.MainThreadID); n != accepted {
		t.Errorf("%d numbers for %d accepted messages", n, accepted)
	}
}

func TestNumbersOfAThreadHaveNoGaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	const writers = 50
	var wg sync.WaitGroup
	var mu sync.Mutex
	var seqs []int64
	for i := range writers {
		wg.Go(func() {
			kind := []string{"message", "run", "system"}[i%3]
			err := w.units.Do(w.ctx, func(ctx context.Context) error {
				a, err := w.threads.AppendToThread(ctx, c.MainThreadID, kind, actor.KindPerson)
				if err == nil && i%10 == 9 {
					return errs.Internal(fmt.Errorf("a later step fails"))
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					seqs = append(seqs, a.ThreadSeq)
				}
				return err
			})
			if (err != nil) != (i%10 == 9) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	slices.Sort(seqs)
	for i, seq := range seqs {
		if seq != int64(i)+1 {
			t.Fatalf("numbers %v", seqs)
		}
	}
	info, err := w.threads.Info(w.ctx, c.MainThreadID)
	if err != nil || info.Counters.LastThreadSeq != 45 || info.Counters.MessageCount >= 45 || info.Counters.Rev != 45 || info.Counters.LastCountableSeq == 0 {
		t.Errorf("%+v, %v", info.Counters, err)
	}
}

func TestWhoOpensAClosedThreadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	thread := w.sideThread(c.ID, "Plans")
	closeIt := func() {
		w.db.Exec(t, "UPDATE threads SET state = 'closed', closed_at = now(), closed_by = $1, close_reason = 'resolved' WHERE id = $2", w.owner, thread)
	}
	closeIt()
	w.log.take()
	if err := w.append(thread, "message", actor.KindAgent); err != nil {
		t.Fatal(err)
	}
	if info, err := w.threads.Info(w.ctx, thread); err != nil || !info.Closed || w.log.take() != nil {
		t.Errorf("an agent has opened it: %v", err)
	}
	if err := w.append(thread, "message", actor.KindPerson); err != nil {
		t.Fatal(err)
	}
	if info, err := w.threads.Info(w.ctx, thread); err != nil || info.Closed || !slices.Equal(w.log.take(), []string{"thread.reopened"}) {
		t.Errorf("a person has not opened it: %v", err)
	}
}

func (w *world) sideThread(channel ids.ID, title string) ids.ID {
	w.t.Helper()
	var out ids.ID
	err := w.units.Do(w.ctx, func(ctx context.Context) error {
		t, err := w.threads.Create(ctx, chat.NewThread{ChannelID: channel, Kind: chat.ThreadSide, Title: title, TitleSource: "person", CreatedBy: w.owner})
		out = t.ID
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func TestTheUnitReadsAPlaceOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	err := w.units.Do(w.ctx, func(ctx context.Context) error {
		p, err := w.threads.Place(ctx, c.MainThreadID)
		if err != nil {
			return err
		}
		if p.Channel.SpaceID != c.SpaceID || p.Channel.TriggerRule != chat.TriggerMention || p.Thread.ID != c.MainThreadID {
			t.Errorf("%+v", p)
		}
		before := statements(ctx)
		state, ok, err := w.source.Channel(ctx, c.ID)
		if err != nil || !ok || !state.Inherits || state.SpaceID != c.SpaceID {
			t.Errorf("%+v %v %v", state, ok, err)
		}
		if channel, ok, err := w.source.ThreadChannel(ctx, c.MainThreadID); err != nil || !ok || channel != c.ID {
			t.Errorf("%v %v %v", channel, ok, err)
		}
		if n := statements(ctx) - before; n != 0 {
			t.Errorf("%d further statements", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheSourceOfRightsTellsTheStructure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	if _, err := w.channels.SetOperator(w.ctx, c.ID, c.Version, domain.OperatorOwn, w.agent); err != nil {
		t.Fatal(err)
	}
	all, err := w.source.Channels(w.ctx)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	one, ok, err := w.source.Channel(w.ctx, c.ID)
	if err != nil || !ok || one.OperatorID != w.agent || all[0].ID != one.ID || all[0].OperatorID != one.OperatorID || all[0].Inherits != one.Inherits {
		t.Errorf("%+v and %+v, %v", one, all[0], err)
	}
	if _, ok, err := w.source.Channel(w.ctx, ids.New()); ok || err != nil {
		t.Errorf("a stranger: %v %v", ok, err)
	}
	if _, ok, err := w.source.Space(w.ctx, ids.New()); ok || err != nil {
		t.Errorf("a stranger: %v %v", ok, err)
	}
	if _, ok, err := w.source.ThreadChannel(w.ctx, ids.New()); ok || err != nil {
		t.Errorf("a stranger: %v %v", ok, err)
	}
	spaces, err := w.source.Spaces(w.ctx)
	if err != nil || len(spaces) != 1 || spaces[0].Archived {
		t.Errorf("%v, %v", spaces, err)
	}
}

func TestListsShowWhatTheScopeAllows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.space("A"), w.space("B")
	open, closed := w.channel(a.ID, "open"), w.channel(a.ID, "closed")
	inherits := false
	if _, err := w.channels.Update(w.ctx, closed.ID, closed.Version, app.ChannelPatch{Inherits: &inherits}); err != nil {
		t.Fatal(err)
	}
	single := w.channel(b.ID, "single")
	other := w.channel(b.ID, "other")
	for name, c := range map[string]struct {
		scope    authorize.Scope
		spaces   []ids.ID
		channels []ids.ID
	}{
		"all":              {authorize.Scope{All: true}, []ids.ID{a.ID, b.ID}, []ids.ID{open.ID, closed.ID, single.ID, other.ID}},
		"nothing":          {authorize.Scope{}, nil, nil},
		"a space":          {authorize.Scope{Spaces: []ids.ID{a.ID}}, []ids.ID{a.ID}, []ids.ID{open.ID}},
		"a closed channel": {authorize.Scope{Spaces: []ids.ID{a.ID}, Channels: []ids.ID{closed.ID}}, []ids.ID{a.ID}, []ids.ID{open.ID, closed.ID}},
		"a single channel": {authorize.Scope{Channels: []ids.ID{single.ID}, PassingSpaces: []ids.ID{b.ID}}, []ids.ID{b.ID}, []ids.ID{single.ID}},
	} {
		w.rules.scope = c.scope
		spaces, err := w.spaces.List(w.ctx, app.SpaceQuery{Limit: 10})
		channels, err2 := w.channels.List(w.ctx, app.ChannelQuery{Limit: 10})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		var gotSpaces, gotChannels []ids.ID
		for _, s := range spaces {
			gotSpaces = append(gotSpaces, s.ID)
		}
		for _, x := range channels {
			gotChannels = append(gotChannels, x.ID)
		}
		if !sameSet(gotSpaces, c.spaces) || !sameSet(gotChannels, c.channels) {
			t.Errorf("%s: spaces %v channels %v", name, gotSpaces, gotChannels)
		}
		fromSnapshot, err := w.snapshot.SnapshotChannels(w.ctx, nil, ids.ID{}, 10)
		threads, err2 := w.snapshot.SnapshotThreads(w.ctx, nil, start, ids.ID{}, 10)
		if err != nil || err2 != nil || len(fromSnapshot) != len(c.channels) || len(threads) != len(c.channels) {
			t.Errorf("%s: the snapshot has %d channels and %d threads, %v %v", name, len(fromSnapshot), len(threads), err, err2)
		}
	}
	w.rules.scope = authorize.Scope{All: true}
	for target, n := range map[ids.ID]int{a.ID: 2, single.ID: 1, ids.New(): 0} {
		items, err := w.snapshot.SnapshotChannels(w.ctx, []ids.ID{target}, ids.ID{}, 10)
		if err != nil || len(items) != n {
			t.Errorf("%d channels for a target, want %d: %v", len(items), n, err)
		}
	}
}

func sameSet(a, b []ids.ID) bool {
	compare := func(x, y ids.ID) int { return x.Compare(y) }
	slices.SortFunc(a, compare)
	slices.SortFunc(b, compare)
	return slices.Equal(a, b)
}

func TestListsGoOnWithACursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	space := w.space("A")
	c := w.channel(space.ID, "c0")
	for i := range 4 {
		w.channel(space.ID, fmt.Sprintf("c%d", i+1))
		thread := w.sideThread(c.ID, fmt.Sprintf("t%d", i))
		if err := w.append(thread, "message", actor.KindPerson); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(time.Second)
	}
	limit := 2
	var names, titles []string
	var cursor *string
	for {
		page, err := w.handlers.ListChannels(w.ctx, rest.ListChannelsRequestObject{Params: rest.ListChannelsParams{Limit: &limit, Cursor: cursor}})
		if err != nil {
			t.Fatal(err)
		}
		list := rest.ChannelList(page.(rest.ListChannels200JSONResponse))
		for _, x := range list.Items {
			names = append(names, *x.Name)
		}
		if cursor = list.NextCursor; cursor == nil {
			break
		}
	}
	for _, sort := range []rest.SortOrder{rest.SortOrderActivity, rest.SortOrderCreated} {
		titles, cursor = nil, nil
		for {
			page, err := w.handlers.ListThreads(w.ctx, rest.ListThreadsRequestObject{
				ChannelID: c.ID, Params: rest.ListThreadsParams{Limit: &limit, Cursor: cursor, Sort: &sort},
			})
			if err != nil {
				t.Fatal(err)
			}
			list := rest.ThreadList(page.(rest.ListThreads200JSONResponse))
			for _, x := range list.Items {
				titles = append(titles, *x.Title)
			}
			if cursor = list.NextCursor; cursor == nil {
				break
			}
		}
		if !slices.Equal(titles, []string{"t3", "t2", "t1", "t0"}) {
			t.Errorf("by %s: %v", sort, titles)
		}
	}
	if !slices.Equal(names, []string{"c0", "c1", "c2", "c3", "c4"}) {
		t.Errorf("channels %v", names)
	}
	wrong := "x"
	if _, err := w.handlers.ListSpaces(w.ctx, rest.ListSpacesRequestObject{Params: rest.ListSpacesParams{Cursor: &wrong}}); !errs.Is(err, errs.CodeCursorInvalid) {
		t.Errorf("a wrong cursor: %v", err)
	}
}

func TestEmptyThreadsAreLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	w.sideThread(c.ID, "empty")
	for withEmpty, n := range map[bool]int{false: 0, true: 1} {
		list, err := w.threads.List(w.ctx, app.ThreadQuery{ChannelID: c.ID, WithEmpty: withEmpty, Limit: 10})
		if err != nil || len(list) != n {
			t.Errorf("%v: %d, %v", withEmpty, len(list), err)
		}
	}
	list, err := w.threads.List(w.ctx, app.ThreadQuery{ChannelID: c.ID, Kind: chat.ThreadMain, Limit: 10})
	if err != nil || len(list) != 1 {
		t.Errorf("main: %v %v", list, err)
	}
}

func TestAnswersHaveTheFormOfTheContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.channel(w.space("A").ID, "general")
	space, err := w.handlers.GetSpace(w.ctx, rest.GetSpaceRequestObject{SpaceID: c.SpaceID})
	if err != nil {
		t.Fatal(err)
	}
	thread, err := w.snapshot.ThreadPayload(w.ctx, c.MainThreadID)
	if err != nil {
		t.Fatal(err)
	}
	forum, err := w.channels.Create(w.ctx, app.NewChannel{SpaceID: c.SpaceID, Kind: domain.KindForum, Name: "help"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := w.handlers.GetChannel(w.ctx, rest.GetChannelRequestObject{ChannelID: forum.ID})
	if err != nil {
		t.Fatal(err)
	}
	for schema, v := range map[string]any{
		"Space": space.(rest.GetSpace200JSONResponse).Body, "Thread": thread, "Channel": answer.(rest.GetChannel200JSONResponse).Body,
	} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := contract.Value(schema, raw); err != nil {
			t.Errorf("%s: %v\n%s", schema, err, raw)
		}
	}
}

func TestTheRoleOfTheServerMayDoAllThis(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var owned int64
	if owned = w.db.Count(t, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename IN ('spaces','channels','channel_skill_bindings','threads')
	     AND has_table_privilege('bothy_app', quote_ident(tablename), 'SELECT, INSERT, UPDATE, DELETE')`); owned != 4 {
		t.Errorf("the role may use %d of 4 tables", owned)
	}
}
