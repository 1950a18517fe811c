// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"maps"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Space is what rights depend on of a space.
type Space struct {
	ID       ids.ID
	Archived bool
}

// Channel is what rights depend on of a channel.
type Channel struct {
	ID ids.ID
	// SpaceID is zero for direct channels.
	SpaceID            ids.ID
	Direct             bool
	Inherits           bool
	Archived, ReadOnly bool
	// Operator is the agent that answers here, zero for none.
	Operator ids.ID
	// Participants are the present members of a direct channel.
	Participants []ids.ID
}

func (c Channel) equal(o Channel) bool {
	return c.ID == o.ID && c.SpaceID == o.SpaceID && c.Direct == o.Direct && c.Inherits == o.Inherits &&
		c.Archived == o.Archived && c.ReadOnly == o.ReadOnly && c.Operator == o.Operator &&
		slices.Equal(c.Participants, o.Participants)
}

// ordinary channels take their rights from their space and nothing else.
func (c Channel) ordinary() bool {
	return !c.Direct && c.Inherits && c.Operator.IsZero() && !c.Archived
}

// Structure is the places of the instance at one moment. It never changes; With methods
// give a changed copy, so readers need no lock.
type Structure struct {
	spaces   map[ids.ID]Space
	channels map[ids.ID]Channel
	// special are the channels whose rights are not simply those of their space for
	// everybody, by space; direct the direct channels by participant and operator.
	special map[ids.ID][]ids.ID
	direct  map[ids.ID][]ids.ID
}

// NewStructure builds the structure from its parts.
func NewStructure(spaces []Space, channels []Channel) *Structure {
	s := &Structure{
		spaces: make(map[ids.ID]Space, len(spaces)), channels: make(map[ids.ID]Channel, len(channels)),
		special: map[ids.ID][]ids.ID{}, direct: map[ids.ID][]ids.ID{},
	}
	for _, sp := range spaces {
		s.spaces[sp.ID] = sp
	}
	for _, c := range channels {
		s.channels[c.ID] = c
	}
	s.index()
	return s
}

func (s *Structure) index() {
	s.special, s.direct = map[ids.ID][]ids.ID{}, map[ids.ID][]ids.ID{}
	for id, c := range s.channels {
		switch {
		case c.Direct:
			for _, p := range c.Participants {
				s.direct[p] = append(s.direct[p], id)
			}
			if !c.Operator.IsZero() {
				s.direct[c.Operator] = append(s.direct[c.Operator], id)
			}
		case !c.ordinary() || s.spaces[c.SpaceID].Archived:
			s.special[c.SpaceID] = append(s.special[c.SpaceID], id)
		}
	}
}

// Space finds a space.
func (s *Structure) Space(id ids.ID) (Space, bool) {
	sp, ok := s.spaces[id]
	return sp, ok
}

// Channel finds a channel; it counts as archived when its space is.
func (s *Structure) Channel(id ids.ID) (Channel, bool) {
	c, ok := s.channels[id]
	if ok && !c.Direct && s.spaces[c.SpaceID].Archived {
		c.Archived = true
	}
	return c, ok
}

// Spaces lists all spaces by ID.
func (s *Structure) Spaces() []ids.ID {
	return slices.SortedFunc(maps.Keys(s.spaces), ids.ID.Compare)
}

// Channels lists all channels by ID.
func (s *Structure) Channels() []ids.ID {
	return slices.SortedFunc(maps.Keys(s.channels), ids.ID.Compare)
}

// CompanionsOf are the people in the direct channels in which the agent answers.
func (s *Structure) CompanionsOf(agent ids.ID) []ids.ID {
	var out []ids.ID
	for _, id := range s.direct[agent] {
		if c := s.channels[id]; c.Operator == agent {
			out = append(out, c.Participants...)
		}
	}
	return out
}

// WithSpace gives a copy in which the space is as told.
func (s *Structure) WithSpace(sp Space) *Structure {
	if old, ok := s.spaces[sp.ID]; ok && old == sp {
		return s
	}
	out := &Structure{spaces: maps.Clone(s.spaces), channels: s.channels}
	out.spaces[sp.ID] = sp
	out.index()
	return out
}

// WithChannel gives a copy in which the channel is as told.
func (s *Structure) WithChannel(c Channel) *Structure {
	if old, ok := s.channels[c.ID]; ok && old.equal(c) {
		return s
	}
	out := &Structure{spaces: s.spaces, channels: maps.Clone(s.channels)}
	out.channels[c.ID] = c
	out.index()
	return out
}

// changedChannels lists the channels that are not the same in both.
func changedChannels(before, after *Structure) map[ids.ID]bool {
	out := map[ids.ID]bool{}
	if before == after {
		return out
	}
	for id := range before.channels {
		a, okA := after.Channel(id)
		b, _ := before.Channel(id)
		if !okA || !a.equal(b) {
			out[id] = true
		}
	}
	for id := range after.channels {
		if _, ok := before.channels[id]; !ok {
			out[id] = true
		}
	}
	return out
}
