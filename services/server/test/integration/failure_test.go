// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// named gives an identifier for every parameter of the path of an operation.
func named(op routes.Operation, id func(name string) string) []any {
	var out []any
	for part := range strings.SplitSeq(op.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			out = append(out, id(strings.TrimSuffix(name, "}")))
		}
	}
	return out
}

func unknown(string) string { return harness.NewID() }

// TestRequestsOfAWrongForm sends every operation what it cannot understand. Nothing of it may
// reach a use case, and the answer names the fault.
func TestRequestsOfAWrongForm(t *testing.T) {
	s := shared.Use(t)
	owner := s.Owner(t)
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for _, op := range routes.Operations {
		// A provider sends a browser back with whatever it likes to add, and the browser gets a page.
		if op.AuthorizedInBand || op.BodyLimit == routes.BodyReport || op.ID == "oidcCallback" {
			continue
		}
		base := append(named(op, unknown), harness.IfMatch(1))
		call := func(parts ...any) *harness.Response {
			return owner.Call(t, op.ID, append(slices.Clone(base), parts...)...)
		}
		t.Run(op.ID, func(t *testing.T) {
			call(bodyFor(op), harness.Query{"no_such_parameter": "1"}).Refused(t, "validation_failed")
			if len(base) > 1 {
				bad := append(named(op, func(string) string { return "not-an-id" }), harness.IfMatch(1), bodyFor(op))
				if code := owner.Call(t, op.ID, bad...).Code(); code != "validation_failed" && code != "not_found" {
					t.Errorf("a malformed identifier answers %q", code)
				}
			}
			if op.BodyLimit == routes.BodyNone {
				call(harness.Raw(`{"x":1}`)).Refused(t, "malformed_request")
				return
			}
			call(harness.Raw(`{"x":`)).Refused(t, "malformed_request")
			call(harness.Raw(`{"x":1}{"x":1}`)).Refused(t, "malformed_request")
			call(harness.Raw(`{"x":1,"x":2}`)).Refused(t, "malformed_request")
			call(harness.Raw(deep)).Refused(t, "malformed_request")
			call(harness.Raw(`{"name":"\ud800"}`)).Refused(t, "malformed_request")
			call(harness.Raw(`{"x":"`+letters(1<<20)+`"}`)).Refused(t, "payload_too_large")
			call(harness.Raw(`{}`), harness.Header{"Content-Type": "text/plain"}).Refused(t, "unsupported_media_type")
			call(harness.Raw(`[]`)).Refused(t, "validation_failed")
			if r := call(harness.Body{"no_such_member": 1}).Refused(t, "validation_failed"); !strings.Contains(string(r.Body), `"/no_such_member"`) {
				t.Errorf("the fault is not named: %s", r.Body)
			}
		})
	}
}

// bodyFor is nothing for an operation without a body, and an empty object otherwise.
func bodyFor(op routes.Operation) any {
	if op.BodyLimit == routes.BodyNone {
		return harness.Header{}
	}
	return harness.Body{}
}

// TestHiddenAndMissingAreTheSame holds the answers for something that a caller may not see and
// for something that is not there against each other, byte by byte.
func TestHiddenAndMissingAreTheSame(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	owner, out, rival := s.Owner(t), s.Person(t, "out"), s.Agent(t, "rival")
	out.StepUp(t)
	run, _, _ := w.started(t, "hide")
	message := w.caller.Say(t, w.place.Thread, "hidden")
	token := w.caller.Call(t, "createToken", harness.Body{"name": "x", "scopes": []string{"chat.read"}, "expires_at": s.In(60 * minute)}).OK(t)
	hidden := map[string]string{
		"space_id": w.place.Space, "channel_id": w.place.Channel, "thread_id": w.place.Thread, "message_id": message.Str("id"),
		"run_id": run, "agent_id": w.agent.ID, "grant_id": w.right, "session_id": w.caller.Session, "token_id": token.Str("id"),
	}
	bodies := map[string]harness.Body{
		"createChannel": {"kind": "text", "name": "x"}, "setChannelOperator": {"mode": "none"}, "createThread": {"title": "x", "message": harness.Message("x")},
		"createMessage": harness.Message("x"), "updateMessage": {"content": "x"}, "updateReadState": {"last_read_thread_seq": 1},
		"markThreadUnread": {"from_thread_seq": 1}, "sendHeartbeat": {"state": "online"}, "updateRun": {"base_version": 1}, "finishRun": {"state": "failed"},
	}
	for _, op := range routes.Operations {
		names := slices.Collect(maps.Keys(hidden))
		if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(op.Path, "{"+n+"}") }) {
			continue
		}
		callers := map[string]*harness.Client{"person": out, "agent": rival}
		if op.ID == "getSpace" || op.ID == "getRun" {
			callers["token"] = out.Token(t, "chat.read", "runs.read")
		}
		for kind, by := range callers {
			t.Run(op.ID+"/"+kind, func(t *testing.T) {
				rest := []any{harness.IfMatch(1)}
				if op.BodyLimit != routes.BodyNone {
					body := bodies[op.ID]
					if body == nil {
						body = harness.Body{}
					}
					rest = append(rest, body)
				}
				seen := by.Call(t, op.ID, append(named(op, func(n string) string { return hidden[n] }), rest...)...)
				missing := by.Call(t, op.ID, append(named(op, unknown), rest...)...)
				if seen.Status < http.StatusBadRequest {
					t.Fatalf("the hidden thing was answered: %s", seen.Body)
				}
				if a, b := bare(t, seen), bare(t, missing); a != b || seen.Status != missing.Status {
					t.Errorf("hidden:  %d %s\nmissing: %d %s", seen.Status, a, missing.Status, b)
				}
			})
		}
	}
	_ = owner
}

