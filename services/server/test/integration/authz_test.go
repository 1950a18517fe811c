// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

const minute = time.Minute

func grantOf(subject, kind, target, level string) harness.Body {
	return harness.Body{
		"subject": harness.Body{"kind": "principal", "id": subject}, "target": harness.Body{"kind": kind, "id": target}, "level": level,
	}
}

func TestGrantsOpenAndCloseASpace(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "read", bob)
	watching, managing := ana.Connect(t), owner.Connect(t)
	ana.Call(t, "getSpace", place.Space).Refused(t, "not_found")
	made := owner.Call(t, "createGrant", grantOf(ana.ID, "space", place.Space, "write")).Is(t, http.StatusCreated)
	id := made.Str("id")
	watching.Event(t, "access.changed", func(e harness.Event) bool { return e.Str("data.gained.0.target.id") == place.Space })
	ana.Call(t, "getSpace", place.Space).OK(t)
	owner.Call(t, "getGrant", id).OK(t)
	ana.Call(t, "getGrant", id).OK(t)
	for _, query := range []harness.Query{
		{"target": "space:" + place.Space}, {"target": "channel:" + place.Channel, "include_inherited": "true"}, {"target": "instance"}, {"subject_id": ana.ID},
	} {
		owner.Call(t, "listGrants", query).OK(t)
	}
	hints := ana.Call(t, "getAccessHints", harness.Query{"targets": "space:" + place.Space + ",channel:" + place.Channel}).OK(t)
	if len(hints.List("items")) != 2 || hints.Str("items.0.level") != "write" {
		t.Errorf("hints: %s", hints.Body)
	}
	replaced := grantOf(ana.ID, "space", place.Space, "trigger")
	replaced["replaces"] = id
	id = owner.Call(t, "createGrant", replaced).OK(t).Str("id")
	managing.Event(t, "grant.changed", func(e harness.Event) bool { return e.Str("data.change") == "replaced" && e.Str("data.grant.id") == id })
	owner.Call(t, "revokeGrant", id).Is(t, http.StatusNoContent)
	watching.Event(t, "access.changed", func(e harness.Event) bool { return e.Str("data.lost.0.id") == place.Space })
	ana.Call(t, "getSpace", place.Space).Refused(t, "not_found")
}

func TestGrantsAreRefused(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob, outsider := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob"), s.Person(t, "otto")
	place := s.Space(t, "write", bob)
	given := s.Grant(t, ana, "manage", "space", place.Space)
	weak := owner.Call(t, "createGrant", grantOf(outsider.ID, "channel", place.Channel, "read")).OK(t).Str("id")
	tired := s.Person(t, "tia")
	strong := s.Grant(t, tired, "manage", "space", place.Space)
	export := grantOf(outsider.ID, "space", place.Space, "read")
	export["capabilities"] = []string{"export"}
	never := grantOf(outsider.ID, "space", place.Space, "read")
	never["expires_at"] = "0001-01-01T00:00:00Z"
	everything := s.Grant(t, outsider, "read", "space", place.Space, "export")
	tire(t, tired)
	refuse(t,
		refusal{"there is one", owner, "createGrant", with(grantOf(bob.ID, "space", place.Space, "read")), "conflict", "grant_exists"},
		refusal{"without presence", tired, "createGrant", with(grantOf(bob.ID, "channel", place.Channel, "manage")), "step_up_required", ""},
		refusal{"a writer gives nothing", bob, "createGrant", with(grantOf(outsider.ID, "channel", place.Channel, "write")), "forbidden", ""},
		refusal{"hidden target", s.Person(t, "eve"), "createGrant", with(grantOf(bob.ID, "space", place.Space, "read")), "not_found", ""},
		refusal{"an end before all time", owner, "createGrant", with(never), "validation_failed", ""},
		refusal{"unknown level", owner, "createGrant", with(grantOf(bob.ID, "space", place.Space, "own")), "validation_failed", ""},
		refusal{"missing", owner, "getGrant", with(harness.NewID()), "not_found", ""},
		refusal{"of others", bob, "getGrant", with(given), "not_found", ""},
		refusal{"missing", owner, "revokeGrant", with(harness.NewID()), "not_found", ""},
		refusal{"hidden", bob, "revokeGrant", with(given), "not_found", ""},
		refusal{"strong without presence", tired, "revokeGrant", with(given), "step_up_required", ""},
		refusal{"more than one has", ana, "revokeGrant", with(everything), "forbidden", ""},
		refusal{"bad cursor", owner, "listGrants", with(harness.Query{"subject_id": ana.ID, "cursor": badQuery}), "cursor_invalid", ""},
		refusal{"bad cursor", owner, "listGroups", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"bad target", ana, "getAccessHints", with(harness.Query{"targets": "moon:1"}), "validation_failed", ""},
		refusal{"no target", ana, "getAccessHints", nil, "validation_failed", ""},
	)
	_ = strong
	// Everybody may give up what is her own.
	outsider.Call(t, "revokeGrant", weak).Is(t, http.StatusNoContent)
}

func TestTheGroupOfAllIsListed(t *testing.T) {
	s := shared.Use(t)
	groups := s.Person(t, "ana").Call(t, "listGroups").OK(t)
	if groups.Str("items.0.kind") != "everyone" {
		t.Errorf("groups: %s", groups.Body)
	}
	s.Person(t, "bob").Call(t, "listGroups", harness.Query{"kind": "everyone", "query": "every", "limit": "1"}).OK(t)
}

func TestTheBeginningOfTheLogIsCaughtUpWith(t *testing.T) {
	s := harness.Start(t)
	owner := s.Owner(t)
	epoch := owner.Call(t, "getInstance").OK(t).Str("sync_epoch")
	socket := owner.Login(t).Dial(t)
	socket.Identify(t, harness.Body{"cursor": 0, "sync_epoch": epoch})
	socket.Event(t, "group.changed", func(e harness.Event) bool {
		return e.Str("data.change") == "created" && e.Str("data.group.kind") == "everyone"
	})
}

// tire ends the step-up of a session, as if some minutes had passed.
func tire(t *testing.T, c *harness.Client) {
	t.Helper()
	c.Server.DB.Exec(t, "UPDATE auth_sessions SET step_up_at = step_up_at - interval '1 hour' WHERE id = $1", c.Session)
}
