// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

// snapshotTail is how much of a long output a snapshot shows, in bytes.
const snapshotTail = 16 << 10

// Presenter implements app.Presenter with the types of the contract.
type Presenter struct{}

// Summary implements app.Presenter.
func (Presenter) Summary(r domain.Run) any { return toSummary(r) }

// StateChanged implements app.Presenter.
func (Presenter) StateChanged(r domain.Run, previous *domain.State) any {
	type payload struct {
		Run           rest.RunSummary `json:"run"`
		PreviousState *domain.State   `json:"previous_state"`
	}
	return payload{Run: toSummary(r), PreviousState: previous}
}

// Snapshot implements app.Presenter.
func (Presenter) Snapshot(r domain.Run, steps []domain.Step) any {
	run := toRun(r, steps)
	if len(run.Output.Text) > snapshotTail {
		tail := run.Output.Text[len(run.Output.Text)-snapshotTail:]
		for !utf8.RuneStart(tail[0]) {
			tail = tail[1:]
		}
		offset := run.Output.Length - utf8.RuneCountInString(tail)
		run.Output.Text, run.Output.Offset = tail, &offset
	}
	type payload struct {
		RunID    ids.ID   `json:"run_id"`
		ThreadID ids.ID   `json:"thread_id"`
		Version  int64    `json:"version"`
		Snapshot rest.Run `json:"snapshot"`
	}
	return payload{RunID: r.ID, ThreadID: r.ThreadID, Version: r.DocVersion, Snapshot: run}
}

// CancelRequested implements app.Presenter.
func (Presenter) CancelRequested(r domain.Run, deadline time.Time) any {
	type payload struct {
		RunID       ids.ID        `json:"run_id"`
		Reason      *string       `json:"reason"`
		RequestedBy *ids.ID       `json:"requested_by"`
		DeadlineAt  jsontype.Time `json:"deadline_at"`
	}
	return payload{RunID: r.ID, Reason: text(r.CancelReason), RequestedBy: r.CancelRequestedBy.Ptr(), DeadlineAt: jsontype.At(deadline)}
}

type orderMessage struct {
	ID          ids.ID             `json:"id"`
	ThreadSeq   int64              `json:"thread_seq"`
	Author      rest.MessageAuthor `json:"author"`
	Content     string             `json:"content"`
	Attachments []any              `json:"attachments"`
	CreatedAt   jsontype.Time      `json:"created_at"`
	Trust       rest.Trust         `json:"trust"`
}

func toOrderMessage(m app.OrderMessage) orderMessage {
	return orderMessage{
		ID: m.ID, ThreadSeq: m.ThreadSeq, Author: toAuthor(m.Author), Content: m.Content, Attachments: []any{},
		CreatedAt: jsontype.At(m.CreatedAt), Trust: rest.Trust(m.Trust),
	}
}

func toAuthor(a messaging.Author) rest.MessageAuthor {
	return rest.MessageAuthor{Kind: rest.AuthorKind(a.Kind), ID: a.ID.Ptr()}
}

type orderFollowup struct {
	ID      ids.ID            `json:"id"`
	Mode    rest.FollowupMode `json:"mode"`
	Message orderMessage      `json:"message"`
}

// Invocation implements app.Presenter.
func (Presenter) Invocation(i app.Invocation) any {
	type thread struct {
		ID    ids.ID          `json:"id"`
		Title *string         `json:"title"`
		Kind  rest.ThreadKind `json:"kind"`
	}
	type channel struct {
		ID   ids.ID           `json:"id"`
		Name *string          `json:"name"`
		Kind rest.ChannelKind `json:"kind"`
	}
	type payload struct {
		Run                rest.RunSummary `json:"run"`
		Message            *orderMessage   `json:"message"`
		Thread             thread          `json:"thread"`
		Channel            channel         `json:"channel"`
		Session            any             `json:"session"`
		Followups          []orderFollowup `json:"followups"`
		AgentConfigVersion int64           `json:"agent_config_version"`
		Redelivery         bool            `json:"redelivery"`
		Token              string          `json:"token"`
		ExpiresAt          jsontype.Time   `json:"expires_at"`
	}
	out := payload{
		Run: toSummary(i.Run), Thread: thread{i.Thread.ID, text(i.Thread.Title), rest.ThreadKind(i.Thread.Kind)},
		Channel: channel{i.Channel.ID, text(i.Channel.Name), rest.ChannelKind(i.Channel.Kind)}, Followups: []orderFollowup{},
		AgentConfigVersion: i.Channel.ConfigVersion, Redelivery: i.Redelivery, Token: i.Token.Compact, ExpiresAt: jsontype.At(i.Token.ExpiresAt),
	}
	if i.Message != nil {
		m := toOrderMessage(*i.Message)
		out.Message = &m
	}
	for _, f := range i.Followups {
		out.Followups = append(out.Followups, orderFollowup{ID: f.ID, Mode: rest.FollowupMode(f.Mode), Message: toOrderMessage(f.Message)})
	}
	return out
}

