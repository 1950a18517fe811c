// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the rows of the module runs.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/runs/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// Runs implements app.Repository.
type Runs struct{ db *pg.DB }

// NewRuns makes the repository.
func NewRuns(db *pg.DB) *Runs { return &Runs{db: db} }

func (r *Runs) read(ctx context.Context) *sqlcgen.Queries { return sqlcgen.New(r.db.Querier(ctx)) }

// Insert implements app.Repository.
func (r *Runs) Insert(ctx context.Context, run domain.Run) error {
	return sqlcgen.New(pg.Queued(ctx)).RunInsert(ctx, sqlcgen.RunInsertParams{
		ID: run.ID, AgentID: run.AgentID, ThreadID: run.ThreadID, ChannelID: run.ChannelID, SpaceID: run.SpaceID.Ptr(),
		TriggerKind: run.TriggerKind, TriggerMessageID: run.TriggerMessageID.Ptr(), TriggeredBy: run.TriggeredBy,
		ParentRunID: run.ParentRunID.Ptr(), RootRunID: run.RootRunID, ChainDepth: int16(run.ChainDepth), Chain: run.Chain,
		BillingMode: run.BillingMode, State: string(run.State), DocVersion: run.DocVersion, AgentDocVersion: run.AgentDocVersion,
		AnchorMessageID: run.AnchorMessageID.Ptr(), FollowupsPending: int32(run.FollowupsPending), FollowupMode: run.FollowupMode,
		QueuedAt: run.QueuedAt,
	})
}

// ByID implements app.Repository.
func (r *Runs) ByID(ctx context.Context, id ids.ID) (domain.Run, error) {
	row, err := r.read(ctx).RunByID(ctx, id)
	if err != nil {
		return domain.Run{}, pg.NotFound(err)
	}
	return toRun(row)
}

// Lock implements app.Repository.
func (r *Runs) Lock(ctx context.Context, id ids.ID) (domain.Run, error) {
	row, err := r.read(ctx).RunLock(ctx, id)
	if err != nil {
		return domain.Run{}, pg.NotFound(err)
	}
	return toRun(row)
}

// Save implements app.Repository.
func (r *Runs) Save(ctx context.Context, run domain.Run) error {
	document, err := json.Marshal(run.Document)
	if err != nil {
		return fmt.Errorf("encode the document: %w", err)
	}
	return sqlcgen.New(pg.Queued(ctx)).RunSave(ctx, sqlcgen.RunSaveParams{
		ID: run.ID, State: string(run.State), EndReason: optional(run.EndReason), DocVersion: run.DocVersion, AgentDocVersion: run.AgentDocVersion,
		Title: run.Document.Title, StatusLine: run.Document.StatusLine, Document: document, OutputMessageID: run.OutputMessageID.Ptr(),
		Model: optional(run.Document.Model), FollowupsPending: int32(run.FollowupsPending), FollowupMode: run.FollowupMode,
		DeliveredAt: run.DeliveredAt, StartedAt: run.StartedAt, LastActivityAt: run.LastActivityAt, StallWarnedAt: run.StallWarnedAt,
		EndedAt: run.EndedAt, CancelRequestedAt: run.CancelRequestedAt, CancelRequestedBy: run.CancelRequestedBy.Ptr(),
		CancelReason: optional(run.CancelReason), ErrorCode: optional(run.ErrorCode), ErrorMessage: optional(run.ErrorMessage),
	})
}

// SaveOutput implements app.Repository.
func (r *Runs) SaveOutput(ctx context.Context, run domain.Run) error {
	return sqlcgen.New(pg.Queued(ctx)).RunSaveOutput(ctx, run.Output, int32(run.OutputLength), run.ID)
}

// ForTrigger implements app.Repository.
func (r *Runs) ForTrigger(ctx context.Context, agents []ids.ID, thread, message ids.ID) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsForTrigger(ctx, agents, thread, &message))
}

// QueuedCounts implements app.Repository.
func (r *Runs) QueuedCounts(ctx context.Context, agents []ids.ID) (map[ids.ID]int, error) {
	rows, err := r.read(ctx).RunsQueuedCount(ctx, agents)
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]int, len(rows))
	for _, row := range rows {
		out[row.AgentID] = int(row.Queued)
	}
	return out, nil
}

// StartedCount implements app.Repository.
func (r *Runs) StartedCount(ctx context.Context, agent ids.ID) (int, error) {
	if err := sqlcgen.New(pg.Queued(ctx)).RunsStartLock(ctx, agent); err != nil {
		return 0, err
	}
	n, err := r.read(ctx).RunsStartedCount(ctx, agent)
	return int(n), err
}

