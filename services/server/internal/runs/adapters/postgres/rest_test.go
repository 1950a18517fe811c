// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs/adapters/httpapi"
)

// answer writes a response as the server does and holds it against the contract.
func answer(t *testing.T, schema string, visit func(http.ResponseWriter) error) map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	if err := visit(w); err != nil {
		t.Fatal(err)
	}
	if err := contract.Value(schema, w.Body.Bytes()); err != nil {
		t.Errorf("%s: %s", schema, describe(err))
	}
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func body[T any](t *testing.T, operation, raw string) *T {
	t.Helper()
	if err := contract.Body(operation, []byte(raw)); err != nil {
		t.Fatalf("%s: %s", operation, describe(err))
	}
	var out T
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestAnAgentWorksThroughRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := httpapi.New(w.service)
	_, run := w.order()
	token, err := h.RenewRunToken(w.asAgent(w.agent), rest.RenewRunTokenRequestObject{RunID: run})
	if err != nil {
		t.Fatal(err)
	}
	compact, _ := answer(t, "RunToken", token.VisitRenewRunTokenResponse)["token"].(string)
	ctx := w.acting(w.agent, compact)
	known, err := h.GetRunContext(ctx, rest.GetRunContextRequestObject{RunID: run})
	if err != nil {
		t.Fatal(err)
	}
	answer(t, "RunContext", known.VisitGetRunContextResponse)
	started, err := h.StartRun(ctx, rest.StartRunRequestObject{RunID: run, Body: body[rest.StartRunRequest](t, "startRun", `{"model":"large-1","title":"Work"}`)})
	if err != nil {
		t.Fatal(err)
	}
	answer(t, "RunStarted", started.VisitStartRunResponse)
	update := body[rest.UpdateRunRequest](t, "updateRun", `{"base_version":2,"append":[{"target":"output","offset":0,"text":"Hi"}],"patch":{
		"status_line":"Reading","plan":[{"key":"a","text":"Read","state":"running"}],"usage":{"acme/large-1":{"input_tokens":12}},
		"steps":{"s1":{"kind":"tool","tool_kind":"read","title":"Read","state":"running","input":{"path":"a"}},"s2":{"title":"Think","output":null}},
		"artifacts":{"pr":{"kind":"pull_request","title":"Fix","url":"https://example.org/1"},"none":null}}}`)
	updated, err := h.UpdateRun(ctx, rest.UpdateRunRequestObject{RunID: run, Body: update})
	if err != nil {
		t.Fatal(describe(err))
	}
	answer(t, "RunUpdateResult", updated.VisitUpdateRunResponse)
	read, err := h.GetRun(w.asPerson(), rest.GetRunRequestObject{RunID: run})
	if err != nil {
		t.Fatal(err)
	}
	if doc := answer(t, "Run", read.VisitGetRunResponse); doc["input_tokens"] != 12.0 || len(doc["steps"].(map[string]any)) != 2 {
		t.Errorf("%+v", doc)
	}
	finish := body[rest.FinishRunRequest](t, "finishRun", `{"state":"failed","error":{"code":"oops","message":"It broke."},"usage":{"acme/large-1":{"output_tokens":3}}}`)
	finished, err := h.FinishRun(ctx, rest.FinishRunRequestObject{RunID: run, Body: finish})
	if err != nil {
		t.Fatal(describe(err))
	}
	if doc := answer(t, "Run", finished.VisitFinishRunResponse); doc["end_reason"] != "agent_error" || doc["output_tokens"] != 3.0 || doc["error_code"] != "oops" {
		t.Errorf("%+v", doc)
	}
	cancelled, err := h.CancelRun(w.asPerson(), rest.CancelRunRequestObject{RunID: run})
	if err != nil {
		t.Fatal(err)
	}
	answer(t, "Run", cancelled.VisitCancelRunResponse)
	list, err := h.ListThreadRuns(w.asPerson(), rest.ListThreadRunsRequestObject{ThreadID: w.thread})
	if err != nil {
		t.Fatal(err)
	}
	answer(t, "RunSummaryList", list.VisitListThreadRunsResponse)
	bad := "nothing"
	if _, err := h.ListThreadRuns(w.asPerson(), rest.ListThreadRunsRequestObject{ThreadID: w.thread, Params: rest.ListThreadRunsParams{Cursor: &bad}}); !errs.Is(err, errs.CodeCursorInvalid) {
		t.Errorf("%v", err)
	}
	if _, err := h.GetRun(w.asPerson(), rest.GetRunRequestObject{RunID: ids.New()}); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("%v", err)
	}
}
