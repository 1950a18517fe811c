// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"math/bits"
	"slices"
)

// Level is how far a right reaches. Each level includes the ones below it.
type Level uint8

// The levels in ascending order.
const (
	None Level = iota
	Read
	Write
	Trigger
	Manage
)

var levelNames = [...]string{"", "read", "write", "trigger", "manage"}

// ParseLevel reads the word of a level; ok is false for any other word and for none.
func ParseLevel(s string) (l Level, ok bool) {
	i := slices.Index(levelNames[1:], s)
	return Level(i + 1), i >= 0
}

// String is the word of the level, empty for None.
func (l Level) String() string { return levelNames[l] }

// Caps is a set of capabilities.
type Caps uint16

// The capabilities, in their canonical order.
const (
	CommandsManage Caps = 1 << iota
	CostsRead
	Export
	FilesUpload
	MembersManage
	MentionsBroadcast
	MessagesModerate
	PinsManage
	TerminalOpen
	ThreadsCreate
	WebhooksManage

	AllCaps = WebhooksManage<<1 - 1
	// SpecialCaps are not part of manage: each reveals or spends, so it is given by name.
	SpecialCaps = CostsRead | Export | TerminalOpen
	// ManageCaps come with the level manage.
	ManageCaps = AllCaps &^ SpecialCaps
)

var capNames = [...]string{
	"commands.manage", "costs.read", "export", "files.upload", "members.manage", "mentions.broadcast",
	"messages.moderate", "pins.manage", "terminal.open", "threads.create", "webhooks.manage",
}

// ParseCap reads the word of one capability.
func ParseCap(s string) (c Caps, ok bool) {
	i := slices.Index(capNames[:], s)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// ParseCaps reads a list; words it does not know are left out.
func ParseCaps(list []string) Caps {
	var out Caps
	for _, s := range list {
		c, _ := ParseCap(s)
		out |= c
	}
	return out
}

// Has reports whether all of other are in the set.
func (c Caps) Has(other Caps) bool { return c&other == other }

// Names lists the set in canonical order; never nil.
func (c Caps) Names() []string {
	out := make([]string, 0, bits.OnesCount16(uint16(c)))
	for i, name := range capNames {
		if c&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// Held is what a principal has on a target. The passing part is what grants of the level
// manage give: it alone goes through a channel that does not inherit.
type Held struct {
	Level Level
	Caps  Caps
	// Passes is set when one of the grants has the level manage; Passing are the
	// capabilities of those grants.
	Passes  bool
	Passing Caps
}

// HeldBy is what one grant gives.
func HeldBy(level Level, caps Caps) Held {
	h := Held{Level: level, Caps: caps}
	if level == Manage {
		h.Caps |= ManageCaps
		h.Passes, h.Passing = true, h.Caps
	}
	return h
}

// And is what both give together. Rights only add, so the order never matters.
func (h Held) And(o Held) Held {
	return Held{
		Level: max(h.Level, o.Level), Caps: h.Caps | o.Caps,
		Passes: h.Passes || o.Passes, Passing: h.Passing | o.Passing,
	}
}

// ThroughBarrier is what is left behind a channel that does not inherit.
func (h Held) ThroughBarrier() Held {
	if !h.Passes {
		return Held{}
	}
	return Held{Level: Manage, Caps: h.Passing, Passes: true, Passing: h.Passing}
}

// Limit is what two holders have in common: an agent on an order has no more than the
// person who gave it.
func (h Held) Limit(o Held) Held {
	return Held{
		Level: min(h.Level, o.Level), Caps: h.Caps & o.Caps,
		Passes: h.Passes && o.Passes, Passing: h.Passing & o.Passing,
	}
}

// Visible reports whether the target may be read.
func (h Held) Visible() bool { return h.Level >= Read }

// Empty reports whether nothing at all is held.
func (h Held) Empty() bool { return h == Held{} }

var (
	// ownerHeld is what an active owner has everywhere but in other people's conversations.
	ownerHeld = Held{Level: Manage, Caps: AllCaps, Passes: true, Passing: AllCaps}
	// operatorHeld is what the agent that answers in a channel needs there.
	operatorHeld = Held{Level: Write, Caps: FilesUpload | ThreadsCreate}
	// participantHeld is what the members of a direct channel have there.
	participantHeld = Held{Level: Trigger, Caps: FilesUpload | ThreadsCreate | PinsManage}
)
