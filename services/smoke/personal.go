// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/sdk/go/api"
)

// personal makes an agent that works on the owner's own plan: nobody else sets it to work, and no right can be given
// that would let somebody.
func (s *story) personal(ctx context.Context) error {
	agent, err := s.owner.CreateAgent(ctx, api.CreateAgentRequest{
		Handle: "mine", DisplayName: "Mine", BillingMode: api.BillingModePersonal, CredentialHolderID: &s.owner.id, ToolClass: api.ToolClassChat,
	})
	if err != nil {
		return err
	}
	desk, err := s.owner.CreateSpace(ctx, api.CreateSpaceRequest{Name: "Desk"})
	if err != nil {
		return err
	}
	channel, err := s.owner.CreateChannel(ctx, desk.ID, api.CreateChannelRequest{Kind: api.CreateChannelRequestKindText, Name: "drafts"})
	if err != nil {
		return err
	}
	give := func(principal string, level api.Level, replaces *string) (*api.GrantCreated, error) {
		return s.owner.CreateGrant(ctx, api.CreateGrantRequest{
			Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: principal},
			Target:  api.TargetInput{Kind: api.TargetKindSpace, ID: &desk.ID}, Level: level, Replaces: replaces,
		})
	}
	if _, err := give(agent.PrincipalID, api.LevelWrite, nil); err != nil {
		return err
	}
	right, err := give(s.bob.id, api.LevelWrite, nil)
	if err != nil {
		return err
	}
	if channel.MainThreadID == nil {
		return errors.New("the channel has no main thread")
	}
	order := api.CreateMessageRequest{Content: "<@" + agent.PrincipalID + "> tie a knot"}
	said, err := s.bob.CreateMessage(ctx, *channel.MainThreadID, order)
	if err != nil {
		return err
	}
	if said.TriggerState != api.TriggerStateDenied {
		return fmt.Errorf("the order of somebody else is %s", said.TriggerState)
	}
	_, err = give(s.bob.id, api.LevelTrigger, &right.ID)
	if err := want(err, api.ErrorCodeI1Violation, ""); err != nil {
		return fmt.Errorf("a right to set it to work: %w", err)
	}
	if said, err = s.owner.CreateMessage(ctx, *channel.MainThreadID, order); err != nil {
		return err
	}
	if said.TriggerState != api.TriggerStateTriggered {
		return fmt.Errorf("the order of the holder is %s", said.TriggerState)
	}
	return nil
}
