// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers the REST operations of the module chat, and gives spaces, channels
// and threads the form that answers, events and snapshots share.
package httpapi

import (
	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Payloads implements app.Payloads. Because answers use the same functions, a resource has
// one form.
type Payloads struct{}

var _ app.Payloads = Payloads{}

// Space implements app.Payloads.
func (Payloads) Space(s domain.Space) any { return space(s) }

// Channel implements app.Payloads.
func (Payloads) Channel(c domain.Channel) any { return channel(c) }

// Behavior implements app.Payloads.
func (Payloads) Behavior(c domain.Channel) any { return behavior(c) }

// Thread implements app.Payloads.
func (Payloads) Thread(t domain.Thread) any { return thread(t) }

// AgentConfig implements app.Payloads.
func (Payloads) AgentConfig(c domain.Channel) any {
	b := c.Behavior
	sources, rule := rest.AgentSources(b.AgentSources), rest.TriggerRule(b.TriggerRule)
	return ws.AgentConfigChangedData{
		ChannelID: c.ID, ConfigVersion: &c.ConfigVersion, OperatorAgentID: c.Operator().Ptr(), TriggerRule: &rule,
		AgentChaining: &b.AgentChaining, AgentSources: &sources, Prompt: &b.Prompt, Skills: skills(b.Skills),
	}
}

// AgentConfigRemoved implements app.Payloads.
func (Payloads) AgentConfigRemoved(channel ids.ID) any {
	removed := true
	return ws.AgentConfigChangedData{ChannelID: channel, Removed: &removed}
}

func space(s domain.Space) rest.Space {
	out := rest.Space{
		ID: s.ID, Name: s.Name, Description: s.Description, Icon: s.Icon, Color: s.Color, PositionKey: s.Key,
		OperatorAgentID: s.OperatorID.Ptr(), CreatedAt: jsontype.At(s.CreatedAt), CreatedBy: s.CreatedBy, Version: s.Version,
	}
	if s.ArchivedAt != nil {
		out.Archived = &rest.Archived{At: jsontype.At(*s.ArchivedAt), By: s.ArchivedBy}
	}
	return out
}

func channel(c domain.Channel) rest.Channel {
	out := rest.Channel{
		ID: c.ID, Kind: rest.ChannelKind(c.Kind), SpaceID: c.SpaceID.Ptr(), Name: optional(c.Name), Topic: c.Topic, Icon: c.Icon, PositionKey: c.Key,
		Inherits: c.Inherits, MainThreadID: c.MainThreadID.Ptr(),
		Operator:    rest.ChannelOperator{Mode: rest.OperatorMode(c.OperatorMode), AgentID: c.Operator().Ptr()},
		TriggerRule: rest.TriggerRule(c.Behavior.TriggerRule), AgentChaining: c.Behavior.AgentChaining,
		AgentSources: rest.AgentSources(c.Behavior.AgentSources), SlowModeSeconds: c.SlowModeSeconds,
		ConfigVersion: c.ConfigVersion, CreatedAt: jsontype.At(c.CreatedAt), CreatedBy: c.CreatedBy, Version: c.Version,
	}
	if c.ReadOnly {
		out.ReadOnly = &rest.ReadOnlyMark{Source: rest.ReadOnlyMarkSource(c.ReadOnlyBy)}
	}
	if c.ArchivedAt != nil {
		out.Archived = &rest.Archived{At: jsontype.At(*c.ArchivedAt), By: c.ArchivedBy}
	}
	if c.Kind == domain.KindForum {
		out.Forum = &rest.ForumSettings{
			RequireTag: c.Forum.RequireTag, DefaultSort: rest.SortOrder(c.Forum.DefaultSort), Guidelines: c.Forum.Guidelines,
			DefaultReaction: c.Forum.DefaultReaction, TemplateID: c.Forum.TemplateID.Ptr(), Tags: []rest.ForumTag{},
		}
	}
	return out
}

func behavior(c domain.Channel) rest.ChannelBehavior {
	b := c.Behavior
	return rest.ChannelBehavior{
		ChannelID: c.ID, TriggerRule: rest.TriggerRule(b.TriggerRule), AgentChaining: b.AgentChaining, AgentSources: rest.AgentSources(b.AgentSources),
		Transcription: rest.ChannelBehaviorTranscription(b.Transcription), Prompt: b.Prompt, Skills: skills(b.Skills), Version: c.BehaviorVersion,
	}
}

func skills(list []domain.Skill) []rest.SkillBinding {
	out := make([]rest.SkillBinding, len(list))
	for i, s := range list {
		out[i] = rest.SkillBinding{Name: s.Name, Source: s.Source, Ref: s.Ref, Enabled: s.Enabled}
	}
	return out
}

func thread(t domain.Thread) rest.Thread {
	out := rest.Thread{
		ID: t.ID, ChannelID: t.ChannelID, SpaceID: t.SpaceID.Ptr(), Kind: rest.ThreadKind(t.Kind), Title: optional(t.Title),
		TitleSource: rest.ThreadTitleSource(t.TitleSource), ParentMessageID: t.ParentMessageID.Ptr(), State: rest.ThreadState(t.State), TagIds: []ids.ID{},
		CreatedAt: jsontype.At(t.CreatedAt), CreatedBy: t.CreatedBy.Ptr(), Version: t.Version,
		Counters: rest.ThreadCounters{
			Rev: t.Counters.Rev, FirstThreadSeq: t.Counters.First, LastThreadSeq: t.Counters.Last, LastCountableSeq: t.Counters.LastCountable,
			MessageCount: int(t.Counters.Messages), LastMessageAt: jsontype.At(t.Counters.LastMessageAt),
		},
	}
	if t.ClosedAt != nil {
		out.Closed = &rest.ThreadClosed{At: jsontype.At(*t.ClosedAt), By: t.ClosedBy, Reason: optional(t.CloseReason)}
	}
	return out
}

// optional is null for the empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
