// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
)

// Updates implements runs.Updates: the gateway's twin of the operation updateRun. A frame
// has no header, so the invocation token is a member of it.
type Updates struct{ service *app.Service }

// NewUpdates makes the adapter.
func NewUpdates(service *app.Service) *Updates { return &Updates{service: service} }

// Update implements runs.Updates.
func (u *Updates) Update(ctx context.Context, body json.RawMessage) (json.RawMessage, error) {
	run, token, update, err := decodeFrame(body)
	if err != nil {
		return nil, err
	}
	who := actor.From(ctx)
	acting, err := u.service.VerifyInvocation(ctx, who.ID, token)
	if err != nil {
		return nil, err
	}
	who.ActingFor = &acting
	result, err := u.service.Update(actor.With(ctx, who), run, fromUpdate(update))
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(toResult(result))
	if err != nil {
		return nil, fmt.Errorf("encode the result of an update: %w", err)
	}
	return raw, nil
}

// decodeFrame takes run and token out and holds the rest to the schema of the operation.
func decodeFrame(body json.RawMessage) (run ids.ID, token string, update rest.UpdateRunRequest, err error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return run, "", update, errs.Invalid("", "type", "Expected an object.")
	}
	var faults errs.Validation
	if raw, ok := members["run_id"]; !ok || json.Unmarshal(raw, &run) != nil || run.IsZero() {
		faults.Add("/run_id", "invalid", "Expected the ID of a run.")
	}
	if raw, ok := members["invocation_token"]; !ok || json.Unmarshal(raw, &token) != nil || token == "" {
		faults.Add("/invocation_token", "required", "Send the token of the order.")
	}
	if err := faults.Err(); err != nil {
		return run, "", update, err
	}
	delete(members, "run_id")
	delete(members, "invocation_token")
	rest, err := json.Marshal(members)
	if err != nil {
		return run, "", update, fmt.Errorf("encode the members of a frame: %w", err)
	}
	if err := contract.Body("updateRun", rest); err != nil {
		return run, "", update, err
	}
	if err := json.NewDecoder(bytes.NewReader(rest)).Decode(&update); err != nil {
		return run, "", update, errs.Invalid("", "invalid", "The body does not fit the contract.").WithCause(err)
	}
	return run, token, update, nil
}
