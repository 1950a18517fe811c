// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestMessagesAreWrittenReadChangedAndDeleted(t *testing.T) {
	s := shared.Use(t)
	ana, bob := s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "write", ana, bob)
	watching := bob.Connect(t)
	body := harness.Message("Ahoy, <@" + bob.ID + ">!")
	made := ana.Call(t, "createMessage", place.Thread, body).Is(t, http.StatusCreated)
	id := made.Str("id")
	watching.Event(t, "message.created", func(e harness.Event) bool { return e.Str("data.message.id") == id })
	if again := ana.Call(t, "createMessage", place.Thread, body).Is(t, http.StatusOK); again.Str("id") != id {
		t.Errorf("a repeat wrote another message: %s", again.Body)
	}
	reply := harness.Message("Aye.")
	reply["reply_to_id"], reply["notify"] = id, "silent"
	if r := bob.Call(t, "createMessage", place.Thread, reply).OK(t); r.Str("reply_to.message_id") != id {
		t.Errorf("no reply: %s", r.Body)
	}
	page := bob.Call(t, "listMessages", place.Thread, harness.Query{"limit": "1"}).OK(t)
	before := bob.Call(t, "listMessages", place.Thread, harness.Query{"before": strconv.FormatInt(page.Int("items.0.thread_seq"), 10)}).OK(t)
	bob.Call(t, "listMessages", place.Thread, harness.Query{"after": "0"}).OK(t)
	bob.Call(t, "listMessages", place.Thread, harness.Query{"around": id}).OK(t)
	if before.Str("items.0.id") != id {
		t.Errorf("the page before: %s", before.Body)
	}
	read := bob.Call(t, "getMessage", id).OK(t)
	edited := ana.Call(t, "updateMessage", id, read.Version(t), harness.Body{"content": "Ahoy all!"}).OK(t)
	watching.Event(t, "message.updated", func(e harness.Event) bool { return e.Str("data.message.content") == "Ahoy all!" })
	ana.Call(t, "deleteMessage", id).Is(t, http.StatusNoContent)
	watching.Event(t, "message.deleted", func(e harness.Event) bool { return e.Str("data.message.id") == id })
	ana.Call(t, "deleteMessage", id).Is(t, http.StatusNoContent)
	refuse(t,
		refusal{"deleted", bob, "getMessage", with(id), "message_deleted", ""},
		refusal{"deleted", ana, "updateMessage", with(id, edited.Version(t), harness.Body{"content": "x"}), "message_deleted", ""},
	)
}

func TestMessagesAreRefused(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob, out, reader := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob"), s.Person(t, "out"), s.Person(t, "rea")
	place := s.Space(t, "write", ana, bob)
	s.Grant(t, reader, "read", "space", place.Space)
	body := harness.Message("first")
	made := ana.Call(t, "createMessage", place.Thread, body).OK(t)
	id := made.Str("id")
	edited := ana.Call(t, "updateMessage", id, made.Version(t), harness.Body{"content": "second"}).OK(t)
	other := harness.Message("other")
	other["client_msg_id"] = body["client_msg_id"]
	refuse(t,
		refusal{"other request", ana, "createMessage", with(place.Thread, other), "idempotency_key_reuse", ""},
		refusal{"reader", reader, "createMessage", with(place.Thread, harness.Message("x")), "forbidden", ""},
		refusal{"hidden", out, "createMessage", with(place.Thread, harness.Message("x")), "not_found", ""},
		refusal{"missing", ana, "createMessage", with(harness.NewID(), harness.Message("x")), "not_found", ""},
		refusal{"too large", ana, "createMessage", with(place.Thread, harness.Message(letters(300_000))), "payload_too_large", ""},
		refusal{"empty", ana, "createMessage", with(place.Thread, harness.Message("")), "validation_failed", ""},
		refusal{"two places", ana, "listMessages", with(place.Thread, harness.Query{"before": "1", "after": "1"}), "validation_failed", ""},
		refusal{"hidden", out, "listMessages", with(place.Thread), "not_found", ""},
		refusal{"hidden", out, "getMessage", with(id), "not_found", ""},
		refusal{"missing", ana, "getMessage", with(harness.NewID()), "not_found", ""},
		refusal{"old version", ana, "updateMessage", with(id, made.Version(t), harness.Body{"content": "x"}), "version_conflict", ""},
		refusal{"no version", ana, "updateMessage", with(id, harness.Body{"content": "x"}), "precondition_required", ""},
		refusal{"of another", bob, "updateMessage", with(id, edited.Version(t), harness.Body{"content": "x"}), "forbidden", ""},
		refusal{"of another, by the owner", owner, "updateMessage", with(id, edited.Version(t), harness.Body{"content": "x"}), "forbidden", ""},
		refusal{"hidden", out, "updateMessage", with(id, edited.Version(t), harness.Body{"content": "x"}), "not_found", ""},
		refusal{"missing", ana, "updateMessage", with(harness.NewID(), stale, harness.Body{"content": "x"}), "not_found", ""},
		refusal{"too large", ana, "updateMessage", with(id, edited.Version(t), harness.Body{"content": letters(300_000)}), "payload_too_large", ""},
		refusal{"of another", bob, "deleteMessage", with(id), "forbidden", ""},
		refusal{"hidden", out, "deleteMessage", with(id), "not_found", ""},
		refusal{"missing", ana, "deleteMessage", with(harness.NewID()), "not_found", ""},
	)
	// What keeps order, a moderator may delete.
	second := ana.Say(t, place.Thread, "moderate me")
	owner.Call(t, "deleteMessage", second.Str("id"), harness.Query{"reason": "off topic"}).Is(t, http.StatusNoContent)
}

func TestPlacesThatTakeNoMessages(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	place := s.Space(t, "write", ana)
	first := ana.Say(t, place.Thread, "first")
	s.DB.Exec(t, "UPDATE channels SET slow_mode_seconds = 3600 WHERE id = $1", place.Channel)
	slow := ana.Call(t, "createMessage", place.Thread, harness.Message("second")).Refused(t, "rate_limited", "slow_mode")
	if slow.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.DB.Exec(t, "UPDATE channels SET slow_mode_seconds = 0, read_only = true, read_only_source = 'mirror' WHERE id = $1", place.Channel)
	refuse(t,
		refusal{"mirror", ana, "createMessage", with(place.Thread, harness.Message("third")), "channel_read_only", ""},
		refusal{"mirror", ana, "updateMessage", with(first.Str("id"), first.Version(t), harness.Body{"content": "x"}), "channel_read_only", ""},
	)
	// A line of the system: no operation writes one yet.
	s.DB.Exec(t, "UPDATE channels SET read_only = false, read_only_source = NULL WHERE id = $1", place.Channel)
	s.DB.Exec(t, "UPDATE messages SET kind = 'system', system_code = 'thread_renamed' WHERE id = $1", first.Str("id"))
	refuse(t,
		refusal{"system line", ana, "updateMessage", with(first.Str("id"), first.Version(t), harness.Body{"content": "x"}), "conflict", "system_message"},
		refusal{"system line", ana, "deleteMessage", with(first.Str("id")), "conflict", "system_message"},
	)
}