// bare is a problem without what differs from request to request.
func bare(t *testing.T, r *harness.Response) string {
	t.Helper()
	var problem map[string]any
	harness.Must(t, json.Unmarshal(r.Body, &problem))
	delete(problem, "correlation_id")
	raw, err := json.Marshal(problem)
	harness.Must(t, err)
	return string(raw)
}

func TestRepeatsWithAKey(t *testing.T) {
	s := shared.Use(t)
	owner := s.Owner(t)
	name := s.Unique("Once")
	first := owner.Call(t, "createSpace", harness.Body{"name": name}, harness.Key(name)).Is(t, http.StatusCreated)
	again := owner.Call(t, "createSpace", harness.Body{"name": name}, harness.Key(name)).Is(t, http.StatusCreated)
	if string(first.Body) != string(again.Body) || first.Header.Get("ETag") != again.Header.Get("ETag") {
		t.Errorf("the repeat answers otherwise:\n%s\n%s", first.Body, again.Body)
	}
	owner.Call(t, "createSpace", harness.Body{"name": name + "!"}, harness.Key(name)).Refused(t, "idempotency_key_reuse")
	// The key belongs to its caller and its operation.
	s.Person(t, "ana").Call(t, "createSpace", harness.Body{"name": name}, harness.Key(name)).Refused(t, "forbidden")
	owner.Call(t, "createChannel", first.Str("id"), harness.Body{"kind": "text", "name": "x"}, harness.Key(name)).Is(t, http.StatusCreated)
	// A refusal is not stored: the same request may succeed later.
	taken := s.Unique("Later")
	other := owner.Call(t, "createSpace", harness.Body{"name": taken}).OK(t)
	owner.Call(t, "createSpace", harness.Body{"name": taken}, harness.Key(taken)).Refused(t, "conflict")
	owner.Call(t, "updateSpace", other.Str("id"), other.Version(t), harness.Body{"name": s.Unique("Moved")}).OK(t)
	owner.Call(t, "createSpace", harness.Body{"name": taken}, harness.Key(taken)).Is(t, http.StatusCreated)
	// What shows a secret is shown once.
	handle := s.Unique("secret")
	person := harness.Body{"handle": handle, "display_name": "X", "issue_code": true}
	made := owner.Call(t, "createUser", person, harness.Key(handle)).Is(t, http.StatusCreated)
	repeat := owner.Call(t, "createUser", person, harness.Key(handle)).Refused(t, "conflict", "secret_already_shown")
	if strings.Contains(string(repeat.Body), made.Str("enrollment.code")) {
		t.Error("the repeat shows the code")
	}
	if n := s.DB.Count(t, "SELECT count(*) FROM idempotency_keys WHERE position($1 IN coalesce(convert_from(body, 'UTF8'), '')) > 0", made.Str("enrollment.code")); n > 0 {
		t.Error("the code is stored")
	}
}

// A number may be whole to the schema and still be written in a way that the types of the
// answerer do not read. That is a fault of the request and never of the server.
func TestANumberThatCannotBeReadIsAFaultOfTheRequest(t *testing.T) {
	s := shared.Use(t)
	owner := s.Owner(t)
	place := s.Space(t, "write")
	owner.Call(t, "updateReadState", place.Thread, harness.Raw(`{"last_read_thread_seq":1e0}`)).Refused(t, "validation_failed")
}
