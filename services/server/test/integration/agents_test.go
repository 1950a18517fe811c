// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

func newAgent(handle string) harness.Body {
	return harness.Body{"handle": handle, "display_name": "Agent", "billing_mode": "organization", "tool_class": "sandboxed"}
}

func TestAgentsAreMadeChangedAndDisabled(t *testing.T) {
	s := shared.Use(t)
	owner, ana := s.Owner(t), s.Person(t, "ana")
	owner.StepUp(t)
	tired := owner.Login(t)
	tire(t, tired)
	watching := owner.Connect(t)
	body := newAgent(s.Unique("aida"))
	body["token"] = harness.Body{"name": "adapter"}
	made := owner.Call(t, "createAgent", body, harness.Key("agent")).Is(t, http.StatusCreated)
	id := made.Str("principal_id")
	agent := &harness.Client{Server: s, ID: id, Bearer: made.Str("token.secret")}
	agent.Call(t, "getSelf").OK(t)
	owner.Call(t, "listAgents", harness.Query{"state": "unknown", "billing_mode": "organization", "limit": "1"}).OK(t)
	agent.Call(t, "getAgent", id).OK(t)
	changed := owner.Call(t, "updateAgent", id, made.Version(t), harness.Body{"description": "Ties knots.", "max_concurrent_runs": 2}).OK(t)
	watching.Event(t, "agent.updated", func(e harness.Event) bool { return e.Str("data.description") == "Ties knots." })
	wrong := newAgent(s.Unique("x"))
	wrong["credential_holder_id"] = ana.ID
	refuse(t,
		refusal{"secret", owner, "createAgent", with(body, harness.Key("agent")), "conflict", "secret_already_shown"},
		refusal{"handle", owner, "createAgent", with(newAgent(ana.Handle)), "conflict", "handle_taken"},
		refusal{"without presence", tired, "createAgent", with(newAgent(s.Unique("x"))), "step_up_required", ""},
		refusal{"holder of a common plan", owner, "createAgent", with(wrong), "validation_failed", ""},
		refusal{"member", ana, "createAgent", with(newAgent(s.Unique("x"))), "forbidden", ""},
		refusal{"bad cursor", owner, "listAgents", with(harness.Query{"cursor": badQuery}), "cursor_invalid", ""},
		refusal{"missing", owner, "getAgent", with(harness.NewID()), "not_found", ""},
		refusal{"shares no place", ana, "getAgent", with(id), "not_found", ""},
		refusal{"missing", owner, "updateAgent", with(harness.NewID(), stale, harness.Body{"description": "x"}), "not_found", ""},
		refusal{"old version", owner, "updateAgent", with(id, made.Version(t), harness.Body{"description": "x"}), "version_conflict", ""},
		refusal{"no version", owner, "updateAgent", with(id, harness.Body{"description": "x"}), "precondition_required", ""},
		refusal{"missing", owner, "disableAgent", with(harness.NewID()), "not_found", ""},
		refusal{"missing", owner, "enableAgent", with(harness.NewID()), "not_found", ""},
	)
	_ = changed
	socket := agent.Connect(t)
	owner.Call(t, "disableAgent", id).OK(t)
	if code := socket.Closed(t); code != 4010 {
		t.Errorf("the connection was closed with %d", code)
	}
	agent.Call(t, "getSelf").Refused(t, "unauthenticated")
	tired.Call(t, "enableAgent", id).Refused(t, "step_up_required")
	owner.Call(t, "enableAgent", id).OK(t)
}

func TestAgentsReportTheirState(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	agent, other := s.Agent(t, "aida"), s.Agent(t, "other")
	place := s.Space(t, "read", ana, agent)
	watching := ana.Connect(t)
	report := harness.Body{"state": "online", "billing_mode": "local", "tool_class": "chat", "details": harness.Body{"protocol_version": 1}}
	agent.Call(t, "sendHeartbeat", agent.ID, report).OK(t)
	watching.Event(t, "agent.presence_changed", func(e harness.Event) bool {
		return e.Str("data.agent_id") == agent.ID && e.Str("data.state") == "online"
	})
	refuse(t,
		refusal{"no state", agent, "sendHeartbeat", with(agent.ID, harness.Body{}), "validation_failed", ""},
		refusal{"person", s.Owner(t), "sendHeartbeat", with(agent.ID, report), "forbidden", "subject_kind_not_allowed"},
		refusal{"other agent", other, "sendHeartbeat", with(agent.ID, report), "not_found", ""},
	)
	socket := agent.Connect(t)
	degraded := harness.Body{"state": "degraded", "details": harness.Body{"degraded_reasons": []string{"disk_full"}}}
	socket.Send(t, "heartbeat", harness.Body{"agent": degraded})
	watching.Event(t, "agent.presence_changed", func(e harness.Event) bool { return e.Str("data.state") == "degraded" })
	if shown := ana.Call(t, "getAgent", agent.ID).OK(t); shown.Str("runtime.presence_state") != "degraded" {
		t.Errorf("the agent: %s", shown.Body)
	}
	if f, ok := watching.Do(t, "heartbeat", harness.Body{"agent": degraded}); ok || f.Str("code") != "validation_failed" {
		t.Errorf("a person reports: %v", f.D)
	}
	_ = place
}
