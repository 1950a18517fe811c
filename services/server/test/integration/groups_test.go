// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// newGroup makes a group with members.
func newGroup(t *testing.T, s *harness.Server, members ...*harness.Client) string {
	t.Helper()
	id := s.Owner(t).Call(t, "createGroup", harness.Body{"name": "Staff", "handle": s.Unique("staff")}).Is(t, http.StatusCreated).Str("id")
	for _, m := range members {
		s.Owner(t).Call(t, "putGroupMember", id, m.ID, harness.Body{}).Is(t, http.StatusCreated)
	}
	return id
}

func grantGroup(t *testing.T, s *harness.Server, group, level, kind, target string) string {
	t.Helper()
	body := grantOf(group, kind, target, level)
	body["subject"] = harness.Body{"kind": "group", "id": group}
	s.Owner(t).StepUp(t)
	return s.Owner(t).Call(t, "createGrant", body).OK(t).Str("id")
}

func guest(t *testing.T, s *harness.Server) *harness.Client {
	t.Helper()
	made := s.Owner(t).Call(t, "createUser", harness.Body{"handle": s.Unique("guest"), "display_name": "Gus", "guest": true, "issue_code": true}).OK(t)
	return s.Enroll(t, made.Str("enrollment.code"))
}

func TestAGroupOpensAndClosesASpace(t *testing.T) {
	s := shared.Use(t)
	owner, ana, visitor := s.Owner(t), s.Person(t, "ana"), guest(t, s)
	place := s.Space(t, "read")
	watching, apart := ana.Connect(t), visitor.Connect(t)
	group := newGroup(t, s)
	grantGroup(t, s, group, "write", "space", place.Space)
	ana.Call(t, "getSpace", place.Space).Refused(t, "not_found")

	owner.Call(t, "putGroupMember", group, ana.ID, harness.Body{"role": "manager"}).Is(t, http.StatusCreated)
	gained := watching.Event(t, "access.changed", func(e harness.Event) bool { return e.Str("data.gained.0.target.id") == place.Space })
	if gained.Str("data.cause") != "group.member.add" || gained.Str("data.groups.0") != group {
		t.Errorf("told %s", gained.Str("data"))
	}
	watching.Event(t, "group.changed", func(e harness.Event) bool {
		return e.Str("data.change") == "member_added" && e.Str("data.group.id") == group
	})
	ana.Call(t, "getSpace", place.Space).OK(t)
	ana.Say(t, place.Thread, "in")
	detail := ana.Call(t, "getGroup", group).OK(t)
	if detail.Str("my_role") != "manager" || detail.Int("member_count") != 1 || detail.Int("grants_count") != 1 {
		t.Errorf("group: %s", detail.Body)
	}
	// A manager adds a member; a guest hears of her own groups alone.
	visitor.Call(t, "getGroup", group).Refused(t, "not_found")
	visitor.Call(t, "listGroupMembers", group).Refused(t, "not_found")
	ana.Call(t, "putGroupMember", group, visitor.ID, harness.Body{}).Is(t, http.StatusCreated)
	visitor.Call(t, "getGroup", group).OK(t)
	apart.Event(t, "group.changed", func(e harness.Event) bool { return e.Str("data.group.id") == group })
	until := s.In(48 * time.Hour)
	changed := ana.Call(t, "putGroupMember", group, visitor.ID, harness.Body{"expires_at": until}).Is(t, http.StatusOK)
	if changed.Str("expires_at") != until || changed.Str("role") != "member" {
		t.Errorf("membership: %s", changed.Body)
	}
	page := ana.Call(t, "listGroupMembers", group, harness.Query{"limit": "1"}).OK(t)
	rest := ana.Call(t, "listGroupMembers", group, harness.Query{"cursor": page.Str("next_cursor")}).OK(t)
	if len(page.List("items")) != 1 || len(rest.List("items")) != 1 || rest.At("next_cursor") != nil {
		t.Errorf("members: %s %s", page.Body, rest.Body)
	}
	named := owner.Call(t, "updateGroup", group, detail.Version(t), harness.Body{"name": "Crew", "description": "Everybody on board"}).OK(t)
	watching.Event(t, "group.changed", func(e harness.Event) bool {
		return e.Str("data.change") == "updated" && e.Str("data.group.name") == "Crew"
	})

	visitor.Call(t, "removeGroupMember", group, visitor.ID).Is(t, http.StatusNoContent)
	visitor.Call(t, "getGroup", group).Refused(t, "not_found")
	owner.Call(t, "deleteGroup", group, named.Version(t)).Is(t, http.StatusNoContent)
	watching.Event(t, "access.changed", func(e harness.Event) bool { return e.Str("data.lost.0.id") == place.Space })
	watching.Event(t, "group.changed", func(e harness.Event) bool { return e.Str("data.change") == "deleted" })
	ana.Call(t, "getSpace", place.Space).Refused(t, "not_found")
	owner.Call(t, "getGroup", group).Refused(t, "not_found")
}

