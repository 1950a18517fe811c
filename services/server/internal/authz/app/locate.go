// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// confirm asks the source about a place that memory does not show.
func (s *Service) confirm(ctx context.Context, p place) (place, error) {
	switch p.kind {
	case domain.TargetInstance: // The instance is there; asking keeps it like the other places.
		_, err := s.freshSpace(ctx, ids.ID{})
		return place{kind: domain.TargetInstance, found: true}, err
	case domain.TargetSpace:
		return s.freshSpace(ctx, p.space.ID)
	}
	c, ok, err := s.places.Channel(ctx, p.channel.ID)
	if err != nil {
		return place{}, fmt.Errorf("read a channel: %w", err)
	}
	out := place{kind: domain.TargetChannel, found: ok}
	if ok {
		out.channel = toChannel(c)
	}
	return out, nil
}

// locate finds the place of a resource. In a unit that writes it reads the structure there;
// elsewhere memory serves while it is right for the version. A place that is missing and one
// that is hidden take the same steps.
func (s *Service) locate(ctx context.Context, r authorize.Resource) (place, error) {
	channel, space := r.ChannelID, r.SpaceID
	switch r.Kind {
	case authorize.ResourceNone, authorize.ResourceSelf, authorize.ResourcePrincipal, authorize.ResourceGroup,
		authorize.ResourceHost, authorize.ResourceFile:
		return place{}, nil
	case authorize.ResourceInstance:
		return place{kind: domain.TargetInstance, found: true}, nil
	case authorize.ResourceChannel:
		if channel.IsZero() {
			channel = r.ID
		}
	case authorize.ResourceSpace:
		if space.IsZero() {
			space = r.ID
		}
	case authorize.ResourceThread:
		if channel.IsZero() {
			var err error
			if channel, _, err = s.places.ThreadChannel(ctx, r.ID); err != nil {
				return place{}, fmt.Errorf("find the channel of a thread: %w", err)
			}
		}
	case authorize.ResourceGrant, authorize.ResourceTarget:
		if channel.IsZero() && space.IsZero() {
			return place{kind: domain.TargetInstance, found: true, remembered: !inWriteUnit(ctx)}, nil
		}
	case authorize.ResourceAgent:
		if channel.IsZero() {
			return place{}, nil
		}
	}
	if inWriteUnit(ctx) {
		return s.locateFresh(ctx, channel, space)
	}
	return s.locateKnown(ctx, channel, space)
}

func (s *Service) locateFresh(ctx context.Context, channel, space ids.ID) (place, error) {
	if channel.IsZero() {
		return s.freshSpace(ctx, space)
	}
	c, ok, err := s.places.Channel(ctx, channel)
	if err != nil {
		return place{}, fmt.Errorf("read a channel: %w", err)
	}
	p := place{kind: domain.TargetChannel, found: ok}
	if ok {
		p.channel = toChannel(c)
	}
	v, err := s.version(ctx)
	if err != nil {
		return place{}, err
	}
	// Archiving a space raises the version, so memory that is right for it knows. Otherwise
	// the source is asked, for missing and direct channels too: the statements tell nothing.
	if st := s.cache.structureAt(v, s.generation()); st != nil && stateOf(ctx).changing == nil {
		sp, _ := st.Space(c.SpaceID)
		p.channel.Archived = p.channel.Archived || sp.Archived
		return p, nil
	}
	sp, err := s.freshSpace(ctx, c.SpaceID)
	p.channel.Archived = p.channel.Archived || sp.space.Archived
	return p, err
}

func (s *Service) freshSpace(ctx context.Context, space ids.ID) (place, error) {
	sp, ok, err := s.places.Space(ctx, space)
	if err != nil {
		return place{}, fmt.Errorf("read a space: %w", err)
	}
	return place{kind: domain.TargetSpace, found: ok, space: toSpace(sp)}, nil
}

func (s *Service) locateKnown(ctx context.Context, channel, space ids.ID) (place, error) {
	v, err := s.version(ctx)
	if err != nil {
		return place{}, err
	}
	st, err := s.structureFor(ctx, v)
	if err != nil {
		return place{}, err
	}
	if channel.IsZero() {
		sp, ok := st.Space(space)
		sp.ID = space
		return place{kind: domain.TargetSpace, found: ok, remembered: true, space: sp}, nil
	}
	c, ok := st.Channel(channel)
	c.ID = channel
	return place{kind: domain.TargetChannel, found: ok, remembered: true, channel: c}, nil
}

// sharesPlace reports whether the agent and the holder of the entry read a place both.
func (s *Service) sharesPlace(ctx context.Context, e *domain.Entry, agent ids.ID) (bool, error) {
	v, err := s.version(ctx)
	if err != nil {
		return false, err
	}
	other, err := s.entry(ctx, agent)
	if err != nil {
		return false, err
	}
	st, err := s.structureFor(ctx, v)
	if err != nil {
		return false, err
	}
	return shares(e, other, st), nil
}

func shares(e, other *domain.Entry, st *domain.Structure) bool {
	own, reach := e.Reach(st), other.Reach(st)
	if own.All && readsAny(reach, st) || reach.All && readsAny(own, st) {
		return true
	}
	return slices.ContainsFunc(reach.Spaces, func(id ids.ID) bool { return e.Space(id).Visible() }) ||
		readsOneOf(e, reach.Channels, st) || readsOneOf(other, own.Channels, st)
}

// readsOneOf reports whether the holder of the entry reads one of the channels.
func readsOneOf(e *domain.Entry, channels []ids.ID, st *domain.Structure) bool {
	return slices.ContainsFunc(channels, func(id ids.ID) bool {
		c, ok := st.Channel(id)
		return ok && e.Channel(c).Visible()
	})
}

// readsAny reports whether a reach has a place that is no conversation: who reads everything
// does not read those.
func readsAny(reach domain.Reach, st *domain.Structure) bool {
	return reach.All || len(reach.Spaces) > 0 || slices.ContainsFunc(reach.Channels, func(id ids.ID) bool {
		c, ok := st.Channel(id)
		return ok && !c.Direct
	})
}
