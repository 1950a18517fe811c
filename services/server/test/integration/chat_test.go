// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// direct makes a direct channel of two people. No operation opens one yet.
func direct(t *testing.T, s *harness.Server, between ...*harness.Client) string {
	t.Helper()
	channel, thread := harness.NewID(), harness.NewID()
	s.DB.Exec(t, `WITH channel AS (
			INSERT INTO channels (id, kind, ck, inherits, main_thread_id, operator_mode, created_by, created_at, updated_at)
			VALUES ($1, 'dm', 'V', false, $2, 'none', $3, now(), now())
		) INSERT INTO threads (id, channel_id, kind, last_message_at, active_at, created_at, updated_at) VALUES ($2, $1, 'main', now(), now(), now(), now())`,
		channel, thread, between[0].ID)
	return channel
}

func TestSpacesAreMadeAndChanged(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	place := s.Space(t, "read", ana)
	watching, managing := ana.Connect(t), owner.Connect(t)
	space := ana.Call(t, "getSpace", place.Space).OK(t)
	name := s.Unique("Renamed")
	changed := owner.Call(t, "updateSpace", place.Space, space.Version(t), harness.Body{"name": name, "icon": "⚓", "color": nil}).OK(t)
	watching.Event(t, "space.updated", func(e harness.Event) bool { return e.Str("data.name") == name })
	made := owner.Call(t, "createSpace", harness.Body{"name": s.Unique("Behind"), "after_id": place.Space}).Is(t, http.StatusCreated)
	managing.Event(t, "space.created", func(e harness.Event) bool { return e.Str("data.id") == made.Str("id") })
	owner.Call(t, "listSpaces", harness.Query{"include_archived": "true", "limit": "1"}).OK(t)
	refuse(t,
		refusal{"bad cursor", ana, "listSpaces", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"same name", owner, "createSpace", with(harness.Body{"name": name}), "conflict", "name_taken"},
		refusal{"bad name", owner, "createSpace", with(harness.Body{"name": "a\u0007b"}), "validation_failed", ""},
		refusal{"no JSON", owner, "createSpace", with(harness.Raw(`{"name":`)), "malformed_request", ""},
		refusal{"other form", owner, "createSpace", with(harness.Raw(`name=x`), harness.Header{"Content-Type": "application/x-www-form-urlencoded"}), "unsupported_media_type", ""},
		refusal{"member", ana, "createSpace", with(harness.Body{"name": s.Unique("x")}), "forbidden", ""},
		refusal{"missing", ana, "getSpace", with(harness.NewID()), "not_found", ""},
		refusal{"missing", owner, "updateSpace", with(harness.NewID(), stale, harness.Body{"name": "x"}), "not_found", ""},
		refusal{"same name", owner, "updateSpace", with(made.Str("id"), made.Version(t), harness.Body{"name": name}), "conflict", "name_taken"},
		refusal{"old version", owner, "updateSpace", with(place.Space, space.Version(t), harness.Body{"name": "x"}), "version_conflict", ""},
		refusal{"no version", owner, "updateSpace", with(place.Space, harness.Body{"name": "x"}), "precondition_required", ""},
		refusal{"reader", ana, "updateSpace", with(place.Space, changed.Version(t), harness.Body{"name": "x"}), "forbidden", ""},
	)
}

