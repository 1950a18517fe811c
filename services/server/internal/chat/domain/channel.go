// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The kinds of channels. A channel never changes its kind.
const (
	KindText   = "text"
	KindForum  = "forum"
	KindDirect = "dm"
)

// The ways a channel gets its operator.
const (
	OperatorInherit = "inherit"
	OperatorOwn     = "own"
	OperatorNone    = "none"
)

// Channel is a place of threads.
type Channel struct {
	ID            ids.ID
	SpaceID       ids.ID
	Kind          string
	Name          string
	Topic         string
	Icon          *string
	Key           string
	Inherits      bool
	MainThreadID  ids.ID
	ReadOnly      bool
	ReadOnlyBy    string // manual or mirror; empty when not read-only
	ArchivedAt    *time.Time
	ArchivedBy    ids.ID
	SpaceArchived bool

	OperatorMode string
	// OwnOperatorID is set exactly in mode own, SpaceOperatorID is what the space offers.
	OwnOperatorID, SpaceOperatorID ids.ID
	Behavior                       Behavior
	SlowModeSeconds                int
	Forum                          Forum

	ConfigVersion, BehaviorVersion, Version int64

	CreatedBy            ids.ID
	CreatedAt, UpdatedAt time.Time
}

// Behavior is how a channel sets agents to work.
type Behavior struct {
	TriggerRule   string
	AgentChaining bool
	AgentSources  string
	Transcription string
	Prompt        string
	// Skills are in order; nil when they were not read.
	Skills []Skill
}

// Skill is what an agent may use in a channel, by the name its runtime knows.
type Skill struct {
	Name        string
	Source, Ref *string
	Enabled     bool
}

// Forum is what only channels of kind forum have.
type Forum struct {
	RequireTag      bool
	DefaultSort     string
	Guidelines      string
	DefaultReaction *string
	TemplateID      ids.ID
}

// Operator is the agent that answers in the channel, zero for none.
func (c Channel) Operator() ids.ID {
	switch c.OperatorMode {
	case OperatorOwn:
		return c.OwnOperatorID
	case OperatorInherit:
		return c.SpaceOperatorID
	default:
		return ids.ID{}
	}
}

// Archived reports whether the channel or its space is archived.
func (c Channel) Archived() bool { return c.ArchivedAt != nil || c.SpaceArchived }

// SetOperator changes who answers and reports whether anything changed.
func (c *Channel) SetOperator(mode string, agent ids.ID) bool {
	if c.OperatorMode == mode && c.OwnOperatorID == agent {
		return false
	}
	c.OperatorMode, c.OwnOperatorID = mode, agent
	return true
}

// Touch notes a change of the channel. config says that agents must learn of it too.
func (c *Channel) Touch(at time.Time, config bool) {
	c.Version++
	c.UpdatedAt = at
	if config {
		c.ConfigVersion++
	}
}

// TouchBehavior notes a change of the behaviour, which has a version of its own. The channel
// payload shows parts of it, so its version rises as well.
func (c *Channel) TouchBehavior(at time.Time) {
	c.BehaviorVersion++
	c.Touch(at, true)
}
