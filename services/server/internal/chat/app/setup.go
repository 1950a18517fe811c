// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
)

// What an installation starts with: one place everybody can talk in and call agents.
const (
	firstSpace   = "Team"
	firstChannel = "general"
)

// Setup makes the first structure of an installation.
type Setup struct {
	deps     Deps
	spaces   *Spaces
	channels *Channels
}

// NewSetup makes the subscriber.
func NewSetup(d Deps) *Setup {
	return &Setup{deps: d, spaces: NewSpaces(d), channels: NewChannels(d)}
}

// OnSetupCompleted makes the first space and channel when the first owner is there, and lets
// every member write and call agents in them. Its unit has declared the change of rights.
func (s *Setup) OnSetupCompleted(ctx context.Context, e identity.SetupCompleted) error {
	space, err := s.spaces.create(ctx, NewSpace{Name: firstSpace}, e.OwnerID)
	if err != nil {
		return fmt.Errorf("make the first space: %w", err)
	}
	channel := NewChannel{SpaceID: space.ID, Kind: domain.KindText, Name: firstChannel, Inherits: true}
	if _, err := s.channels.create(ctx, space, channel, e.OwnerID); err != nil {
		return fmt.Errorf("make the first channel: %w", err)
	}
	err = s.deps.Grants.GrantEveryone(ctx, authz.Target{Kind: "space", ID: space.ID}, authorize.LevelTrigger,
		[]authorize.Capability{authorize.CapFilesUpload, authorize.CapThreadsCreate})
	if err != nil {
		return fmt.Errorf("let everybody into the first space: %w", err)
	}
	return nil
}