func TestChannelsAreMadeChangedAndArchived(t *testing.T) {
	s := shared.Use(t)
	owner, ana, out := s.Owner(t), s.Person(t, "ana"), s.Person(t, "out")
	place := s.Space(t, "write", ana)
	watching := ana.Connect(t)
	name := s.Unique("deck")
	made := owner.Call(t, "createChannel", place.Space, harness.Body{"kind": "text", "name": name, "topic": "All hands", "after_id": place.Channel}).Is(t, http.StatusCreated)
	id := made.Str("id")
	watching.Event(t, "channel.created", func(e harness.Event) bool { return e.Str("data.id") == id })
	owner.Call(t, "createChannel", place.Space, harness.Body{"kind": "forum", "name": s.Unique("forum")}).Is(t, http.StatusCreated)
	ana.Call(t, "listChannels", harness.Query{"space_id": place.Space, "kind": "text", "limit": "1"}).OK(t)
	ana.Call(t, "getChannel", id).OK(t)
	changed := owner.Call(t, "updateChannel", id, made.Version(t), harness.Body{"topic": "Below", "slow_mode_seconds": 5}).OK(t)
	watching.Event(t, "channel.updated", func(e harness.Event) bool { return e.Str("data.topic") == "Below" })
	dm := direct(t, s, owner)
	refuse(t,
		refusal{"bad cursor", ana, "listChannels", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"same name", owner, "createChannel", with(place.Space, harness.Body{"kind": "text", "name": name}), "conflict", "name_taken"},
		refusal{"bad name", owner, "createChannel", with(place.Space, harness.Body{"kind": "text", "name": "a\nb"}), "validation_failed", ""},
		refusal{"missing space", owner, "createChannel", with(harness.NewID(), harness.Body{"kind": "text", "name": "x"}), "not_found", ""},
		refusal{"hidden space", out, "createChannel", with(place.Space, harness.Body{"kind": "text", "name": "x"}), "not_found", ""},
		refusal{"writer", ana, "createChannel", with(place.Space, harness.Body{"kind": "text", "name": "x"}), "forbidden", ""},
		refusal{"missing", owner, "getChannel", with(harness.NewID()), "not_found", ""},
		refusal{"hidden", out, "getChannel", with(id), "not_found", ""},
		refusal{"missing", owner, "updateChannel", with(harness.NewID(), stale, harness.Body{"topic": "x"}), "not_found", ""},
		refusal{"writer", ana, "updateChannel", with(id, changed.Version(t), harness.Body{"topic": "x"}), "forbidden", ""},
		refusal{"old version", owner, "updateChannel", with(id, made.Version(t), harness.Body{"topic": "x"}), "version_conflict", ""},
		refusal{"no version", owner, "updateChannel", with(id, harness.Body{"topic": "x"}), "precondition_required", ""},
		refusal{"not a forum", owner, "updateChannel", with(id, changed.Version(t), harness.Body{"forum": harness.Body{"guidelines": "x"}}), "conflict", "channel_kind"},
		refusal{"missing", owner, "archiveChannel", with(harness.NewID(), stale), "not_found", ""},
		refusal{"hidden", out, "archiveChannel", with(id, stale), "not_found", ""},
		refusal{"old version", owner, "archiveChannel", with(id, made.Version(t)), "version_conflict", ""},
		refusal{"no version", owner, "archiveChannel", with(id), "precondition_required", ""},
		refusal{"of others", owner, "archiveChannel", with(dm, harness.IfMatch(1)), "not_found", ""},
	)
	archived := owner.Call(t, "archiveChannel", id, changed.Version(t)).OK(t)
	watching.Event(t, "channel.archived", func(e harness.Event) bool { return e.Str("data.id") == id })
	owner.Call(t, "archiveChannel", id, archived.Version(t)).OK(t)
	ana.Call(t, "createMessage", made.Str("main_thread_id"), harness.Message("x")).Refused(t, "forbidden", "target_archived")
}

func TestBehaviorAndOperatorOfAChannel(t *testing.T) {
	s := shared.Use(t)
	owner, ana, caller, out := s.Owner(t), s.Person(t, "ana"), s.Person(t, "cara"), s.Person(t, "out")
	place := s.Space(t, "write", ana)
	s.Grant(t, caller, "trigger", "space", place.Space)
	agent, spare := s.Agent(t, "aida"), s.Agent(t, "spare")
	watching, managing := agent.Connect(t), owner.Connect(t)
	channel := owner.Call(t, "getChannel", place.Channel).OK(t)
	owner.Call(t, "setChannelOperator", place.Channel, channel.Version(t), harness.Body{"mode": "own", "agent_id": agent.ID}).OK(t)
	watching.Event(t, "agent.config_changed", func(e harness.Event) bool { return e.Str("data.channel_id") == place.Channel })
	behavior := caller.Call(t, "getChannelBehavior", place.Channel).OK(t)
	changed := owner.Call(t, "updateChannelBehavior", place.Channel, behavior.Version(t), harness.Body{
		"prompt": "Be brief.", "trigger_rule": "all", "skills": []any{harness.Body{"name": "knots", "enabled": true}},
	}).OK(t)
	managing.Event(t, "channel.settings_changed", func(e harness.Event) bool { return e.Str("data.channel_id") == place.Channel })
	// Parts of the behavior show in the channel, so its version has risen too.
	set := owner.Call(t, "getChannel", place.Channel).OK(t)
	refuse(t,
		refusal{"writer", ana, "getChannelBehavior", with(place.Channel), "forbidden", ""},
		refusal{"hidden", out, "getChannelBehavior", with(place.Channel), "not_found", ""},
		refusal{"caller", caller, "updateChannelBehavior", with(place.Channel, changed.Version(t), harness.Body{"prompt": "x"}), "forbidden", ""},
		refusal{"missing", owner, "updateChannelBehavior", with(harness.NewID(), stale, harness.Body{"prompt": "x"}), "not_found", ""},
		refusal{"old version", owner, "updateChannelBehavior", with(place.Channel, behavior.Version(t), harness.Body{"prompt": "x"}), "version_conflict", ""},
		refusal{"no version", owner, "updateChannelBehavior", with(place.Channel, harness.Body{"prompt": "x"}), "precondition_required", ""},
		refusal{"writer", ana, "setChannelOperator", with(place.Channel, set.Version(t), harness.Body{"mode": "none"}), "forbidden", ""},
		refusal{"missing", owner, "setChannelOperator", with(harness.NewID(), stale, harness.Body{"mode": "none"}), "not_found", ""},
		refusal{"old version", owner, "setChannelOperator", with(place.Channel, stale, harness.Body{"mode": "none"}), "version_conflict", ""},
		refusal{"no version", owner, "setChannelOperator", with(place.Channel, harness.Body{"mode": "none"}), "precondition_required", ""},
		refusal{"no agent", owner, "setChannelOperator", with(place.Channel, set.Version(t), harness.Body{"mode": "own", "agent_id": ana.ID}), "validation_failed", ""},
	)
	owner.Call(t, "setChannelOperator", place.Channel, set.Version(t), harness.Body{"mode": "own", "agent_id": spare.ID}).OK(t)
	watching.Event(t, "agent.config_changed", func(e harness.Event) bool { return e.Int("seq") > 0 && harness.At(e.Body, "data.removed") == true })
}

