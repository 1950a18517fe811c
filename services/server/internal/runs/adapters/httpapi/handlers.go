// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers the REST operations of the module runs, takes progress from the
// gateway and gives the module's payloads the form of the contract.
package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
)

// Handlers implements the operations of the module; internal/wire embeds it.
type Handlers struct{ service *app.Service }

// New makes the handlers.
func New(service *app.Service) *Handlers { return &Handlers{service: service} }

// GetRun implements the operation getRun.
func (h *Handlers) GetRun(ctx context.Context, r rest.GetRunRequestObject) (rest.GetRunResponseObject, error) {
	d, err := h.service.Get(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	return rest.GetRun200JSONResponse(toRun(d.Run, d.Steps)), nil
}

// ListThreadRuns implements the operation listThreadRuns.
func (h *Handlers) ListThreadRuns(ctx context.Context, r rest.ListThreadRunsRequestObject) (rest.ListThreadRunsResponseObject, error) {
	var before ids.ID
	if r.Params.Cursor != nil {
		var err error
		if before, err = paging.Decode[ids.ID]("thread_runs", *r.Params.Cursor); err != nil {
			return nil, errs.New(errs.CodeCursorInvalid, "Begin the list again without a cursor.").WithCause(err)
		}
	}
	list, next, err := h.service.List(ctx, r.ThreadID, before, paging.Limit(r.Params.Limit))
	if err != nil {
		return nil, err
	}
	out := rest.ListThreadRuns200JSONResponse{Items: make([]rest.RunSummary, 0, len(list))}
	for _, run := range list {
		out.Items = append(out.Items, toSummary(run))
	}
	if !next.IsZero() {
		cursor, err := paging.Encode("thread_runs", next)
		if err != nil {
			return nil, fmt.Errorf("encode the cursor: %w", err)
		}
		out.NextCursor = &cursor
	}
	return out, nil
}

// StartRun implements the operation startRun.
func (h *Handlers) StartRun(ctx context.Context, r rest.StartRunRequestObject) (rest.StartRunResponseObject, error) {
	in := app.Start{}
	if r.Body != nil {
		in.Model, in.Title = r.Body.Model, r.Body.Title
	}
	started, err := h.service.Start(ctx, r.RunID, in)
	if err != nil {
		return nil, err
	}
	out := rest.StartRun200JSONResponse{Run: toRun(started.Run, started.Steps), Followups: []rest.RunFollowup{}}
	for _, f := range started.Followups {
		out.Followups = append(out.Followups, rest.RunFollowup{
			ID: f.ID, MessageID: f.MessageID, AuthorID: f.AuthorID, Mode: rest.FollowupMode(f.Mode), State: rest.RunFollowupState(f.State),
			Position: int(f.Position),
		})
	}
	return out, nil
}

// UpdateRun implements the operation updateRun.
func (h *Handlers) UpdateRun(ctx context.Context, r rest.UpdateRunRequestObject) (rest.UpdateRunResponseObject, error) {
	raw, err := json.Marshal(r.Body)
	if err != nil {
		return nil, fmt.Errorf("measure the update: %w", err)
	}
	update := fromUpdate(*r.Body)
	update.Size = len(raw)
	result, err := h.service.Update(ctx, r.RunID, update)
	if err != nil {
		return nil, err
	}
	return rest.UpdateRun200JSONResponse(toResult(result)), nil
}

func toResult(u app.UpdateResult) rest.RunUpdateResult {
	return rest.RunUpdateResult{
		DocVersion: u.DocVersion, State: rest.RunState(u.State), OutputLength: u.OutputLength, CancelRequested: u.CancelRequested,
		FollowupsPending: u.FollowupsPending,
	}
}

// FinishRun implements the operation finishRun.
func (h *Handlers) FinishRun(ctx context.Context, r rest.FinishRunRequestObject) (rest.FinishRunResponseObject, error) {
	d, err := h.service.Finish(ctx, r.RunID, fromFinish(*r.Body))
	if err != nil {
		return nil, err
	}
	return rest.FinishRun200JSONResponse(toRun(d.Run, d.Steps)), nil
}

// CancelRun implements the operation cancelRun.
func (h *Handlers) CancelRun(ctx context.Context, r rest.CancelRunRequestObject) (rest.CancelRunResponseObject, error) {
	reason := ""
	if r.Body != nil && r.Body.Reason != nil {
		reason = *r.Body.Reason
	}
	d, err := h.service.Cancel(ctx, r.RunID, reason)
	if err != nil {
		return nil, err
	}
	return rest.CancelRun200JSONResponse(toRun(d.Run, d.Steps)), nil
}

// RenewRunToken implements the operation renewRunToken.
func (h *Handlers) RenewRunToken(ctx context.Context, r rest.RenewRunTokenRequestObject) (rest.RenewRunTokenResponseObject, error) {
	token, err := h.service.RenewToken(ctx, r.RunID)
	if err != nil {
		return nil, err
	}
	return rest.RenewRunToken200JSONResponse{Token: token.Compact, ExpiresAt: jsontype.At(token.ExpiresAt)}, nil
}

// GetRunContext implements the operation getRunContext.
func (h *Handlers) GetRunContext(ctx context.Context, r rest.GetRunContextRequestObject) (rest.GetRunContextResponseObject, error) {
	before := int64(0)
	if r.Params.Before != nil {
		var err error
		if before, err = strconv.ParseInt(*r.Params.Before, 10, 64); err != nil || before < 1 {
			return nil, errs.Invalid("query:before", "invalid", "Pass the value of before from the page read last.")
		}
	}
	c, err := h.service.Context(ctx, r.RunID, before, paging.Limit(r.Params.Limit))
	if err != nil {
		return nil, err
	}
	return rest.GetRunContext200JSONResponse(toContext(c)), nil
}

func toContext(c app.RunContext) rest.RunContext {
	out := rest.RunContext{
		Config: rest.AgentConfig{
			ChannelID: c.Channel.ID, ConfigVersion: c.Channel.ConfigVersion, OperatorAgentID: c.Channel.OperatorID.Ptr(), Prompt: c.Channel.Prompt,
			TriggerRule: rest.TriggerRule(c.Channel.TriggerRule), AgentChaining: c.Channel.AgentChaining,
			AgentSources: rest.AgentSources(c.Channel.AgentSources), Skills: []rest.SkillBinding{},
		},
		Files: []any{}, Language: c.Language, Messages: []rest.ContextMessage{}, Participants: []rest.ContextParticipant{},
	}
	if c.Before > 0 {
		before := strconv.FormatInt(c.Before, 10)
		out.Before = &before
	}
	for _, p := range c.Participants {
		out.Participants = append(out.Participants, rest.ContextParticipant{ID: p.ID, Kind: rest.PrincipalKind(p.Kind), Handle: p.Handle, DisplayName: p.DisplayName})
	}
	for _, m := range c.Messages {
		out.Messages = append(out.Messages, rest.ContextMessage{
			ID: m.ID, ThreadSeq: m.ThreadSeq, Kind: rest.MessageKind(m.Kind), Author: toAuthor(m.Author), Content: m.Content, Attachments: []any{},
			CreatedAt: jsontype.At(m.CreatedAt), EditedAt: jsontype.AtPtr(m.EditedAt), RunID: m.RunID.Ptr(), Trust: rest.Trust(m.Trust), Withheld: m.Withheld,
		})
	}
	return out
}
