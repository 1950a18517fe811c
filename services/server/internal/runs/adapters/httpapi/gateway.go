// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
)

// Updates implements runs.Updates: the gateway's twin of the operation updateRun. A frame
// has no header, so the invocation token is a member of it.
type Updates struct{ service *app.Service }

// NewUpdates makes the adapter.
func NewUpdates(service *app.Service) *Updates { return &Updates{service: service} }

// Update implements runs.Updates.
func (u *Updates) Update(ctx context.Context, body json.RawMessage) (json.RawMessage, error) {
	if err := contract.Value("RunUpdateFrame", body); err != nil {
		return nil, err
	}
	var frame ws.RunUpdateFrame
	if err := json.Unmarshal(body, &frame); err != nil {
		return nil, errs.Invalid("", "invalid", "The frame does not fit the contract.").WithCause(err)
	}
	who := actor.From(ctx)
	acting, err := u.service.VerifyInvocation(ctx, who.ID, frame.InvocationToken)
	if err != nil {
		return nil, err
	}
	who.ActingFor = &acting
	update := fromUpdate(rest.UpdateRunRequest{BaseVersion: frame.BaseVersion, Patch: frame.Patch, Append: frame.Append, Consumed: frame.Consumed})
	update.Size = len(body) - len(frame.InvocationToken)
	result, err := u.service.Update(actor.With(ctx, who), frame.RunID, update)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(toResult(result))
	if err != nil {
		return nil, fmt.Errorf("encode the result of an update: %w", err)
	}
	return raw, nil
}