func TestThreadsBeginAndAreListed(t *testing.T) {
	s := shared.Use(t)
	owner, ana, out, reader := s.Owner(t), s.Person(t, "ana"), s.Person(t, "out"), s.Person(t, "rea")
	place := s.Space(t, "read", reader)
	s.Grant(t, ana, "write", "space", place.Space, "threads.create")
	watching := reader.Connect(t)
	parent := ana.Say(t, place.Thread, "What shall we do?")
	begin := func(text string) harness.Body {
		return harness.Body{"parent_message_id": parent.Str("id"), "message": harness.Message(text)}
	}
	first := begin("Sail.")
	made := ana.Call(t, "createThread", place.Channel, first).Is(t, http.StatusCreated)
	thread := made.Str("thread.id")
	watching.Event(t, "thread.created", func(e harness.Event) bool { return e.Str("data.id") == thread })
	watching.Event(t, "message.updated", func(e harness.Event) bool { return e.Str("data.message.started_thread_id") == thread })
	if again := ana.Call(t, "createThread", place.Channel, first).Is(t, http.StatusOK); again.Str("thread.id") != thread {
		t.Errorf("a repeat made another thread: %s", again.Body)
	}
	joined := owner.Call(t, "createThread", place.Channel, begin("Wait.")).Is(t, http.StatusOK)
	if joined.At("created") != false || joined.Str("thread.id") != thread {
		t.Errorf("the second did not join: %s", joined.Body)
	}
	reader.Call(t, "getThread", thread).OK(t)
	reader.Call(t, "listThreads", place.Channel, harness.Query{"sort": "created", "state": "open", "limit": "1", "include_empty": "true"}).OK(t)
	inside := ana.Say(t, thread, "Inside.")
	deleted := ana.Say(t, place.Thread, "Gone.")
	ana.Call(t, "deleteMessage", deleted.Str("id")).OK(t)
	other := begin("Other text.")
	other["message"].(harness.Body)["client_msg_id"] = first["message"].(harness.Body)["client_msg_id"]
	large := harness.Body{"title": "Large", "message": harness.Message(letters(300_000))}
	deep := harness.Body{"parent_message_id": inside.Str("id"), "message": harness.Message("Deep.")}
	ofDeleted := harness.Body{"parent_message_id": deleted.Str("id"), "message": harness.Message("Late.")}
	titled := func() harness.Body { return harness.Body{"title": "Plan", "message": harness.Message("Go.")} }
	refuse(t,
		refusal{"bad cursor", ana, "listThreads", with(place.Channel, harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"hidden", out, "listThreads", with(place.Channel), "not_found", ""},
		refusal{"hidden", out, "getThread", with(thread), "not_found", ""},
		refusal{"hidden", out, "createThread", with(place.Channel, titled()), "not_found", ""},
		refusal{"reader", reader, "createThread", with(place.Channel, titled()), "forbidden", ""},
		refusal{"too deep", ana, "createThread", with(place.Channel, deep), "conflict", "thread_depth"},
		refusal{"of deleted", ana, "createThread", with(place.Channel, ofDeleted), "message_deleted", ""},
		refusal{"other request", ana, "createThread", with(place.Channel, other), "idempotency_key_reuse", ""},
		refusal{"too large", ana, "createThread", with(place.Channel, large), "payload_too_large", ""},
	)
	s.DB.Exec(t, "UPDATE channels SET slow_mode_seconds = 3600 WHERE id = $1", place.Channel)
	ana.Call(t, "createThread", place.Channel, titled()).Refused(t, "rate_limited", "slow_mode")
	s.DB.Exec(t, "UPDATE channels SET read_only = true, read_only_source = 'mirror' WHERE id = $1", place.Channel)
	ana.Call(t, "createThread", place.Channel, titled()).Refused(t, "channel_read_only")
}

func TestLimitsOfTheStructure(t *testing.T) {
	s := harness.Start(t, harness.WithKeys(map[string]string{"space.max": "2", "channel.max_per_space": "1"}))
	owner := s.Owner(t)
	place := s.Space(t, "read")
	refuse(t,
		refusal{"spaces", owner, "createSpace", with(harness.Body{"name": "Second"}), "conflict", "limit_reached"},
		refusal{"channels", owner, "createChannel", with(place.Space, harness.Body{"kind": "text", "name": "second"}), "conflict", "limit_reached"},
	)
}

func letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a'
	}
	return string(b)
}