func TestGroupsAreRefused(t *testing.T) {
	s := shared.Use(t)
	owner, ana, bob, manager := s.Owner(t), s.Person(t, "ana"), s.Person(t, "bob"), s.Person(t, "mia")
	visitor, agent := guest(t, s), s.Agent(t, "helper")
	place := s.Space(t, "read")
	group := newGroup(t, s, bob)
	handle := owner.Call(t, "getGroup", group).OK(t).Str("handle")
	owner.Call(t, "putGroupMember", group, manager.ID, harness.Body{"role": "manager"}).OK(t)
	strong := newGroup(t, s, bob)
	owner.Call(t, "putGroupMember", strong, manager.ID, harness.Body{"role": "manager"}).OK(t)
	grantGroup(t, s, strong, "manage", "space", place.Space)
	tire(t, manager)
	claimed := owner.Call(t, "createGroup", harness.Body{
		"name": "It", "handle": s.Unique("it"), "claim": harness.Body{"provider_id": harness.NewID(), "value": "it"},
	}).OK(t).Str("id")
	all := owner.Call(t, "listGroups", harness.Query{"kind": "everyone"}).OK(t).Str("items.0.id")
	allVersion := owner.Call(t, "getGroup", all).OK(t).Version(t)
	fresh, unknown := harness.IfMatch(1), harness.NewID()
	renamed, member := harness.Body{"name": "New"}, harness.Body{}
	reader := bob.Token(t, "authz.read", "identity.read")
	refuse(t,
		refusal{"not an owner", ana, "createGroup", with(harness.Body{"name": "x", "handle": s.Unique("x")}), "forbidden", "not_owner"},
		refusal{"a guest", visitor, "createGroup", with(harness.Body{"name": "x", "handle": s.Unique("x")}), "forbidden", "not_owner"},
		refusal{"an agent", agent, "createGroup", with(harness.Body{"name": "x", "handle": s.Unique("x")}), "forbidden", ""},
		refusal{"without the scope", reader, "createGroup", with(harness.Body{"name": "x", "handle": s.Unique("x")}), "scope_missing", ""},
		refusal{"handle of a group", owner, "createGroup", with(harness.Body{"name": "x", "handle": handle}), "conflict", "handle_taken"},
		refusal{"handle of a person", owner, "createGroup", with(harness.Body{"name": "x", "handle": ana.Handle}), "conflict", "handle_taken"},
		refusal{"reserved handle", owner, "createGroup", with(harness.Body{"name": "x", "handle": "everyone"}), "validation_failed", ""},
		refusal{"missing", ana, "getGroup", with(unknown), "not_found", ""},
		refusal{"hidden", visitor, "getGroup", with(group), "not_found", ""},
		refusal{"missing", ana, "listGroupMembers", with(unknown), "not_found", ""},
		refusal{"bad cursor", ana, "listGroupMembers", with(group, harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"a manager names nothing", manager, "updateGroup", with(group, fresh, renamed), "forbidden", "not_owner"},
		refusal{"hidden", visitor, "updateGroup", with(group, fresh, renamed), "not_found", ""},
		refusal{"missing", owner, "updateGroup", with(unknown, fresh, renamed), "not_found", ""},
		refusal{"stale", owner, "updateGroup", with(group, stale, renamed), "version_conflict", ""},
		refusal{"no version", owner, "updateGroup", with(group, renamed), "precondition_required", ""},
		refusal{"handle of a person", owner, "updateGroup", with(group, fresh, harness.Body{"handle": ana.Handle}), "conflict", "handle_taken"},
		refusal{"handle of all", owner, "updateGroup", with(all, allVersion, harness.Body{"handle": s.Unique("all")}), "conflict", "system_group"},
		refusal{"not an owner", manager, "deleteGroup", with(group, fresh), "forbidden", "not_owner"},
		refusal{"hidden", visitor, "deleteGroup", with(group, fresh), "not_found", ""},
		refusal{"missing", owner, "deleteGroup", with(unknown, fresh), "not_found", ""},
		refusal{"stale", owner, "deleteGroup", with(group, stale), "version_conflict", ""},
		refusal{"no version", owner, "deleteGroup", with(group), "precondition_required", ""},
		refusal{"that of all", owner, "deleteGroup", with(all, allVersion), "conflict", "system_group"},
		refusal{"only a member", bob, "putGroupMember", with(group, ana.ID, member), "forbidden", "not_owner"},
		refusal{"hidden", visitor, "putGroupMember", with(group, visitor.ID, member), "not_found", ""},
		refusal{"missing group", owner, "putGroupMember", with(unknown, ana.ID, member), "not_found", ""},
		refusal{"missing member", owner, "putGroupMember", with(group, unknown, member), "not_found", ""},
		refusal{"by claim", owner, "putGroupMember", with(claimed, ana.ID, member), "conflict", "managed_by_claims"},
		refusal{"of all", owner, "putGroupMember", with(all, ana.ID, member), "conflict", "system_group"},
		refusal{"strong without presence", manager, "putGroupMember", with(strong, ana.ID, member), "step_up_required", ""},
		refusal{"over at once", manager, "putGroupMember", with(group, ana.ID, harness.Body{"expires_at": s.In(time.Minute)}), "validation_failed", ""},
		refusal{"another member", bob, "removeGroupMember", with(group, manager.ID), "forbidden", "not_owner"},
		refusal{"no member", manager, "removeGroupMember", with(group, ana.ID), "not_found", ""},
		refusal{"hidden", visitor, "removeGroupMember", with(group, bob.ID), "not_found", ""},
		refusal{"by claim", owner, "removeGroupMember", with(claimed, ana.ID), "conflict", "managed_by_claims"},
		refusal{"strong without presence", manager, "removeGroupMember", with(strong, bob.ID), "step_up_required", ""},
	)
	ownerStrong := owner.Login(t)
	tire(t, ownerStrong)
	ownerStrong.Call(t, "deleteGroup", strong, fresh).Refused(t, "step_up_required")
	// What is weak needs no presence, and nobody needs one to leave.
	manager.Call(t, "putGroupMember", group, ana.ID, member).Is(t, http.StatusCreated)
	manager.Call(t, "removeGroupMember", strong, manager.ID).Is(t, http.StatusNoContent)
	agent.Call(t, "listGroups").OK(t)
}

// TestRightsRemovedInTheMiddle has members write while the group that lets them is deleted:
// what was accepted lies before the end of the right in the log.
func TestRightsRemovedInTheMiddle(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	place := s.Space(t, "read")
	group := newGroup(t, s, ana)
	grantGroup(t, s, group, "write", "space", place.Space)
	watching := ana.Connect(t)
	var mu sync.Mutex
	var highest int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 40 {
				r := ana.Call(t, "createMessage", place.Thread, harness.Message("still in"))
				if r.Status >= 400 {
					return
				}
				mu.Lock()
				highest = max(highest, r.Seq())
				mu.Unlock()
			}
		})
	}
	owner.Call(t, "deleteGroup", group, harness.IfMatch(1)).Is(t, http.StatusNoContent)
	wait.Wait()
	lost := watching.Event(t, "access.changed", func(e harness.Event) bool { return e.Str("data.lost.0.id") == place.Space })
	if seq := lost.Seq; highest > seq {
		t.Errorf("a message at %d lies behind the end of the right at %d", highest, seq)
	}
	ana.Call(t, "createMessage", place.Thread, harness.Message("out")).Refused(t, "not_found")
}

