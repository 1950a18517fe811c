// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// The types of events.
const (
	SpaceCreated           = "space.created"
	SpaceUpdated           = "space.updated"
	ChannelCreated         = "channel.created"
	ChannelUpdated         = "channel.updated"
	ChannelSettingsChanged = "channel.settings_changed"
	ChannelArchived        = "channel.archived"
	ThreadCreated          = "thread.created"
	ThreadUpdated          = "thread.updated"
	MessageCreated         = "message.created"
	MessageUpdated         = "message.updated"
	MessageDeleted         = "message.deleted"
	ReadStateUpdated       = "read_state.updated"
	GrantChanged           = "grant.changed"
	GroupChanged           = "group.changed"
	AccessChanged          = "access.changed"
	AccessExpiring         = "access.expiring"
	UserUpdated            = "user.updated"
	SessionRevoked         = "session.revoked"
	DevicePending          = "device.pending"
	InstanceUpdated        = "instance.updated"
	AgentUpdated           = "agent.updated"
	AgentPresenceChanged   = "agent.presence_changed"
	AgentConfigChanged     = "agent.config_changed"
	RunStateChanged        = "run.state_changed"
	RunUpdated             = "run.updated"
	AgentInvocation        = "agent.invocation"
	AgentFollowup          = "agent.followup"
	RunCancelRequested     = "run.cancel_requested"
	TypingStarted          = "typing.started"
)

// payloads makes an empty payload of each type whose form the generated package names.
var payloads = map[string]func() any{
	SpaceCreated:           func() any { return new(api.Space) },
	SpaceUpdated:           func() any { return new(api.Space) },
	ChannelCreated:         func() any { return new(api.Channel) },
	ChannelUpdated:         func() any { return new(api.Channel) },
	ChannelSettingsChanged: func() any { return new(api.ChannelBehavior) },
	ChannelArchived:        func() any { return new(api.Channel) },
	ThreadCreated:          func() any { return new(api.Thread) },
	ThreadUpdated:          func() any { return new(api.Thread) },
	MessageCreated:         func() any { return new(api.MessageCreatedData) },
	MessageUpdated:         func() any { return new(api.MessageUpdatedData) },
	MessageDeleted:         func() any { return new(api.MessageDeletedData) },
	ReadStateUpdated:       func() any { return new(api.ReadStateUpdatedData) },
	GrantChanged:           func() any { return new(api.GrantChangedData) },
	GroupChanged:           func() any { return new(api.GroupChangedData) },
	AccessChanged:          func() any { return new(api.AccessChangedData) },
	AccessExpiring:         func() any { return new(api.AccessExpiringData) },
	UserUpdated:            func() any { return new(api.UserUpdatedData) },
	SessionRevoked:         func() any { return new(api.SessionRevokedData) },
	DevicePending:          func() any { return new(api.DevicePendingData) },
	InstanceUpdated:        func() any { return new(api.InstanceUpdatedData) },
	AgentUpdated:           func() any { return new(api.Agent) },
	AgentPresenceChanged:   func() any { return new(api.AgentPresenceChangedData) },
	AgentConfigChanged:     func() any { return new(api.AgentConfigChangedData) },
	RunStateChanged:        func() any { return new(api.RunStateChangedData) },
	RunUpdated:             func() any { return new(api.RunUpdatedData) },
	AgentInvocation:        func() any { return new(api.AgentInvocationData) },
	AgentFollowup:          func() any { return new(api.AgentFollowupData) },
	RunCancelRequested:     func() any { return new(api.RunCancelRequestedData) },
	TypingStarted:          func() any { return new(api.TypingStartedData) },
}

// Event is something that happened on the instance and that the caller may see.
type Event struct {
	// Seq is the position in the log; 0 for an ephemeral event, which is stored nowhere.
	Seq        int64
	ID         string
	Type       string
	OccurredAt time.Time
	Actor      api.EventActor
	// Place is nil for events that lie nowhere.
	Place *api.EventPlace
	// Personal events are for the caller alone.
	Personal bool
	// Redacted events miss content that the instance no longer has.
	Redacted bool
	Data     json.RawMessage
}

// Payload is the data as the generated type that belongs to the event's type, such as *api.MessageCreatedData, or
// as json.RawMessage for a type this version does not know.
func (e Event) Payload() (any, error) {
	make, known := payloads[e.Type]
	if !known {
		return e.Data, nil
	}
	v := make()
	if err := json.Unmarshal(e.Data, v); err != nil {
		return nil, fmt.Errorf("event %s of type %s: %w", e.ID, e.Type, err)
	}
	return v, nil
}

// Data is the data of an event as a T.
func Data[T any](e Event) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(e.Data, v); err != nil {
		return nil, fmt.Errorf("event %s of type %s: %w", e.ID, e.Type, err)
	}
	return v, nil
}

func durableEvent(e api.EventEnvelope) Event {
	return Event{
		Seq: e.Seq, ID: e.EventID, Type: e.Type, OccurredAt: e.OccurredAt, Actor: e.Actor, Place: e.Place,
		Personal: e.Personal, Redacted: e.Redacted != nil && *e.Redacted, Data: e.Data,
	}
}

func ephemeralEvent(e api.EphemeralEnvelope) Event {
	return Event{ID: e.EventID, Type: e.Type, OccurredAt: e.OccurredAt, Actor: e.Actor, Place: e.Place, Personal: e.Personal, Data: e.Data}
}
