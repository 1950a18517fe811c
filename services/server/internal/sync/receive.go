// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// subject says what the receive action of an event type is checked on.
type subject int

const (
	onSelf subject = iota
	onInstance
	onSpace
	onChannel
	onThread
	onPrincipal
	onAgent
	// onTarget is the place of a change of rights: channel, space or instance.
	onTarget
	onGroup
)

type receiveRule struct {
	action authorize.Action
	on     subject
}

// receiveRules is the closed catalogue of event types of this version with the action a
// recipient needs. A type that is missing here cannot be appended and is not delivered.
var receiveRules = map[string]receiveRule{
	"instance.updated":         {"instance.read", onInstance},
	"grant.changed":            {"grant.read", onTarget},
	"group.changed":            {"group.read", onGroup},
	"access.changed":           {"self.read", onSelf},
	"access.expiring":          {"self.read", onSelf},
	"user.updated":             {"user.read", onPrincipal},
	"session.revoked":          {"session.list", onSelf},
	"device.pending":           {"device.list", onSelf},
	"space.created":            {"space.read", onSpace},
	"space.updated":            {"space.read", onSpace},
	"space.archived":           {"space.read", onSpace},
	"channel.created":          {"channel.read", onChannel},
	"channel.updated":          {"channel.read", onChannel},
	"channel.settings_changed": {"channel.behavior.read", onChannel},
	"channel.archived":         {"channel.read", onChannel},
	"agent.config_changed":     {"self.read", onSelf},
	"thread.created":           {"thread.read", onThread},
	"thread.updated":           {"thread.read", onThread},
	"thread.closed":            {"thread.read", onThread},
	"thread.reopened":          {"thread.read", onThread},
	"message.created":          {"message.read", onThread},
	"message.updated":          {"message.read", onThread},
	"message.deleted":          {"message.read", onThread},
	"read_state.updated":       {"sync.snapshot.read", onSelf},
	"agent.updated":            {"agent.read", onAgent},
	"agent.presence_changed":   {"agent.read", onAgent},
	"agent.invocation":         {"agent.events.consume", onSelf},
	"agent.followup":           {"agent.events.consume", onSelf},
	"run.cancel_requested":     {"agent.events.consume", onSelf},
	"run.state_changed":        {"run.read", onThread},
	"run.updated":              {"run.read", onThread},
	"typing.started":           {"message.read", onThread},
}

// KnownType reports whether an event type belongs to the catalogue.
func KnownType(eventType string) bool {
	_, known := receiveRules[eventType]
	return known
}

func receiveAction(e eventlog.Record) (authorize.Action, authorize.Resource, bool) {
	rule, known := receiveRules[e.Type]
	if !known {
		return "", authorize.Resource{}, false
	}
	if !e.PrincipalID.IsZero() && rule.on == onPrincipal {
		// The personal twin of an event about a principal carries what only she may see.
		return "self.read", authorize.Self(e.PrincipalID), true
	}
	return rule.action, resourceOf(rule.on, e), true
}

func resourceOf(on subject, e eventlog.Record) authorize.Resource {
	switch on {
	case onSelf:
		return authorize.Self(e.PrincipalID)
	case onSpace:
		return authorize.Space(e.Place.SpaceID)
	case onChannel:
		return authorize.Channel(e.Place.ChannelID)
	case onThread:
		return authorize.Thread(e.Place.ThreadID, e.Place.ChannelID)
	case onPrincipal:
		return authorize.Resource{Kind: authorize.ResourcePrincipal, ID: e.Resource.ID, OwnerID: e.Resource.ID}
	case onAgent:
		return authorize.Resource{Kind: authorize.ResourceAgent, ID: e.Resource.ID, OwnerID: e.Resource.ID}
	case onGroup:
		return authorize.Resource{Kind: authorize.ResourceGroup, ID: e.Resource.ID}
	case onTarget:
		switch {
		case !e.Place.ChannelID.IsZero():
			return authorize.Channel(e.Place.ChannelID)
		case !e.Place.SpaceID.IsZero():
			return authorize.Space(e.Place.SpaceID)
		}
	}
	return authorize.Instance()
}

// wireEvent is the envelope of dispatch frames, pages and REST.
type wireEvent struct {
	Seq        int64           `json:"seq,omitempty"`
	EventID    ids.ID          `json:"event_id"`
	Type       string          `json:"type"`
	OccurredAt string          `json:"occurred_at"`
	Actor      wireActor       `json:"actor"`
	Place      *wirePlace      `json:"place"`
	Personal   bool            `json:"personal"`
	Redacted   bool            `json:"redacted,omitempty"`
	Data       json.RawMessage `json:"data"`
}

type wireActor struct {
	ID        *ids.ID `json:"id"`
	Kind      string  `json:"kind"`
	ActingFor *ids.ID `json:"acting_for,omitempty"`
}

type wirePlace struct {
	SpaceID   *ids.ID `json:"space_id,omitempty"`
	ChannelID *ids.ID `json:"channel_id,omitempty"`
	ThreadID  *ids.ID `json:"thread_id,omitempty"`
}

// TimeFormat is how times are written on the wire: UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

func envelope(e eventlog.Record) (json.RawMessage, error) {
	w := wireEvent{
		Seq: e.Seq, EventID: e.EventID, Type: e.Type, OccurredAt: e.OccurredAt.UTC().Truncate(time.Millisecond).Format(TimeFormat),
		Actor:    wireActor{ID: e.Actor.ID.Ptr(), Kind: e.Actor.Kind, ActingFor: e.Actor.ActingFor.Ptr()},
		Personal: !e.PrincipalID.IsZero(), Redacted: e.Redacted, Data: e.Payload,
	}
	if e.Place != (eventlog.Place{}) {
		w.Place = &wirePlace{SpaceID: e.Place.SpaceID.Ptr(), ChannelID: e.Place.ChannelID.Ptr(), ThreadID: e.Place.ThreadID.Ptr()}
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode event %d of type %s: %w", e.Seq, e.Type, err)
	}
	return raw, nil
}