func TestMembershipsEndAndAreAnnounced(t *testing.T) {
	s := harness.Start(t, harness.WithKeys(map[string]string{"authz.expiry_interval": "1s"}))
	owner, ana := s.Owner(t), s.Person(t, "ana")
	place := s.Space(t, "read")
	group := newGroup(t, s)
	grantGroup(t, s, group, "write", "space", place.Space)
	owner.Call(t, "putGroupMember", group, ana.ID, harness.Body{"expires_at": s.In(6 * time.Minute)}).OK(t)
	long := grantOf(ana.ID, "channel", place.Channel, "read")
	long["expires_at"] = s.In(7*24*time.Hour + 8*time.Minute)
	owner.Call(t, "createGrant", long).OK(t)
	watching := ana.Connect(t)
	ana.Say(t, place.Thread, "in time")
	for range 9 {
		s.Clock.Advance(time.Minute)
		watching.Beat(t)
	}
	ana.Call(t, "createMessage", place.Thread, harness.Message("too late")).Refused(t, "forbidden", "level_insufficient")
	watching.Event(t, "access.changed", func(e harness.Event) bool { return e.Str("data.cause") == "group.member.expire" })
	watching.Event(t, "group.changed", func(e harness.Event) bool { return e.Str("data.change") == "member_expired" })
	reminder := watching.Event(t, "access.expiring", func(e harness.Event) bool { return e.Str("data.items.0.target.id") == place.Channel })
	if reminder.Str("data.items.0.level") != "read" {
		t.Errorf("reminder %v", reminder)
	}
	harness.Eventually(t, "both jobs have run", func() bool {
		return s.JobRuns("authz.expiry_sweep") > 0 && s.JobRuns("authz.expiry_reminder") > 0
	})
}

