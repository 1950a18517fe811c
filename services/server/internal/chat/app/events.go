// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The types of events of this module that are built.
const (
	eventSpaceCreated     = "space.created"
	eventSpaceUpdated     = "space.updated"
	eventChannelCreated   = "channel.created"
	eventChannelUpdated   = "channel.updated"
	eventChannelArchived  = "channel.archived"
	eventSettingsChanged  = "channel.settings_changed"
	eventAgentConfig      = "agent.config_changed"
	eventThreadCreated    = "thread.created"
	eventThreadReopened   = "thread.reopened"
	resourceSpace         = "space"
	resourceChannel       = "channel"
	resourceThread        = "thread"
	reasonTargetArchived  = "target_archived"
	reasonLimitReached    = "limit_reached"
	reasonOperatorUnknown = "not_an_agent"
)

func (d Deps) spaceEvent(kind string, s domain.Space) eventlog.Event {
	return eventlog.Event{
		Type: kind, Place: eventlog.Place{SpaceID: s.ID},
		Resource: eventlog.Resource{Type: resourceSpace, ID: s.ID}, Payload: d.Payloads.Space(s),
	}
}

func (d Deps) channelEvent(kind string, c domain.Channel) eventlog.Event {
	payload := d.Payloads.Channel
	if kind == eventSettingsChanged {
		payload = d.Payloads.Behavior
	}
	return eventlog.Event{
		Type: kind, Place: eventlog.Place{SpaceID: c.SpaceID, ChannelID: c.ID},
		Resource: eventlog.Resource{Type: resourceChannel, ID: c.ID}, Payload: payload(c),
	}
}

func (d Deps) threadEvent(kind string, t domain.Thread) eventlog.Event {
	return eventlog.Event{
		Type: kind, Place: eventlog.Place{SpaceID: t.SpaceID, ChannelID: t.ChannelID, ThreadID: t.ID},
		Resource: eventlog.Resource{Type: resourceThread, ID: t.ID}, Payload: d.Payloads.Thread(t),
	}
}

// configEvent tells an agent with what it works from now on.
func (d Deps) configEvent(agent ids.ID, c domain.Channel, payload any) eventlog.Event {
	return eventlog.Event{
		Type: eventAgentConfig, PrincipalID: agent, Place: eventlog.Place{SpaceID: c.SpaceID, ChannelID: c.ID},
		Resource: eventlog.Resource{Type: resourceChannel, ID: c.ID}, Payload: payload,
	}
}

// checkVersion refuses a change that was made from another version.
func checkVersion(present, named int64) error {
	if present == named {
		return nil
	}
	return errs.New(errs.CodeVersionConflict, "Somebody has changed this meanwhile. Read it again and repeat the change.")
}

// mayWriteIn refuses writing in a place that does not take it.
func mayWriteIn(c domain.Channel) error {
	switch {
	case c.Archived():
		return errs.Forbidden(reasonTargetArchived)
	case c.ReadOnly:
		return errs.New(errs.CodeChannelReadOnly, "Nobody can write in this channel at present.")
	default:
		return nil
	}
}