// Followup implements app.Presenter.
func (Presenter) Followup(f app.FollowupOrder) any {
	type payload struct {
		RunID      ids.ID        `json:"run_id"`
		FollowupID *ids.ID       `json:"followup_id"`
		MessageID  ids.ID        `json:"message_id"`
		Correction bool          `json:"correction"`
		Message    orderMessage  `json:"message"`
		Trust      rest.Trust    `json:"trust"`
		Token      string        `json:"token"`
		ExpiresAt  jsontype.Time `json:"expires_at"`
	}
	return payload{
		RunID: f.RunID, FollowupID: f.FollowupID.Ptr(), MessageID: f.Message.ID, Correction: f.Correction, Message: toOrderMessage(f.Message),
		Trust: rest.Trust(f.Message.Trust), Token: f.Token.Compact, ExpiresAt: jsontype.At(f.Token.ExpiresAt),
	}
}

// Patch implements app.Presenter. Changed members are given as they are now, so that whoever
// merges them has the document of the server and not what the agent sent.
func (Presenter) Patch(w domain.Work, c domain.Changes) (json.RawMessage, error) {
	r := *w.Run
	var touched []domain.Step
	for _, key := range c.Steps {
		step := *w.Steps[key]
		if before, ok := c.ReplacedInputs[key]; ok {
			var err error
			if step.Input, err = difference(before, step.Input); err != nil {
				return nil, err
			}
		}
		touched = append(touched, step)
	}
	run := toRun(r, touched)
	patch := map[string]any{}
	if c.Title {
		patch["title"] = run.Title
	}
	if c.StatusLine {
		patch["status_line"] = run.StatusLine
	}
	if c.Model {
		patch["model"] = run.Model
	}
	if c.Plan {
		patch["plan"] = run.Plan
	}
	if c.Output {
		patch["output"] = run.Output
	}
	if len(c.Steps) > 0 {
		patch["steps"] = run.Steps
	}
	if len(c.Artifacts) > 0 {
		artifacts := map[string]any{}
		for _, key := range c.Artifacts {
			artifacts[key] = nil
			if a, ok := run.Artifacts[key]; ok {
				artifacts[key] = a
			}
		}
		patch["artifacts"] = artifacts
	}
	if len(c.Usage) > 0 {
		usage := map[string]rest.ModelUsage{}
		for _, model := range c.Usage {
			usage[model] = run.Usage[model]
		}
		patch["usage"] = usage
		patch["input_tokens"], patch["output_tokens"] = run.InputTokens, run.OutputTokens
		patch["cache_read_tokens"], patch["cache_write_tokens"] = run.CacheReadTokens, run.CacheWriteTokens
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return encode(patch)
}

// difference is the merge patch that makes one JSON value of another.
func difference(before, after json.RawMessage) (json.RawMessage, error) {
	var from, to any
	if err := json.Unmarshal(before, &from); err != nil {
		return nil, fmt.Errorf("decode an input: %w", err)
	}
	if err := json.Unmarshal(after, &to); err != nil {
		return nil, fmt.Errorf("decode an input: %w", err)
	}
	return encode(mergePatch(from, to))
}

func mergePatch(from, to any) any {
	old, isObject := from.(map[string]any)
	fresh, becomes := to.(map[string]any)
	if !isObject || !becomes {
		return to
	}
	patch := make(map[string]any, len(fresh))
	for key := range old {
		patch[key] = nil
	}
	for key, v := range fresh {
		patch[key] = mergePatch(old[key], v)
	}
	return patch
}

// Marked implements app.Presenter.
func (Presenter) Marked(r domain.Run) (json.RawMessage, error) {
	return encode(map[string]any{"stall_warned_at": jsontype.AtPtr(r.StallWarnedAt)})
}

func encode(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return raw, nil
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func toSummary(r domain.Run) rest.RunSummary {
	total := r.Document.Total()
	return rest.RunSummary{
		ID: r.ID, AgentID: r.AgentID, ThreadID: r.ThreadID, ChannelID: r.ChannelID, SpaceID: r.SpaceID.Ptr(),
		TriggerKind: rest.RunSummaryTriggerKind(r.TriggerKind), TriggerMessageID: r.TriggerMessageID.Ptr(), TriggeredBy: r.TriggeredBy,
		ParentRunID: r.ParentRunID.Ptr(), RootRunID: r.RootRunID, ChainDepth: r.ChainDepth, State: rest.RunState(r.State), EndReason: text(r.EndReason),
		DocVersion: r.DocVersion, Title: r.Document.Title, StatusLine: r.Document.StatusLine, AnchorMessageID: r.AnchorMessageID.Ptr(),
		OutputMessageID: r.OutputMessageID.Ptr(), OutputLength: r.OutputLength, Model: text(r.Document.Model), QueuedAt: jsontype.At(r.QueuedAt),
		DeliveredAt: jsontype.AtPtr(r.DeliveredAt), StartedAt: jsontype.AtPtr(r.StartedAt), LastActivityAt: jsontype.AtPtr(&r.LastActivityAt),
		StallWarnedAt: jsontype.AtPtr(r.StallWarnedAt), EndedAt: jsontype.AtPtr(r.EndedAt), CancelRequestedAt: jsontype.AtPtr(r.CancelRequestedAt),
		CancelRequestedBy: r.CancelRequestedBy.Ptr(), CancelReason: text(r.CancelReason), InputTokens: total.Input, OutputTokens: total.Output,
		CacheReadTokens: total.CacheRead, CacheWriteTokens: total.CacheWrite,
		Cost:      rest.RunCost{State: rest.RunCostStateNone, BillingMode: rest.BillingMode(r.BillingMode)},
		ErrorCode: text(r.ErrorCode), ErrorMessage: text(r.ErrorMessage),
		Followups: rest.RunFollowupCount{Pending: r.FollowupsPending, Mode: rest.FollowupMode(r.FollowupMode)},
	}
}

func toRun(r domain.Run, steps []domain.Step) rest.Run {
	out := rest.Run{
		RunSummary: toSummary(r), Plan: []rest.PlanEntry{}, Steps: map[string]rest.RunStep{}, Artifacts: map[string]rest.RunArtifact{},
		Output: rest.RunOutput{Text: r.Output, Length: r.OutputLength}, Usage: map[string]rest.ModelUsage{}, SourceList: []rest.RunSource{},
		Chain: append([]ids.ID{}, r.Chain...),
	}
	for _, e := range r.Document.Plan {
		out.Plan = append(out.Plan, rest.PlanEntry{Key: e.Key, Text: e.Text, State: rest.StepState(e.State), Priority: text(e.Priority)})
	}
	for _, s := range steps {
		out.Steps[s.Key] = toStep(s)
	}
	for key, a := range r.Document.Artifacts {
		out.Artifacts[key] = rest.RunArtifact{Ordinal: a.Ordinal, Kind: rest.ArtifactKind(a.Kind), Title: a.Title, URL: a.URL, Text: a.Text}
	}
	for model, u := range r.Document.Usage {
		out.Usage[model] = rest.ModelUsage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
	}
	return out
}

func toStep(s domain.Step) rest.RunStep {
	out := rest.RunStep{
		Ordinal: s.Ordinal, ParentKey: text(s.ParentKey), Kind: rest.StepKind(s.Kind), Title: s.Title, State: rest.StepState(s.State),
		StartedAt: jsontype.AtPtr(s.StartedAt), EndedAt: jsontype.AtPtr(s.EndedAt), Input: s.Input, Output: s.Output, OutputLength: s.OutputLength,
		Truncated: s.Truncated,
	}
	if s.ToolKind != "" {
		kind := rest.ToolKind(s.ToolKind)
		out.ToolKind = &kind
	}
	if len(out.Input) == 0 {
		out.Input = json.RawMessage("null")
	}
	return out
}
