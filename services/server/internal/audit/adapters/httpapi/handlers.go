// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the REST operations of audit.
package httpapi

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/audit/adapters/export"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

// Handlers has the operations of audit; internal/wire embeds it.
type Handlers struct{ Audit *app.Service }

// The names of the lists in their cursors.
const (
	listEvents      = "audit_events"
	listCheckpoints = "audit_checkpoints"
)

// ListAuditEvents implements the operation of this name.
func (h Handlers) ListAuditEvents(ctx context.Context, req rest.ListAuditEventsRequestObject) (rest.ListAuditEventsResponseObject, error) {
	p := req.Params
	before, err := cursor(listEvents, p.Cursor)
	if err != nil {
		return nil, err
	}
	f := app.EventFilter{
		ActorID: ids.Deref(p.ActorID), ResourceID: ids.Deref(p.ResourceID), SpaceID: ids.Deref(p.SpaceID),
		ChannelID: ids.Deref(p.ChannelID), Before: before, Limit: paging.Limit(p.Limit),
	}
	if p.Action != nil && strings.HasSuffix(*p.Action, ".") {
		f.ActionPrefix = *p.Action
	} else if p.Action != nil {
		f.Action = *p.Action
	}
	if p.Outcome != nil {
		f.Outcome = string(*p.Outcome)
	}
	if p.From != nil {
		f.From = p.From.Time
	}
	if p.To != nil {
		f.To = p.To.Time
	}
	list, more, err := h.Audit.ListEvents(ctx, f)
	if err != nil {
		return nil, err
	}
	out := rest.ListAuditEvents200JSONResponse{Items: make([]rest.AuditEvent, len(list))}
	for i := range list {
		if out.Items[i], err = toEvent(&list[i]); err != nil {
			return nil, err
		}
	}
	if more {
		out.NextCursor, err = next(listEvents, list[len(list)-1].Seq)
	}
	return out, err
}

// GetAuditEvent implements the operation of this name.
func (h Handlers) GetAuditEvent(ctx context.Context, req rest.GetAuditEventRequestObject) (rest.GetAuditEventResponseObject, error) {
	r, err := h.Audit.GetEvent(ctx, req.EventID)
	if err != nil {
		return nil, err
	}
	out, err := toEvent(&r)
	if err != nil {
		return nil, err
	}
	before, own := hex.EncodeToString(r.PrevHash[:]), hex.EncodeToString(r.HashValue[:])
	out.PrevHash, out.Hash = &before, &own
	return rest.GetAuditEvent200JSONResponse(out), nil
}

