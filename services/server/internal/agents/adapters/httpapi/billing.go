// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

// SetAgentBillingMode implements the operation setAgentBillingMode.
func (h *Handlers) SetAgentBillingMode(ctx context.Context, r rest.SetAgentBillingModeRequestObject) (rest.SetAgentBillingModeResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	b := domain.Billing{BillingMode: string(r.Body.BillingMode), HolderID: ids.Deref(r.Body.CredentialHolderID)}
	v, err := h.service.SetBillingMode(authz.WithResolution(ctx, r.Body.ResolveI1.Choice()), r.AgentID, version, b)
	if err != nil {
		return nil, err
	}
	return rest.SetAgentBillingMode200JSONResponse{Body: toAgent(v, true), Headers: rest.SetAgentBillingMode200ResponseHeaders{ETag: rest.ETag(v.Version)}}, nil
}

// SetAgentCredentialHolder implements the operation setAgentCredentialHolder.
func (h *Handlers) SetAgentCredentialHolder(ctx context.Context, r rest.SetAgentCredentialHolderRequestObject) (rest.SetAgentCredentialHolderResponseObject, error) {
	v, err := h.service.SetCredentialHolder(authz.WithResolution(ctx, r.Body.ResolveI1.Choice()), r.AgentID, r.Body.PersonID)
	if err != nil {
		return nil, err
	}
	headers := rest.SetAgentCredentialHolder200ResponseHeaders{ETag: rest.ETag(v.Version)}
	return rest.SetAgentCredentialHolder200JSONResponse{Body: toAgent(v, true), Headers: headers}, nil
}

// SetAllAgentsBillingMode implements the operation setAllAgentsBillingMode.
func (h *Handlers) SetAllAgentsBillingMode(ctx context.Context, r rest.SetAllAgentsBillingModeRequestObject) (rest.SetAllAgentsBillingModeResponseObject, error) {
	changed, err := h.service.SetAllBillingModes(ctx, string(r.Body.BillingMode), r.Body.AgentIds)
	if err != nil {
		return nil, err
	}
	out := rest.AgentsChanged{Changed: []ids.ID{}}
	out.Changed = append(out.Changed, changed...)
	return rest.SetAllAgentsBillingMode200JSONResponse(out), nil
}

// SetAgentToolClass implements the operation setAgentToolClass.
func (h *Handlers) SetAgentToolClass(ctx context.Context, r rest.SetAgentToolClassRequestObject) (rest.SetAgentToolClassResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	v, err := h.service.SetToolClass(ctx, r.AgentID, version, string(r.Body.ToolClass))
	if err != nil {
		return nil, err
	}
	return rest.SetAgentToolClass200JSONResponse{Body: toAgent(v, true), Headers: rest.SetAgentToolClass200ResponseHeaders{ETag: rest.ETag(v.Version)}}, nil
}

const listTriggerers = "triggerers"

// ListAgentTriggerers implements the operation listAgentTriggerers.
func (h *Handlers) ListAgentTriggerers(ctx context.Context, r rest.ListAgentTriggerersRequestObject) (rest.ListAgentTriggerersResponseObject, error) {
	var after app.TriggererKey
	if r.Params.Cursor != nil {
		var err error
		if after, err = paging.Decode[app.TriggererKey](listTriggerers, *r.Params.Cursor); err != nil {
			return nil, errs.New(errs.CodeCursorInvalid, "Begin the list again without a cursor.").WithCause(err)
		}
	}
	list, more, err := h.service.Triggerers(ctx, r.AgentID, after, paging.Limit(r.Params.Limit))
	if err != nil {
		return nil, err
	}
	out := rest.ListAgentTriggerers200JSONResponse{Items: make([]rest.Triggerer, 0, len(list))}
	for _, t := range list {
		out.Items = append(out.Items, toTriggerer(t))
	}
	if more {
		cursor, err := paging.Encode(listTriggerers, app.KeyOf(list[len(list)-1]))
		if err != nil {
			return nil, fmt.Errorf("encode the cursor: %w", err)
		}
		out.NextCursor = &cursor
	}
	return out, nil
}

func toTriggerer(t authz.Triggerer) rest.Triggerer {
	out := rest.Triggerer{PrincipalID: t.PrincipalID, Target: toTarget(t.Target), Path: []rest.TriggerPath{}}
	for _, p := range t.Paths {
		out.Path = append(out.Path, rest.TriggerPath{
			Code: rest.TriggerPathCode(p.Code), GrantID: p.GrantID.Ptr(), GroupID: p.GroupID.Ptr(), Target: toTarget(p.Target), Level: rest.Level(p.Level),
		})
	}
	return out
}

func toTarget(t authz.Target) rest.Target {
	return rest.Target{Kind: rest.TargetKind(t.Kind), ID: t.ID.Ptr()}
}
