// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers the REST operations of the module agents and gives its payloads
// the form of the contract.
package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

// Handlers implements the operations of the module; internal/wire embeds it.
type Handlers struct {
	service  *app.Service
	presence agents.Presence
	clock    clock.Clock
	interval time.Duration
}

// New makes the handlers. interval is how often adapters are asked to report, the value of
// sync.heartbeat_interval.
func New(service *app.Service, presence agents.Presence, clk clock.Clock, interval time.Duration) *Handlers {
	return &Handlers{service: service, presence: presence, clock: clk, interval: interval}
}

// CreateAgent implements the operation createAgent.
func (h *Handlers) CreateAgent(ctx context.Context, r rest.CreateAgentRequestObject) (rest.CreateAgentResponseObject, error) {
	b := r.Body
	in := app.NewAgent{
		Handle: b.Handle, DisplayName: b.DisplayName, ToolClass: string(b.ToolClass),
		Billing:  domain.Billing{BillingMode: string(b.BillingMode), HolderID: ids.Deref(b.CredentialHolderID)},
		Settings: settings(b.Description, b.MaxConcurrentRuns, b.AllowedModels, b.UntrustedContext, b.MaxTriggerAgeMs),
	}
	if b.Token != nil {
		in.Token = &app.NewToken{Name: b.Token.Name}
		if b.Token.ExpiresAt != nil {
			in.Token.ExpiresAt = &b.Token.ExpiresAt.Time
		}
	}
	view, token, err := h.service.Create(ctx, in)
	if err != nil {
		return nil, err
	}
	out := rest.CreateAgent201JSONResponse{Body: rest.AgentCreated{Agent: toAgent(view, true)}}
	out.Headers.ETag = rest.ETag(view.Version)
	if token != nil {
		idempotency.ShowsSecret(ctx, view.ID)
		out.Body.Token = toToken(view, token)
	}
	return out, nil
}

func toToken(v app.View, t *app.FirstToken) *rest.TokenCreated {
	out := &rest.TokenCreated{Secret: t.Secret, Token: rest.Token{
		ID: t.ID, Name: t.Name, PrincipalID: v.ID, Kind: rest.TokenKindAgent, Scopes: t.Scopes, AllowedCidrs: []string{},
		ExpiresAt: jsontype.AtPtr(t.ExpiresAt), CreatedAt: jsontype.At(v.CreatedAt), CreatedBy: v.CreatedBy,
	}}
	if n := len(t.Secret); n >= 4 {
		out.Hint = t.Secret[n-4:]
	}
	return out
}

func settings(description *string, concurrent *int, models []string, untrusted *rest.UntrustedContext, age jsontype.Nullable[int64]) domain.Settings {
	s := domain.Settings{Description: description, MaxConcurrent: concurrent, UntrustedContext: (*string)(untrusted)}
	if models != nil {
		s.AllowedModels = &models
	}
	if age.Set {
		value := age.Value
		s.MaxTriggerAgeMs = &value
	}
	return s
}

// ListAgents implements the operation listAgents.
func (h *Handlers) ListAgents(ctx context.Context, r rest.ListAgentsRequestObject) (rest.ListAgentsResponseObject, error) {
	var after ids.ID
	if r.Params.Cursor != nil {
		var err error
		if after, err = paging.Decode[ids.ID]("agents", *r.Params.Cursor); err != nil {
			return nil, errs.New(errs.CodeCursorInvalid, "Begin the list again without a cursor.").WithCause(err)
		}
	}
	filter := app.Filter{Presence: (*string)(r.Params.State), BillingMode: (*string)(r.Params.BillingMode)}
	views, next, err := h.service.List(ctx, filter, after, paging.Limit(r.Params.Limit))
	if err != nil {
		return nil, err
	}
	out := rest.ListAgents200JSONResponse{Items: make([]rest.Agent, 0, len(views))}
	for _, v := range views {
		out.Items = append(out.Items, toAgent(v, true))
	}
	if !next.IsZero() {
		cursor, err := paging.Encode("agents", next)
		if err != nil {
			return nil, fmt.Errorf("encode the cursor: %w", err)
		}
		out.NextCursor = &cursor
	}
	return out, nil
}

// GetAgent implements the operation getAgent.
func (h *Handlers) GetAgent(ctx context.Context, r rest.GetAgentRequestObject) (rest.GetAgentResponseObject, error) {
	view, err := h.service.Get(ctx, r.AgentID)
	if err != nil {
		return nil, err
	}
	return rest.GetAgent200JSONResponse{Body: toAgent(view, true), Headers: rest.GetAgent200ResponseHeaders{ETag: rest.ETag(view.Version)}}, nil
}

// UpdateAgent implements the operation updateAgent.
func (h *Handlers) UpdateAgent(ctx context.Context, r rest.UpdateAgentRequestObject) (rest.UpdateAgentResponseObject, error) {
	version, err := rest.ParseIfMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	b := r.Body
	in := settings(b.Description, b.MaxConcurrentRuns, b.AllowedModels, b.UntrustedContext, b.MaxTriggerAgeMs)
	view, err := h.service.Update(ctx, r.AgentID, version, b.DisplayName, in)
	if err != nil {
		return nil, err
	}
	return rest.UpdateAgent200JSONResponse{Body: toAgent(view, true), Headers: rest.UpdateAgent200ResponseHeaders{ETag: rest.ETag(view.Version)}}, nil
}

// DisableAgent implements the operation disableAgent.
func (h *Handlers) DisableAgent(ctx context.Context, r rest.DisableAgentRequestObject) (rest.DisableAgentResponseObject, error) {
	view, err := h.service.Disable(ctx, r.AgentID)
	if err != nil {
		return nil, err
	}
	return rest.DisableAgent200JSONResponse{Body: toAgent(view, true), Headers: rest.DisableAgent200ResponseHeaders{ETag: rest.ETag(view.Version)}}, nil
}

// EnableAgent implements the operation enableAgent.
func (h *Handlers) EnableAgent(ctx context.Context, r rest.EnableAgentRequestObject) (rest.EnableAgentResponseObject, error) {
	if r.Body != nil {
		ctx = authz.WithResolution(ctx, r.Body.ResolveI1.Choice())
	}
	view, err := h.service.Enable(ctx, r.AgentID)
	if err != nil {
		return nil, err
	}
	return rest.EnableAgent200JSONResponse{Body: toAgent(view, true), Headers: rest.EnableAgent200ResponseHeaders{ETag: rest.ETag(view.Version)}}, nil
}

// SendHeartbeat implements the operation sendHeartbeat. The report goes through the one
// strict decoder that the gateway uses as well.
func (h *Handlers) SendHeartbeat(ctx context.Context, r rest.SendHeartbeatRequestObject) (rest.SendHeartbeatResponseObject, error) {
	raw, err := json.Marshal(r.Body)
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	if err := h.presence.Heartbeat(ctx, r.AgentID, raw); err != nil {
		return nil, err
	}
	return rest.SendHeartbeat200JSONResponse{ServerTime: jsontype.At(h.clock.Now()), IntervalMs: h.interval.Milliseconds()}, nil
}
