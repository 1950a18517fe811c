// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// plan is an agent on the plan of a person, who may set it to work in a place.
type plan struct {
	s             *harness.Server
	owner, holder *harness.Client
	other         *harness.Client
	agent         *harness.Client
	place         harness.Place
}

func newPlan(t *testing.T, s *harness.Server) *plan {
	t.Helper()
	w := &plan{s: s, owner: s.Owner(t), holder: s.Person(t, "hanna"), other: s.Person(t, "otto")}
	w.owner.StepUp(t)
	body := newAgent(s.Unique("own"))
	body["billing_mode"], body["credential_holder_id"] = "personal", w.holder.ID
	body["token"] = harness.Body{"name": "adapter", "expires_at": s.In(24 * time.Hour)}
	made := w.owner.Call(t, "createAgent", body).Is(t, http.StatusCreated)
	if made.Str("credential_holder_id") != w.holder.ID || made.Str("token.expires_at") == "" {
		t.Fatalf("the agent: %s", made.Body)
	}
	w.agent = &harness.Client{Server: s, ID: made.Str("principal_id"), Handle: made.Str("handle"), Bearer: made.Str("token.secret")}
	w.place = s.Space(t, "write", w.agent, w.other)
	s.Grant(t, w.holder, "trigger", "space", w.place.Space)
	return w
}

func (w *plan) version(t *testing.T) harness.IfMatch {
	t.Helper()
	return w.owner.Call(t, "getAgent", w.agent.ID).OK(t).Version(t)
}

// outcome has somebody mention the agent and gives what became of it.
func (w *plan) outcome(t *testing.T, who *harness.Client) *harness.Response {
	t.Helper()
	said := who.Say(t, w.place.Thread, "<@"+w.agent.ID+"> tie a knot")
	return who.Call(t, "getMessage", said.Str("id")).OK(t)
}

// out is the member of a request that takes a way out of a violation.
func out(r *harness.Response, strategy string) harness.Body {
	return harness.Body{"strategy": strategy, "digest": r.Str("i1.digest")}
}

func TestNobodyButTheHolderSetsAPersonalAgentToWork(t *testing.T) {
	s := shared.Use(t)
	w := newPlan(t, s)
	inbox := w.agent.Connect(t)
	if done := w.outcome(t, w.other); done.Str("trigger_state") != "denied" || done.Str("triggers.0.reason") != "level_insufficient" {
		t.Errorf("a writer: %s", done.Body)
	}
	// An owner holds everything but this.
	if done := w.outcome(t, w.owner); done.Str("trigger_state") != "denied" || done.Str("triggers.0.reason") != "i1_personal" {
		t.Errorf("an owner: %s", done.Body)
	}
	done := w.outcome(t, w.holder)
	if done.Str("trigger_state") != "triggered" {
		t.Fatalf("the holder: %s", done.Body)
	}
	run := done.Str("triggers.0.run_id")
	inbox.Event(t, "agent.invocation", func(e harness.Event) bool { return e.Str("data.run.id") == run })
	if n := s.DB.Count(t, "SELECT count(*) FROM runs WHERE agent_id = $1", w.agent.ID); n != 1 {
		t.Errorf("%d runs", n)
	}
	list := w.holder.Call(t, "listAgentTriggerers", w.agent.ID).OK(t)
	if len(list.List("items")) != 1 || list.Str("items.0.principal_id") != w.holder.ID || list.Str("items.0.path.0.code") != "grant_direct" {
		t.Errorf("who can: %s", list.Body)
	}
}