// TestALargeGroupIsOneChange gives and takes the rights of more members than a unit appends
// events of its own.
func TestALargeGroupIsOneChange(t *testing.T) {
	const members = 1100
	s := harness.Start(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	place := s.Space(t, "read")
	group := newGroup(t, s, ana)
	s.DB.Exec(t, `WITH made AS (
			INSERT INTO principals (id, kind, handle, display_name, search_text, created_at)
			SELECT gen_random_uuid(), 'person', 'many-' || n, 'Member', 'many', now() FROM generate_series(1, $1::int) n
			RETURNING id), people AS (
			INSERT INTO users (principal_id, locale, time_zone) SELECT id, 'en', 'UTC' FROM made)
		INSERT INTO group_memberships (id, group_id, principal_id, source, created_at)
		SELECT gen_random_uuid(), $2, id, 'manual', now() FROM made`, members, group)
	told := func(cause string) int64 {
		return s.DB.Count(t, "SELECT count(*) FROM event_log WHERE type = 'access.changed' AND payload ->> 'cause' = $1", cause)
	}
	grantGroup(t, s, group, "read", "space", place.Space)
	if n := told("grant.create"); n != members+1 {
		t.Errorf("%d are told of the grant, want %d", n, members+1)
	}
	holders := owner.Call(t, "listAccessHolders", harness.Query{"target": "space:" + place.Space, "limit": "200"}).OK(t)
	if len(holders.List("items")) != 200 || holders.Str("next_cursor") == "" {
		t.Errorf("holders: %d", len(holders.List("items")))
	}
	if seen := owner.Call(t, "previewAccess", harness.Body{"change": harness.Body{"group_delete": harness.Body{"group_id": group}}}).OK(t); seen.Int("affected") != members+1 || seen.At("truncated") != true {
		t.Errorf("preview: %d", seen.Int("affected"))
	}
	owner.Call(t, "deleteGroup", group, harness.IfMatch(1)).Is(t, http.StatusNoContent)
	if n := told("group.delete"); n != members+1 {
		t.Errorf("%d are told of the end, want %d", n, members+1)
	}
	ana.Call(t, "getSpace", place.Space).Refused(t, "not_found")
}
