// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/agents/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
)

func answer[T any](t *testing.T, schema string, visit func(http.ResponseWriter) error) T {
	t.Helper()
	w := httptest.NewRecorder()
	if err := visit(w); err != nil {
		t.Fatal(err)
	}
	if err := contract.Value(schema, w.Body.Bytes()); err != nil {
		t.Errorf("%s %s: %+v", schema, w.Body, errs.As(err).Fields)
	}
	var out T
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func body[T any](t *testing.T, operation, raw string) *T {
	t.Helper()
	if err := contract.Body(operation, []byte(raw)); err != nil {
		t.Fatalf("%s: %+v", operation, errs.As(err).Fields)
	}
	var out T
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestAnOwnerKeepsAgentsThroughRest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	api := httpapi.New(h.service, h.tracker, h.clock, 30*time.Second)
	ctx, secret := idempotency.WithSecretMark(h.asOwner())
	made, err := api.CreateAgent(ctx, rest.CreateAgentRequestObject{Body: body[rest.CreateAgentRequest](t, "createAgent",
		`{"handle":"builder","display_name":"Builder","billing_mode":"local","tool_class":"host","max_trigger_age_ms":60000,"token":{"name":"adapter"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	created := answer[rest.AgentCreated](t, "AgentCreated", made.VisitCreateAgentResponse)
	id := created.PrincipalID
	if created.Token == nil || created.Token.Secret == "" || created.Token.Hint != created.Token.Secret[len(created.Token.Secret)-4:] || !secret.Shown {
		t.Errorf("%+v", created.Token)
	}
	beat, err := api.SendHeartbeat(asAgent(t.Context(), id), rest.SendHeartbeatRequestObject{AgentID: id, Body: body[rest.Heartbeat](t, "sendHeartbeat",
		`{"state":"online","billing_mode":"organization","billing_modes_supported":["local"],"billing_evidence":{"key_type":"unknown","method":"config"},
		"details":{"capabilities":{"followups":"steer"},"adapter":{"name":"bothy-agent","version":"1.0.0"},"active_runs":[],"degraded_reasons":[]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if ack := answer[rest.HeartbeatAck](t, "HeartbeatAck", beat.VisitSendHeartbeatResponse); ack.IntervalMs != 30000 {
		t.Errorf("%+v", ack)
	}
	read, err := api.GetAgent(h.asOwner(), rest.GetAgentRequestObject{AgentID: id})
	if err != nil {
		t.Fatal(err)
	}
	if a := answer[rest.Agent](t, "Agent", read.VisitGetAgentResponse); a.Runtime == nil || len(a.Runtime.Warnings) != 2 || a.Runtime.Capabilities.Followups != "steer" {
		t.Errorf("%+v", a.Runtime)
	}
	changed, err := api.UpdateAgent(h.asOwner(), rest.UpdateAgentRequestObject{AgentID: id, Params: rest.UpdateAgentParams{IfMatch: `"1"`},
		Body: body[rest.UpdateAgentRequest](t, "updateAgent", `{"description":"Builds","max_trigger_age_ms":null}`)})
	if err != nil {
		t.Fatal(err)
	}
	if a := answer[rest.Agent](t, "Agent", changed.VisitUpdateAgentResponse); a.Version != 2 || a.MaxTriggerAgeMs != nil {
		t.Errorf("%+v", a)
	}
	list, err := api.ListAgents(h.asOwner(), rest.ListAgentsRequestObject{})
	if err != nil {
		t.Fatal(err)
	}
	if l := answer[rest.AgentList](t, "AgentList", list.VisitListAgentsResponse); len(l.Items) != 1 || l.NextCursor != nil {
		t.Errorf("%+v", l)
	}
	off, err := api.DisableAgent(h.asOwner(), rest.DisableAgentRequestObject{AgentID: id})
	if err != nil {
		t.Fatal(err)
	}
	if a := answer[rest.Agent](t, "Agent", off.VisitDisableAgentResponse); a.Status != "disabled" {
		t.Errorf("%+v", a)
	}
	on, err := api.EnableAgent(h.asOwner(), rest.EnableAgentRequestObject{AgentID: id})
	if err != nil {
		t.Fatal(err)
	}
	answer[rest.Agent](t, "Agent", on.VisitEnableAgentResponse)
}