func TestAChangeThatOpensAPersonalAgentIsRefusedWithWaysOut(t *testing.T) {
	s := shared.Use(t)
	w := newPlan(t, s)
	asked := grantOf(w.other.ID, "channel", w.place.Channel, "trigger")
	refused := w.owner.Call(t, "createGrant", asked).Refused(t, "i1_violation")
	if refused.Str("i1.violations.0.agent_id") != w.agent.ID || refused.Str("i1.violations.0.principal_id") != w.other.ID ||
		refused.Str("i1.options.1.plan.0.kind") != "reduce_request" {
		t.Errorf("the answer: %s", refused.Body)
	}
	preview := w.owner.Call(t, "previewAccess", harness.Body{"change": harness.Body{"grant_create": grantOf(w.other.ID, "channel", w.place.Channel, "trigger")}}).OK(t)
	if preview.Str("i1.digest") != refused.Str("i1.digest") || preview.Int("affected") != 1 {
		t.Errorf("the preview: %s", preview.Body)
	}
	asked["resolve_i1"] = harness.Body{"strategy": "reduce_rights", "digest": "of-another-list"}
	w.owner.Call(t, "createGrant", asked).Refused(t, "i1_violation")
	asked["resolve_i1"] = out(refused, "reduce_rights")
	tired := w.owner.Login(t)
	tire(t, tired)
	tired.Call(t, "createGrant", asked).Refused(t, "step_up_required")
	made := w.owner.Call(t, "createGrant", asked, harness.Key("resolved")).Is(t, http.StatusCreated)
	if made.Str("level") != "write" {
		t.Errorf("the grant: %s", made.Body)
	}
	if again := w.owner.Call(t, "createGrant", asked, harness.Key("resolved")).OK(t); again.Str("id") != made.Str("id") {
		t.Errorf("the repeat: %s", again.Body)
	}
	// The other way out: the organisation pays, and the grant stands as asked.
	replaced := grantOf(w.other.ID, "channel", w.place.Channel, "trigger")
	replaced["replaces"] = made.Str("id")
	refused = w.owner.Call(t, "createGrant", replaced).Refused(t, "i1_violation")
	replaced["resolve_i1"] = out(refused, "switch_to_organization")
	watching := w.owner.Connect(t)
	if made = w.owner.Call(t, "createGrant", replaced).OK(t); made.Str("level") != "trigger" {
		t.Errorf("the grant: %s", made.Body)
	}
	watching.Event(t, "agent.updated", func(e harness.Event) bool {
		return e.Str("data.principal_id") == w.agent.ID && e.Str("data.billing_mode") == "organization"
	})
	if done := w.outcome(t, w.other); done.Str("trigger_state") != "triggered" && done.Str("trigger_state") != "followup" {
		t.Errorf("the other: %s", done.Body)
	}
}

