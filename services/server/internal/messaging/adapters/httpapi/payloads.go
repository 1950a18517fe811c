// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers the REST operations of the module messaging, and gives messages the
// form that answers and events share.
package httpapi

import (
	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Payloads implements app.Payloads.
type Payloads struct{}

var _ app.Payloads = Payloads{}

// Created implements app.Payloads.
func (Payloads) Created(m domain.Message, c chat.Counters) any {
	return ws.MessageCreatedData{Message: message(m), Counters: counters(c)}
}

// Updated implements app.Payloads.
func (Payloads) Updated(m domain.Message, cause string, added []domain.Mention) any {
	out := ws.MessageUpdatedData{Message: message(m), Cause: ws.MessageUpdatedDataCause(cause)}
	if out.Cause == ws.MessageUpdatedDataCauseEdit {
		out.AddedMentions = mentions(added)
	}
	return out
}

// Deleted implements app.Payloads.
func (Payloads) Deleted(m domain.Message, c chat.Counters) any {
	return ws.MessageDeletedData{Message: message(m), Counters: counters(c)}
}

// The empty lists of messages, shared because nobody changes them.
var (
	noThings    = []any{}
	noReactions = []rest.ReactionCount{}
	noMentions  = []rest.Mention{}
	noTriggers  = []rest.MessageTrigger{}
)

func message(m domain.Message) rest.Message {
	out := rest.Message{
		ID: m.ID, Kind: rest.MessageKind(m.Kind), ChannelID: m.ChannelID, SpaceID: m.SpaceID.Ptr(), ThreadID: m.ThreadID, ThreadSeq: m.ThreadSeq,
		Version: m.Version, Revision: m.Revision, Author: rest.MessageAuthor{Kind: rest.AuthorKind(m.AuthorKind), ID: m.AuthorID.Ptr(), Label: optional(m.AuthorLabel)},
		CreatedAt: jsontype.At(m.CreatedAt), EditedAt: jsontype.AtPtr(m.EditedAt), Imported: m.Imported, ClientMsgID: m.ClientMsgID.Ptr(),
		Notify: rest.NotifyMode(m.Notify), Content: m.Content, Dialect: domain.Dialect, Mentions: mentions(m.Mentions),
		Links:       rest.MessageLinks{MessageIds: list(m.Links.MessageIDs), ThreadIds: list(m.Links.ThreadIDs), ChannelIds: list(m.Links.ChannelIDs)},
		Attachments: noThings, Components: noThings, RunID: m.RunID.Ptr(), TriggerState: rest.TriggerState(m.TriggerState), Triggers: triggers(m.Triggers),
		Reactions: noReactions, ReactionsRev: m.ReactionsRev, StartedThreadID: m.StartedThreadID.Ptr(),
	}
	if m.ReplyTo != nil {
		out.ReplyTo = &rest.ReplyRef{MessageID: m.ReplyTo.ID, ThreadSeq: m.ReplyTo.ThreadSeq, AuthorID: m.ReplyTo.AuthorID.Ptr(), Deleted: m.ReplyTo.Deleted}
	}
	if d := m.Deleted; d != nil {
		out.Deleted = &rest.DeletedMark{At: jsontype.At(d.At), By: d.By.Ptr(), Kind: rest.DeletedMarkKind(d.Kind)}
		out.RunID = nil
	}
	return out
}

func mentions(found []domain.Mention) []rest.Mention {
	if len(found) == 0 {
		return noMentions
	}
	out := make([]rest.Mention, len(found))
	for i, m := range found {
		out[i] = rest.Mention{Kind: rest.MentionKind(m.Kind), ID: m.ID.Ptr(), Label: m.Label, Silent: m.Silent}
	}
	return out
}

func triggers(found []domain.Trigger) []rest.MessageTrigger {
	if len(found) == 0 {
		return noTriggers
	}
	out := make([]rest.MessageTrigger, len(found))
	for i, t := range found {
		out[i] = rest.MessageTrigger{AgentID: t.AgentID, Outcome: rest.MessageTriggerOutcome(t.Outcome), Reason: optional(t.Reason), RunID: t.RunID.Ptr()}
	}
	return out
}

func warnings(found []domain.Warning) []rest.MessageWarning {
	out := make([]rest.MessageWarning, len(found))
	for i, w := range found {
		out[i] = rest.MessageWarning{Code: rest.MessageWarningCode(w.Code), Kind: optional(w.Kind), Label: optional(w.Label), ID: w.ID.Ptr()}
	}
	return out
}

func written(w app.Written) rest.MessageWritten {
	return rest.MessageWritten{Message: message(w.Message), Warnings: warnings(w.Warnings)}
}

func counters(c chat.Counters) rest.ThreadCounters {
	return rest.ThreadCounters{
		Rev: c.Rev, FirstThreadSeq: c.FirstThreadSeq, LastThreadSeq: c.LastThreadSeq, LastCountableSeq: c.LastCountableSeq,
		MessageCount: int(c.MessageCount), LastMessageAt: jsontype.At(c.LastMessageAt),
	}
}

var noIDs = []ids.ID{}

func list(found []ids.ID) []ids.ID {
	if found == nil {
		return noIDs
	}
	return found
}

// optional is null for the empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
