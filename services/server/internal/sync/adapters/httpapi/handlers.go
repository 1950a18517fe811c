// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers the REST operations of the module sync.
package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
)

// Handlers implements the operations of the module; internal/wire embeds it.
type Handlers struct {
	snapshot   *app.Snapshot
	readStates *app.ReadStates
	events     *app.Events
}

// Deps are the parts of the handlers.
type Deps struct {
	Snapshot   *app.Snapshot
	ReadStates *app.ReadStates
	Events     *app.Events
}

// New makes the handlers.
func New(d Deps) *Handlers {
	return &Handlers{snapshot: d.Snapshot, readStates: d.ReadStates, events: d.Events}
}

// rawJSON answers with bytes that are already in the form of the contract.
type rawJSON struct{ body json.RawMessage }

func (r rawJSON) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(r.body)
	return err
}

// VisitGetSnapshotResponse implements the generated response interface.
func (r rawJSON) VisitGetSnapshotResponse(w http.ResponseWriter) error { return r.write(w) }

// VisitListSyncEventsResponse implements the generated response interface.
func (r rawJSON) VisitListSyncEventsResponse(w http.ResponseWriter) error { return r.write(w) }

// GetSnapshot implements the operation getSnapshot.
func (h *Handlers) GetSnapshot(ctx context.Context, r rest.GetSnapshotRequestObject) (rest.GetSnapshotResponseObject, error) {
	req := app.SnapshotRequest{}
	var faults errs.Validation
	for _, name := range r.Params.Sections {
		if !slices.Contains(app.SectionNames(), name) {
			faults.Addf("query:sections", "unknown", "There is no section %q.", name)
		}
		req.Sections = append(req.Sections, name)
	}
	for _, target := range r.Params.Targets {
		kind, id, _ := strings.Cut(target, ":")
		parsed, err := ids.Parse(id)
		if err != nil || kind != "space" && kind != "channel" {
			faults.Addf("query:targets", "invalid", "%q is neither space:<id> nor channel:<id>.", target)
			continue
		}
		req.Targets = append(req.Targets, parsed)
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if r.Params.Cursor != nil {
		req.Cursor = *r.Params.Cursor
	}
	page, err := h.snapshot.Read(ctx, req)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(page)
	if err != nil {
		return nil, fmt.Errorf("encode the snapshot: %w", err)
	}
	return rawJSON{body}, nil
}

type eventPage struct {
	Events     []json.RawMessage `json:"events"`
	ThroughSeq int64             `json:"through_seq"`
	HeadSeq    int64             `json:"head_seq"`
	SyncEpoch  ids.ID            `json:"sync_epoch"`
	Complete   bool              `json:"complete"`
}

// ListSyncEvents implements the operation listSyncEvents.
func (h *Handlers) ListSyncEvents(ctx context.Context, r rest.ListSyncEventsRequestObject) (rest.ListSyncEventsResponseObject, error) {
	limit := 0
	if r.Params.Limit != nil {
		limit = *r.Params.Limit
	}
	page, err := h.events.Read(ctx, r.Params.SyncEpoch, r.Params.After, limit)
	if err != nil {
		return nil, err
	}
	out := eventPage{
		Events: []json.RawMessage{}, ThroughSeq: page.ThroughSeq, HeadSeq: page.HeadSeq, SyncEpoch: r.Params.SyncEpoch, Complete: page.Complete(),
	}
	for _, e := range page.Events {
		raw, err := sync.Envelope(e)
		if err != nil {
			return nil, err
		}
		out.Events = append(out.Events, raw)
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode the page: %w", err)
	}
	return rawJSON{body}, nil
}

// UpdateReadState implements the operation updateReadState.
func (h *Handlers) UpdateReadState(ctx context.Context, r rest.UpdateReadStateRequestObject) (rest.UpdateReadStateResponseObject, error) {
	clearMark := r.Body.ClearManual != nil && *r.Body.ClearManual
	state, err := h.readStates.Update(ctx, r.ThreadID, r.Body.LastReadThreadSeq, clearMark)
	if err != nil {
		return nil, err
	}
	return rest.UpdateReadState200JSONResponse(readState(state)), nil
}

// MarkThreadUnread implements the operation markThreadUnread.
func (h *Handlers) MarkThreadUnread(ctx context.Context, r rest.MarkThreadUnreadRequestObject) (rest.MarkThreadUnreadResponseObject, error) {
	state, err := h.readStates.MarkUnread(ctx, r.ThreadID, r.Body.FromThreadSeq)
	if err != nil {
		return nil, err
	}
	return rest.MarkThreadUnread200JSONResponse(readState(state)), nil
}

func readState(s sync.ReadState) rest.ReadState {
	return rest.ReadState{
		ThreadID: s.ThreadID, ChannelID: s.ChannelID, LastReadThreadSeq: s.LastReadThreadSeq, ManuallyUnreadFrom: s.ManuallyUnreadFrom,
		FirstUnreadThreadSeq: s.FirstUnread, UnreadCount: s.UnreadCount, UnreadCapped: s.UnreadCapped, MentionCount: s.MentionCount,
		AsOfThreadSeq: s.AsOfThreadSeq, Version: s.Version, UpdatedAt: jsontype.At(s.UpdatedAt),
	}
}