func TestWhoPaysForAnAgentIsChanged(t *testing.T) {
	s := shared.Use(t)
	w := newPlan(t, s)
	tired := w.owner.Login(t)
	tire(t, tired)
	personal := func(holder string) harness.Body {
		return harness.Body{"billing_mode": "personal", "credential_holder_id": holder}
	}
	toOther := harness.Body{"person_id": w.other.ID}
	refused := w.owner.Call(t, "setAgentCredentialHolder", w.agent.ID, toOther).Refused(t, "i1_violation")
	if refused.Str("i1.violations.0.principal_id") != w.holder.ID || refused.Str("i1.violations.0.holder_id") != w.other.ID {
		t.Errorf("the answer: %s", refused.Body)
	}
	handed := w.owner.Call(t, "setAgentCredentialHolder", w.agent.ID, harness.Body{"person_id": w.other.ID, "resolve_i1": out(refused, "reduce_rights")}).OK(t)
	if handed.Str("credential_holder_id") != w.other.ID {
		t.Errorf("the agent: %s", handed.Body)
	}
	if hints := w.holder.Call(t, "getAccessHints", harness.Query{"targets": "space:" + w.place.Space}).OK(t); hints.Str("items.0.level") != "write" {
		t.Errorf("the former holder: %s", hints.Body)
	}
	common := w.owner.Call(t, "setAgentBillingMode", w.agent.ID, w.version(t), harness.Body{"billing_mode": "local"}).OK(t)
	if common.Str("billing_mode") != "local" || common.At("credential_holder_id") != nil {
		t.Errorf("the agent: %s", common.Body)
	}
	s.Grant(t, w.other, "trigger", "channel", w.place.Channel)
	opened := w.owner.Call(t, "setAgentBillingMode", w.agent.ID, w.version(t), personal(w.holder.ID)).Refused(t, "i1_violation")
	body := personal(w.holder.ID)
	body["resolve_i1"] = out(opened, "switch_to_organization")
	if kept := w.owner.Call(t, "setAgentBillingMode", w.agent.ID, w.version(t), body).OK(t); kept.Str("billing_mode") != "organization" {
		t.Errorf("the agent: %s", kept.Body)
	}
	if all := w.owner.Call(t, "listAgentTriggerers", w.agent.ID, harness.Query{"limit": "1"}).OK(t); len(all.List("items")) != 1 {
		t.Errorf("who can: %s", all.Body)
	}
	changed := w.owner.Call(t, "setAllAgentsBillingMode", harness.Body{"billing_mode": "local", "agent_ids": []string{w.agent.ID}}).OK(t)
	if len(changed.List("changed")) != 1 {
		t.Errorf("changed: %s", changed.Body)
	}
	class := w.owner.Call(t, "setAgentToolClass", w.agent.ID, w.version(t), harness.Body{"tool_class": "host"}).OK(t)
	if class.Str("tool_class") != "host" {
		t.Errorf("the agent: %s", class.Body)
	}
	local := harness.Body{"billing_mode": "local"}
	host := harness.Body{"tool_class": "host"}
	refuse(t,
		refusal{"member", w.other, "setAgentBillingMode", with(w.agent.ID, stale, local), "forbidden", "not_owner"},
		refusal{"old version", w.owner, "setAgentBillingMode", with(w.agent.ID, stale, local), "version_conflict", ""},
		refusal{"no version", w.owner, "setAgentBillingMode", with(w.agent.ID, local), "precondition_required", ""},
		refusal{"without presence", tired, "setAgentBillingMode", with(w.agent.ID, stale, local), "step_up_required", ""},
		refusal{"no holder", w.owner, "setAgentBillingMode", with(w.agent.ID, w.version(t), harness.Body{"billing_mode": "personal"}), "validation_failed", ""},
		refusal{"agent holds", w.owner, "setAgentBillingMode", with(w.agent.ID, w.version(t), personal(w.agent.ID)), "validation_failed", ""},
		refusal{"missing", w.owner, "setAgentBillingMode", with(harness.NewID(), stale, local), "not_found", ""},
		refusal{"nobody's plan", w.owner, "setAgentCredentialHolder", with(w.agent.ID, toOther), "conflict", "not_personal"},
		refusal{"without presence", tired, "setAgentCredentialHolder", with(w.agent.ID, toOther), "step_up_required", ""},
		refusal{"no such body", w.owner, "setAgentCredentialHolder", with(w.agent.ID, harness.Body{}), "validation_failed", ""},
		refusal{"missing", w.owner, "setAgentCredentialHolder", with(harness.NewID(), toOther), "not_found", ""},
		refusal{"without presence", tired, "setAllAgentsBillingMode", with(local), "step_up_required", ""},
		refusal{"all personal", w.owner, "setAllAgentsBillingMode", with(harness.Body{"billing_mode": "personal"}), "validation_failed", ""},
		refusal{"one missing", w.owner, "setAllAgentsBillingMode", with(harness.Body{"billing_mode": "local", "agent_ids": []string{harness.NewID()}}), "not_found", ""},
		refusal{"old version", w.owner, "setAgentToolClass", with(w.agent.ID, stale, host), "version_conflict", ""},
		refusal{"no version", w.owner, "setAgentToolClass", with(w.agent.ID, host), "precondition_required", ""},
		refusal{"without presence", tired, "setAgentToolClass", with(w.agent.ID, stale, host), "step_up_required", ""},
		refusal{"missing", w.owner, "setAgentToolClass", with(harness.NewID(), stale, host), "not_found", ""},
		refusal{"bad cursor", w.owner, "listAgentTriggerers", with(w.agent.ID, harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"neither owner nor holder", w.other, "listAgentTriggerers", with(w.agent.ID), "forbidden", "not_owner"},
		refusal{"missing", w.owner, "listAgentTriggerers", with(harness.NewID()), "not_found", ""},
		refusal{"missing", w.other, "listAgentTriggerers", with(harness.NewID()), "not_found", ""},
	)
}

func TestPlacesAndPeopleThatOpenAPersonalAgentAreRefused(t *testing.T) {
	s := shared.Use(t)
	w := newPlan(t, s)
	// Where the agent sees nothing, others may set agents to work.
	elsewhere := s.Space(t, "trigger", w.other)
	operator := harness.Body{"mode": "own", "agent_id": w.agent.ID}
	channel := w.owner.Call(t, "getChannel", elsewhere.Channel).OK(t)
	refused := w.owner.Call(t, "setChannelOperator", elsewhere.Channel, channel.Version(t), operator).Refused(t, "i1_violation")
	operator["resolve_i1"] = out(refused, "reduce_rights")
	w.owner.Call(t, "setChannelOperator", elsewhere.Channel, channel.Version(t), operator).OK(t)

	closed := s.Channel(t, w.place.Space)
	shut := w.owner.Call(t, "updateChannel", closed.Channel, w.owner.Call(t, "getChannel", closed.Channel).Version(t), harness.Body{"inherits": false}).OK(t)
	s.Grant(t, w.other, "trigger", "channel", closed.Channel)
	opening := harness.Body{"inherits": true}
	refused = w.owner.Call(t, "updateChannel", closed.Channel, shut.Version(t), opening).Refused(t, "i1_violation")
	opening["resolve_i1"] = out(refused, "reduce_rights")
	w.owner.Call(t, "updateChannel", closed.Channel, shut.Version(t), opening).OK(t)

	// Somebody who is away counts as soon as she comes back.
	away := s.Person(t, "ava")
	gone := w.owner.Call(t, "disableUser", away.ID, w.owner.Call(t, "getUser", away.ID).Version(t), harness.Body{}).OK(t)
	w.owner.Call(t, "createGrant", grantOf(away.ID, "space", w.place.Space, "trigger")).OK(t)
	refused = w.owner.Call(t, "enableUser", away.ID, gone.Version(t)).Refused(t, "i1_violation")
	w.owner.Call(t, "enableUser", away.ID, gone.Version(t), harness.Body{"resolve_i1": out(refused, "reduce_rights")}).OK(t)

	w.owner.Call(t, "disableAgent", w.agent.ID).OK(t)
	w.owner.Call(t, "createGrant", grantOf(s.Person(t, "eve").ID, "space", w.place.Space, "trigger")).OK(t)
	refused = w.owner.Call(t, "enableAgent", w.agent.ID).Refused(t, "i1_violation")
	w.owner.Call(t, "enableAgent", w.agent.ID, harness.Body{"resolve_i1": out(refused, "switch_to_organization")}).OK(t)
	if shown := w.owner.Call(t, "getAgent", w.agent.ID).OK(t); shown.Str("billing_mode") != "organization" || shown.Str("status") != "active" {
		t.Errorf("the agent: %s", shown.Body)
	}
}

// Whoever joins the group of all members is a person like the others.
func TestANewPersonMayOpenAPersonalAgent(t *testing.T) {
	s := harness.Start(t)
	owner := s.Owner(t)
	owner.StepUp(t)
	body := newAgent("own")
	body["billing_mode"], body["credential_holder_id"] = "personal", owner.ID
	agent := &harness.Client{Server: s, ID: owner.Call(t, "createAgent", body).OK(t).Str("principal_id")}
	place := s.Space(t, "read", agent)
	everyone := owner.Call(t, "listGroups", harness.Query{"kind": "everyone"}).OK(t).Str("items.0.id")
	owner.Call(t, "createGrant", grantOfGroup(everyone, place.Space)).OK(t)
	person := harness.Body{"handle": "ana", "display_name": "Ana"}
	refused := owner.Call(t, "createUser", person).Refused(t, "i1_violation")
	if refused.At("i1.violations.0.requested") != true || refused.Str("i1.options.1.plan.0.kind") != "replace_grant" {
		t.Errorf("the answer: %s", refused.Body)
	}
	// A guest belongs to no group of all; she does as soon as she is none any more.
	guest := owner.Call(t, "createUser", harness.Body{"handle": "gil", "display_name": "Gil", "guest": true}).OK(t)
	member := harness.Body{"guest": false}
	opened := owner.Call(t, "updateUser", guest.Str("id"), guest.Version(t), member).Refused(t, "i1_violation")
	member["resolve_i1"] = out(opened, "reduce_rights")
	if done := owner.Call(t, "updateUser", guest.Str("id"), guest.Version(t), member).OK(t); done.At("guest") != false {
		t.Errorf("the guest: %s", done.Body)
	}
	grants := owner.Call(t, "listGrants", harness.Query{"target": "space:" + place.Space}).OK(t)
	for i := range grants.List("items") {
		if level := grants.Str(fmt.Sprintf("items.%d.level", i)); level == "trigger" {
			t.Errorf("somebody can still trigger: %s", grants.Body)
		}
	}
	owner.Call(t, "createUser", person).Is(t, http.StatusCreated)
}

func TestGroupsOpenAPersonalAgent(t *testing.T) {
	s := shared.Use(t)
	w := newPlan(t, s)
	group := w.owner.Call(t, "createGroup", harness.Body{"name": "Crew", "handle": s.Unique("crew")}).OK(t).Str("id")
	w.owner.Call(t, "createGrant", grantOfGroup(group, w.place.Space)).OK(t)
	joining := harness.Body{}
	refused := w.owner.Call(t, "putGroupMember", group, w.other.ID, joining).Refused(t, "i1_violation")
	if refused.Str("i1.violations.0.path.0.code") != "grant_group" || refused.Str("i1.options.1.plan.0.kind") != "replace_grant" {
		t.Errorf("the answer: %s", refused.Body)
	}
	joining["resolve_i1"] = out(refused, "reduce_rights")
	w.owner.Call(t, "putGroupMember", group, w.other.ID, joining).Is(t, http.StatusCreated)

	// With the holder in the group it is the other who leaves it.
	elsewhere := s.Space(t, "read")
	mixed := w.owner.Call(t, "createGroup", harness.Body{"name": "Mixed", "handle": s.Unique("mixed")}).OK(t).Str("id")
	for _, m := range []*harness.Client{w.holder, w.other} {
		w.owner.Call(t, "putGroupMember", mixed, m.ID, harness.Body{}).OK(t)
	}
	w.owner.Call(t, "createGrant", grantOfGroup(mixed, elsewhere.Space)).OK(t)
	asked := grantOf(w.agent.ID, "space", elsewhere.Space, "write")
	refused = w.owner.Call(t, "createGrant", asked).Refused(t, "i1_violation")
	if refused.Str("i1.options.1.plan.0.kind") != "remove_member" || refused.Str("i1.options.1.plan.0.principal_id") != w.other.ID {
		t.Errorf("the answer: %s", refused.Body)
	}
	asked["resolve_i1"] = out(refused, "reduce_rights")
	watching := w.owner.Connect(t)
	w.owner.Call(t, "createGrant", asked).OK(t)
	watching.Event(t, "group.changed", func(e harness.Event) bool {
		return e.Str("data.change") == "member_removed" && e.Str("data.group.id") == mixed
	})
	if members := w.owner.Call(t, "listGroupMembers", mixed).OK(t); len(members.List("items")) != 1 || members.Str("items.0.principal_id") != w.holder.ID {
		t.Errorf("members: %s", members.Body)
	}
	// Back in it, she would open the agent again; only staying out would help, or another payer.
	refused = w.owner.Call(t, "putGroupMember", mixed, w.other.ID, harness.Body{}).Refused(t, "i1_violation")
	if refused.At("i1.options.1.allowed") != false || refused.Str("i1.options.1.reason") != "undoes_request" {
		t.Errorf("the answer: %s", refused.Body)
	}
	reduced, switched := harness.Body{"resolve_i1": out(refused, "reduce_rights")}, harness.Body{"resolve_i1": out(refused, "switch_to_organization")}
	w.owner.Call(t, "putGroupMember", mixed, w.other.ID, reduced).Refused(t, "i1_violation")
	w.owner.Call(t, "putGroupMember", mixed, w.other.ID, switched).OK(t)
}

func grantOfGroup(group, space string) harness.Body {
	grant := grantOf(group, "space", space, "trigger")
	grant["subject"] = harness.Body{"kind": "group", "id": group}
	return grant
}

func TestAHolderWhoIsAwayLeavesHerAgentIdle(t *testing.T) {
	s := shared.Use(t)
	w := newPlan(t, s)
	w.owner.Call(t, "disableUser", w.holder.ID, w.owner.Call(t, "getUser", w.holder.ID).Version(t), harness.Body{}).OK(t)
	if shown := w.owner.Call(t, "getAgent", w.agent.ID).OK(t); shown.Str("billing_mode") != "personal" || shown.Str("credential_holder_id") != w.holder.ID {
		t.Errorf("the agent: %s", shown.Body)
	}
	if list := w.owner.Call(t, "listAgentTriggerers", w.agent.ID).OK(t); len(list.List("items")) != 0 {
		t.Errorf("who can: %s", list.Body)
	}
	gone := harness.Body{"person_id": w.holder.ID}
	w.owner.Call(t, "setAgentCredentialHolder", w.agent.ID, gone).Refused(t, "validation_failed")
	w.owner.Call(t, "setAgentCredentialHolder", w.agent.ID, harness.Body{"person_id": w.other.ID}).OK(t)
}
