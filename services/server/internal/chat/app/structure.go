// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Structure implements chat.Structure and chat.ChannelNames.
type Structure struct{ channels ChannelRepository }

// NewStructure makes the port.
func NewStructure(channels ChannelRepository) *Structure { return &Structure{channels} }

var (
	_ chat.Structure    = (*Structure)(nil)
	_ chat.ChannelNames = (*Structure)(nil)
)

// Channel implements chat.Structure.
func (s *Structure) Channel(ctx context.Context, id ids.ID) (chat.Channel, error) {
	c, err := s.channels.Get(ctx, id)
	return portChannel(c), err
}

// Channels implements chat.Structure.
func (s *Structure) Channels(ctx context.Context, list []ids.ID) (map[ids.ID]chat.Channel, error) {
	found, err := s.channels.In(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read channels: %w", err)
	}
	out := make(map[ids.ID]chat.Channel, len(found))
	for _, c := range found {
		out[c.ID] = portChannel(c)
	}
	return out, nil
}

// OperatorChannels implements chat.Structure.
func (s *Structure) OperatorChannels(ctx context.Context, agent ids.ID) ([]ids.ID, error) {
	return s.channels.OfOperator(ctx, agent)
}

// ChannelsNamed implements chat.ChannelNames.
func (s *Structure) ChannelsNamed(ctx context.Context, space ids.ID, names []string) (map[string]ids.ID, error) {
	return s.channels.Named(ctx, space, names)
}

// RightsSource implements authz.StructureSource: where things lie, for decisions.
type RightsSource struct {
	spaces   SpaceRepository
	channels ChannelRepository
	threads  ThreadRepository
}

// NewRightsSource makes the source.
func NewRightsSource(spaces SpaceRepository, channels ChannelRepository, threads ThreadRepository) *RightsSource {
	return &RightsSource{spaces: spaces, channels: channels, threads: threads}
}

var _ authz.StructureSource = (*RightsSource)(nil)

// Spaces implements authz.StructureSource.
func (s *RightsSource) Spaces(ctx context.Context) ([]authz.SpaceState, error) {
	return s.spaces.States(ctx)
}

// Channels implements authz.StructureSource.
func (s *RightsSource) Channels(ctx context.Context) ([]authz.ChannelState, error) {
	return s.channels.States(ctx)
}

// Space implements authz.StructureSource.
func (s *RightsSource) Space(ctx context.Context, id ids.ID) (authz.SpaceState, bool, error) {
	space, err := s.spaces.Get(ctx, id)
	found, err := present(err)
	return authz.SpaceState{ID: id, Archived: space.ArchivedAt != nil}, found, err
}

// Channel implements authz.StructureSource. A channel whose place lock the unit holds is not
// read again.
func (s *RightsSource) Channel(ctx context.Context, id ids.ID) (authz.ChannelState, bool, error) {
	if c, ok := heldChannel(ctx, id); ok {
		return channelState(c), true, nil
	}
	c, err := s.channels.Get(ctx, id)
	found, err := present(err)
	return channelState(c), found, err
}

// ThreadChannel implements authz.StructureSource.
func (s *RightsSource) ThreadChannel(ctx context.Context, thread ids.ID) (ids.ID, bool, error) {
	if p, ok := heldPlace(ctx, thread); ok {
		return p.channel.ID, true, nil
	}
	channel, err := s.threads.Channel(ctx, thread)
	found, err := present(err)
	return channel, found, err
}

func channelState(c domain.Channel) authz.ChannelState {
	return authz.ChannelState{
		ID: c.ID, SpaceID: c.SpaceID, Direct: c.Kind == domain.KindDirect, Inherits: c.Inherits,
		// The space's own state is asked for by itself; only the channel's stands here.
		Archived: c.ArchivedAt != nil, ReadOnly: c.ReadOnly, OperatorID: c.Operator(),
	}
}

// present turns the absence of a row into an answer.
func present(err error) (found bool, _ error) {
	if errs.Is(err, errs.CodeNotFound) {
		return false, nil
	}
	return err == nil, err
}