// ListAuditCheckpoints implements the operation of this name.
func (h Handlers) ListAuditCheckpoints(ctx context.Context, req rest.ListAuditCheckpointsRequestObject) (rest.ListAuditCheckpointsResponseObject, error) {
	before, err := cursor(listCheckpoints, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, more, err := h.Audit.ListCheckpoints(ctx, before, paging.Limit(req.Params.Limit))
	if err != nil {
		return nil, err
	}
	out := rest.ListAuditCheckpoints200JSONResponse{Items: make([]rest.AuditCheckpoint, len(list))}
	for i, c := range list {
		out.Items[i] = toCheckpoint(c)
	}
	if more {
		out.NextCursor, err = next(listCheckpoints, list[len(list)-1].Seq)
	}
	return out, err
}

// VerifyAudit implements the operation of this name.
func (h Handlers) VerifyAudit(ctx context.Context, req rest.VerifyAuditRequestObject) (rest.VerifyAuditResponseObject, error) {
	var from, to int64
	if b := req.Body; b != nil {
		from, to = value(b.FromSeq), value(b.ToSeq)
	}
	r, err := h.Audit.VerifyRecord(ctx, from, to)
	if err != nil {
		return nil, err
	}
	out := rest.VerifyAudit200JSONResponse{
		Ok: r.OK, FirstSeq: r.FirstSeq, LastSeq: r.LastSeq, Checked: r.Checked, Checkpoints: r.Checkpoints,
		Breaks: make([]rest.AuditBreak, len(r.Breaks)), Warnings: make([]rest.AuditVerifyResultWarnings, len(r.Warnings)),
	}
	for i, b := range r.Breaks {
		out.Breaks[i] = rest.AuditBreak{Seq: b.Seq, Kind: rest.AuditBreakKind(b.Kind)}
	}
	for i, w := range r.Warnings {
		out.Warnings[i] = rest.AuditVerifyResultWarnings(w)
	}
	return out, nil
}

// ExportAudit implements the operation of this name.
func (h Handlers) ExportAudit(ctx context.Context, req rest.ExportAuditRequestObject) (rest.ExportAuditResponseObject, error) {
	e, err := h.Audit.NewExport(ctx, value(req.Params.FromSeq), value(req.Params.ToSeq))
	if err != nil {
		return nil, err
	}
	return exported{ctx, e}, nil
}

// exported streams an export: the generated answer wants a reader, and the export writes.
type exported struct {
	ctx    context.Context //nolint:containedctx // The interface of the generated code has none.
	export *app.Export
}

// VisitExportAuditResponse implements rest.ExportAuditResponseObject. What fails after the first
// byte ends the connection, and the missing end tells the reader.
func (e exported) VisitExportAuditResponse(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", export.MediaType)
	w.Header().Set("Content-Disposition", `attachment; filename="audit.ndjson"`)
	w.WriteHeader(http.StatusOK)
	if err := e.export.Write(e.ctx, export.NewWriter(w)); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func toEvent(r *domain.Row) (rest.AuditEvent, error) {
	out := rest.AuditEvent{
		Seq: r.Seq, ID: r.ID, OccurredAt: jsontype.At(r.OccurredAt), Action: r.Action, Outcome: rest.AuditOutcome(r.Outcome),
		Reason: text(r.Reason), CorrelationID: r.CorrelationID.Ptr(), Details: map[string]any{},
		Actor: rest.AuditActor{
			Kind: rest.AuditActorKind(r.Actor.Kind), ID: r.Actor.ID.Ptr(), SessionID: r.Actor.SessionID.Ptr(),
			DeviceID: r.Actor.DeviceID.Ptr(), TokenID: r.Actor.TokenID.Ptr(), ActingForID: r.Actor.ActingForID.Ptr(),
			ViewAsID: r.Actor.ViewAsID.Ptr(),
		},
	}
	if len(r.Details) > 0 {
		if err := json.Unmarshal(r.Details, &out.Details); err != nil {
			return out, fmt.Errorf("read the details of the audit row %d: %w", r.Seq, err)
		}
		for key, v := range out.Details {
			out.Details[key] = inMilliseconds(v)
		}
	}
	if r.ResourceKind != "" || !r.ResourceID.IsZero() {
		out.Resource = &rest.AuditResource{Kind: text(r.ResourceKind), ID: r.ResourceID.Ptr()}
	}
	if !r.SpaceID.IsZero() || !r.ChannelID.IsZero() {
		out.Place = &rest.AuditPlace{SpaceID: r.SpaceID.Ptr(), ChannelID: r.ChannelID.Ptr()}
	}
	if r.IPPseudonym != "" {
		out.Address = &rest.AuditAddress{KeyID: r.IPKeyID, Pseudonym: r.IPPseudonym}
	}
	return out, nil
}

// inMilliseconds writes the times of details, which the record holds finer, as the contract does.
func inMilliseconds(v any) any {
	if s, ok := v.(string); ok {
		if at, err := time.Parse(domain.TimeLayout, s); err == nil {
			return jsontype.At(at)
		}
	}
	return v
}

func toCheckpoint(c domain.Checkpoint) rest.AuditCheckpoint {
	return rest.AuditCheckpoint{
		ID: c.ID, Seq: c.Seq, FirstSeq: c.FirstSeq, Hash: hex.EncodeToString(c.HashValue[:]), Kid: c.KID, Jws: c.JWS,
		CreatedAt: jsontype.At(c.CreatedAt), SinkState: rest.AuditCheckpointSinkState(c.Sink), SinkAttempts: c.SinkAttempts,
		SinkError: text(c.SinkError), DepositedAt: jsontype.AtPtr(c.DepositedAt),
	}
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func cursor(list string, given *string) (int64, error) {
	if given == nil {
		return 0, nil
	}
	seq, err := paging.Decode[int64](list, *given)
	if err != nil || seq < 1 {
		return 0, errs.New(errs.CodeCursorInvalid, "The cursor does not belong to this list. Begin anew without it.")
	}
	return seq, nil
}

func next(list string, seq int64) (*string, error) {
	c, err := paging.Encode(list, seq)
	if err != nil {
		return nil, fmt.Errorf("encode the cursor: %w", err)
	}
	return &c, nil
}
