// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestAccessIsExplained(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "read", bob)
	group := newGroup(t, s, ana)
	grantGroup(t, s, group, "write", "space", place.Space)
	on := func(who *harness.Client, target, action string) harness.Query {
		q := harness.Query{"principal_id": who.ID, "target": target}
		if action != "" {
			q["action"] = action
		}
		return q
	}
	mine := ana.Call(t, "explainAccess", on(ana, "thread:"+place.Thread, "message.create")).OK(t)
	if mine.Str("decision") != "allow" || mine.Str("level") != "write" || mine.Str("steps.0.group_id") != group || mine.At("steps.0.grant_id") != nil {
		t.Errorf("explained %s", mine.Body)
	}
	if text := mine.Str("summary"); !strings.HasPrefix(text, "You have `write` in #channel") || !strings.Contains(text, "a member of group Staff") {
		t.Errorf("summary %q", text)
	}
	denied := bob.Call(t, "explainAccess", on(bob, "channel:"+place.Channel, "message.create")).OK(t)
	if denied.Str("decision") != "deny" || denied.Str("reason") != "level_insufficient" || denied.Str("needed.0.level") != "write" ||
		denied.Str("ask.0") != owner.ID || !strings.Contains(denied.Str("summary"), "Ask Olga") {
		t.Errorf("explained %s", denied.Body)
	}
	owner.Call(t, "explainAccess", on(ana, "instance", "")).OK(t)
	holders := owner.Call(t, "listAccessHolders", harness.Query{"target": "space:" + place.Space, "limit": "2"}).OK(t)
	rest := owner.Call(t, "listAccessHolders", harness.Query{"target": "space:" + place.Space, "cursor": holders.Str("next_cursor")}).OK(t)
	if len(holders.List("items")) != 2 || len(rest.List("items")) != 1 || holders.Str("items.0.sources.0.text") == "" {
		t.Errorf("holders %s %s", holders.Body, rest.Body)
	}
	hidden, missing := on(ana, "channel:"+s.Space(t, "read").Channel, ""), on(ana, "channel:"+harness.NewID(), "")
	one, other := ana.Call(t, "explainAccess", hidden), ana.Call(t, "explainAccess", missing)
	one.Refused(t, "not_found")
	other.Refused(t, "not_found")
	agent := s.Agent(t, "helper")
	refuse(t,
		refusal{"about another", bob, "explainAccess", with(on(ana, "space:"+place.Space, "")), "forbidden", "level_insufficient"},
		refusal{"an agent", agent, "explainAccess", with(on(agent, "instance", "")), "forbidden", ""},
		refusal{"unknown action", bob, "explainAccess", with(on(bob, "instance", "moon.land")), "validation_failed", ""},
		refusal{"unknown member", owner, "explainAccess", with(harness.Query{"principal_id": harness.NewID(), "target": "instance"}), "not_found", ""},
		refusal{"a reader", bob, "listAccessHolders", with(harness.Query{"target": "space:" + place.Space}), "forbidden", ""},
		refusal{"hidden", s.Person(t, "eve"), "listAccessHolders", with(harness.Query{"target": "space:" + place.Space}), "not_found", ""},
		refusal{"bad cursor", owner, "listAccessHolders", with(harness.Query{"target": "instance", "cursor": badQuery}), "cursor_invalid", ""},
	)
}

func TestAccessIsPreviewed(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "write", bob)
	group := newGroup(t, s, ana, bob)
	change := func(kind string, body harness.Body) harness.Body {
		return harness.Body{"change": harness.Body{kind: body}}
	}
	grant := grantOf(group, "space", place.Space, "read")
	grant["subject"] = harness.Body{"kind": "group", "id": group}
	seen := owner.Call(t, "previewAccess", change("grant_create", grant)).OK(t)
	if seen.Int("affected") != 1 || seen.Str("items.0.principal_id") != ana.ID || seen.At("items.0.before.level") != nil || seen.Str("items.0.after.level") != "read" {
		t.Errorf("preview %s", seen.Body)
	}
	ana.Call(t, "getSpace", place.Space).Refused(t, "not_found") // Nothing was done.
	given := grantGroup(t, s, group, "read", "space", place.Space)
	agent := s.Agent(t, "helper")
	for kind, body := range map[string]harness.Body{
		"grant_revoke":     {"grant_id": given},
		"member_put":       {"group_id": group, "principal_id": agent.ID},
		"member_remove":    {"group_id": group, "principal_id": ana.ID},
		"group_delete":     {"group_id": group},
		"owner_add":        {"principal_id": ana.ID},
		"user_disable":     {"principal_id": ana.ID},
		"channel_inherits": {"channel_id": place.Channel, "inherits": false},
		"operator_set":     {"channel_id": place.Channel, "agent_id": agent.ID},
	} {
		if r := owner.Call(t, "previewAccess", change(kind, body)).OK(t); r.Int("affected") == 0 {
			t.Errorf("%s: %s", kind, r.Body)
		}
	}
	owner.Call(t, "previewAccess", change("owner_remove", harness.Body{"principal_id": owner.ID})).OK(t)
	refuse(t,
		refusal{"no change", owner, "previewAccess", with(harness.Body{"change": harness.Body{}}), "validation_failed", ""},
		refusal{"a writer", bob, "previewAccess", with(change("grant_create", grantOf(ana.ID, "space", place.Space, "read"))), "forbidden", ""},
		refusal{"hidden", s.Person(t, "eve"), "previewAccess", with(change("grant_create", grantOf(ana.ID, "space", place.Space, "read"))), "not_found", ""},
		refusal{"no owner", bob, "previewAccess", with(change("user_disable", harness.Body{"principal_id": ana.ID})), "forbidden", "not_owner"},
		refusal{"an agent", agent, "previewAccess", with(change("group_delete", harness.Body{"group_id": group})), "forbidden", ""},
	)
}
