// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

// group gives a right to a group, and watches a member come and go.
func (s *story) group(ctx context.Context) error {
	hall, err := s.owner.CreateSpace(ctx, api.CreateSpaceRequest{Name: "Hall"})
	if err != nil {
		return err
	}
	crew, err := s.owner.CreateGroup(ctx, api.CreateGroupRequest{Name: "Crew", Handle: "crew"})
	if err != nil {
		return err
	}
	_, err = s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindGroup, ID: crew.ID}, Target: api.TargetInput{Kind: api.TargetKindSpace, ID: &hall.ID}, Level: api.LevelWrite,
	})
	if err != nil {
		return err
	}
	if err := s.mayNotSee(ctx, hall.ID); err != nil {
		return fmt.Errorf("before the membership: %w", err)
	}
	if _, err := s.owner.PutGroupMember(ctx, crew.ID, s.bob.id, api.PutGroupMemberRequest{}); err != nil {
		return err
	}
	_, err = await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, g := range d.Gained {
			if g.Target.ID != nil && *g.Target.ID == hall.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	if err := s.owner.RemoveGroupMember(ctx, crew.ID, s.bob.id); err != nil {
		return err
	}
	_, err = await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, t := range d.Lost {
			if t.ID != nil && *t.ID == hall.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	return s.mayNotSee(ctx, hall.ID)
}

// mayNotSee checks that a space is nowhere for bob.
func (s *story) mayNotSee(ctx context.Context, spaceID string) error {
	_, err := s.bob.CreateChannel(ctx, spaceID, api.CreateChannelRequest{Kind: api.CreateChannelRequestKindText, Name: "mine"})
	return want(err, api.ErrorCodeNotFound, "")
}

// expiringGrant gives a right until a time and finds the time in the list.
func (s *story) expiringGrant(ctx context.Context) error {
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond)
	target := api.TargetInput{Kind: api.TargetKindSpace, ID: &s.space.ID}
	made, err := s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: s.bob.id}, Target: target, Level: api.LevelRead, ExpiresAt: &end,
	})
	if err != nil {
		return err
	}
	past := time.Now().Add(-time.Hour)
	_, err = s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: s.bob.id}, Target: target, Level: api.LevelWrite, ExpiresAt: &past,
	})
	if err := want(err, api.ErrorCodeValidationFailed, ""); err != nil {
		return fmt.Errorf("an end that has passed: %w", err)
	}
	list, err := s.owner.Grants(ctx, target, bothy.Page{})
	if err != nil {
		return err
	}
	for _, g := range list.Items {
		if g.ID == made.ID {
			if g.ExpiresAt == nil || !g.ExpiresAt.Equal(end) {
				return fmt.Errorf("the grant ends at %v instead of %v", g.ExpiresAt, end)
			}
			return s.owner.RevokeGrant(ctx, made.ID)
		}
	}
	return fmt.Errorf("the grant is not among the %d of the space", len(list.Items))
}

// stepUp proves the owner's presence; a wrong password proves nothing.
func (s *story) stepUp(ctx context.Context) error {
	_, err := s.owner.session.StepUpWithPassword(ctx, "not this one at all")
	if err := want(err, api.ErrorCodeUnauthenticated, "login_failed"); err != nil {
		return fmt.Errorf("a wrong password: %w", err)
	}
	until, err := s.owner.session.StepUpWithPassword(ctx, password)
	if err != nil {
		return err
	}
	if left := time.Until(until); left <= 0 {
		return fmt.Errorf("the proof ended %v ago", -left)
	}
	_, err = s.owner.Self(ctx)
	return err
}
