// SPDX-License-Identifier: Apache-2.0

// Package authorize is the one question that every request and every delivery asks: may
// this principal do this action to this thing? The catalogue of actions is generated; the
// module authz decides. A check log in the context proves that the question was asked.
package authorize

// Action is an ID of the action catalogue, for example message.create.
type Action string

// Level is what a grant gives on a target. Each includes the ones before it.
type Level string

// The levels in ascending order; LevelNone is the absence of any right.
const (
	LevelNone    Level = ""
	LevelRead    Level = "read"
	LevelWrite   Level = "write"
	LevelTrigger Level = "trigger"
	LevelManage  Level = "manage"
)

// Rank orders levels: 0 for none to 4 for manage; -1 for a word that is no level.
func (l Level) Rank() int {
	switch l {
	case LevelNone:
		return 0
	case LevelRead:
		return 1
	case LevelWrite:
		return 2
	case LevelTrigger:
		return 3
	case LevelManage:
		return 4
	default:
		return -1
	}
}

// Includes reports whether l is at least other.
func (l Level) Includes(other Level) bool { return l.Rank() >= other.Rank() }

// Capability is a right that is granted apart from the levels.
type Capability string

// The capabilities. Manage includes all but CapExport, CapCostsRead and CapTerminalOpen.
const (
	CapFilesUpload       Capability = "files.upload"
	CapThreadsCreate     Capability = "threads.create"
	CapMessagesModerate  Capability = "messages.moderate"
	CapPinsManage        Capability = "pins.manage"
	CapMentionsBroadcast Capability = "mentions.broadcast"
	CapExport            Capability = "export"
	CapCostsRead         Capability = "costs.read"
	CapWebhooksManage    Capability = "webhooks.manage"
	CapCommandsManage    Capability = "commands.manage"
	CapMembersManage     Capability = "members.manage"
	CapTerminalOpen      Capability = "terminal.open"
)

// Capabilities lists all of them in their canonical order.
func Capabilities() []Capability {
	return []Capability{
		CapCommandsManage, CapCostsRead, CapExport, CapFilesUpload, CapMembersManage, CapMentionsBroadcast,
		CapMessagesModerate, CapPinsManage, CapTerminalOpen, CapThreadsCreate, CapWebhooksManage,
	}
}