// ChainCount implements app.Repository.
func (r *Runs) ChainCount(ctx context.Context, parent, root ids.ID) (children, ofRoot int, err error) {
	row, err := r.read(ctx).RunsChainCount(ctx, parent, root)
	return int(row.Children), int(row.OfRoot), err
}

// ActiveChildren implements app.Repository.
func (r *Runs) ActiveChildren(ctx context.Context, parent ids.ID) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsActiveChildren(ctx, &parent))
}

// ByMessage implements app.Repository.
func (r *Runs) ByMessage(ctx context.Context, message ids.ID) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsByMessage(ctx, &message))
}

// ActiveByAgent implements app.Repository.
func (r *Runs) ActiveByAgent(ctx context.Context, agent ids.ID) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsActiveByAgent(ctx, agent))
}

// ActiveByPrincipals implements app.Repository.
func (r *Runs) ActiveByPrincipals(ctx context.Context, principals []ids.ID) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsActiveByPrincipals(ctx, principals))
}

// ActiveByChannels implements app.Repository.
func (r *Runs) ActiveByChannels(ctx context.Context, channels []ids.ID, after ids.ID, limit int) ([]domain.Run, error) {
	if len(channels) == 0 {
		return nil, nil
	}
	return toRuns(r.read(ctx).RunsActiveByChannels(ctx, channels, after, int32(limit)))
}

// ActiveByThread implements app.Repository.
func (r *Runs) ActiveByThread(ctx context.Context, thread ids.ID) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsActiveByThread(ctx, thread))
}

// ByThread implements app.Repository.
func (r *Runs) ByThread(ctx context.Context, thread, before ids.ID, limit int) ([]domain.Run, error) {
	return toRuns(r.read(ctx).RunsByThread(ctx, thread, before.Ptr(), int32(limit)))
}

// Started implements app.Repository.
func (r *Runs) Started(ctx context.Context, limit int) ([]ids.ID, error) {
	return r.read(ctx).RunsStarted(ctx, int32(limit))
}

func toRuns(rows []sqlcgen.Run, err error) ([]domain.Run, error) {
	if err != nil {
		return nil, err
	}
	out := make([]domain.Run, 0, len(rows))
	for _, row := range rows {
		run, err := toRun(row)
		if err != nil {
			return nil, err
		}
		out = append(out, run)
	}
	return out, nil
}

func toRun(row sqlcgen.Run) (domain.Run, error) {
	run := domain.Run{
		ID: row.ID, AgentID: row.AgentID, ThreadID: row.ThreadID, ChannelID: row.ChannelID, SpaceID: ids.Deref(row.SpaceID),
		TriggerKind: row.TriggerKind, TriggerMessageID: ids.Deref(row.TriggerMessageID), TriggeredBy: row.TriggeredBy,
		ParentRunID: ids.Deref(row.ParentRunID), RootRunID: row.RootRunID, ChainDepth: int(row.ChainDepth), Chain: row.Chain,
		BillingMode: row.BillingMode, State: domain.State(row.State), EndReason: value(row.EndReason), DocVersion: row.DocVersion,
		AgentDocVersion: row.AgentDocVersion, Output: row.OutputText, OutputLength: int(row.OutputLength),
		OutputMessageID: ids.Deref(row.OutputMessageID), AnchorMessageID: ids.Deref(row.AnchorMessageID),
		FollowupsPending: int(row.FollowupsPending), FollowupMode: row.FollowupMode, QueuedAt: row.QueuedAt, DeliveredAt: row.DeliveredAt,
		StartedAt: row.StartedAt, LastActivityAt: row.LastActivityAt, StallWarnedAt: row.StallWarnedAt, EndedAt: row.EndedAt,
		CancelRequestedAt: row.CancelRequestedAt, CancelRequestedBy: ids.Deref(row.CancelRequestedBy), CancelReason: value(row.CancelReason),
		ErrorCode: value(row.ErrorCode), ErrorMessage: value(row.ErrorMessage),
	}
	if err := json.Unmarshal(row.Document, &run.Document); err != nil {
		return run, fmt.Errorf("decode the document of run %s: %w", row.ID, err)
	}
	run.Document.Title, run.Document.StatusLine, run.Document.Model = row.Title, row.StatusLine, value(row.Model)
	return run, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
