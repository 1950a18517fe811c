// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

func (s *story) migrate(ctx context.Context) error {
	_, err := s.in.command(ctx, "migrate", "up", "--bootstrap")
	return err
}

func (s *story) bootstrap(ctx context.Context) (err error) {
	s.code, err = s.in.command(ctx, "setup", "bootstrap-owner", "--handle", "ana", "--display-name", "Ana Lima")
	return err
}

const password = "a long way to tipperary"

func (s *story) enrolOwner(ctx context.Context) (err error) {
	if s.owner, err = enrol(ctx, s.in.url, s.code, password); err != nil {
		return err
	}
	self, err := s.owner.Self(ctx)
	if err != nil {
		return err
	}
	if self.Handle != "ana" || self.Owner == nil || !*self.Owner {
		return fmt.Errorf("the owner is @%s, owner %v", self.Handle, self.Owner)
	}
	return s.owner.online(ctx, 1)
}

func (s *story) codeIsUsed(ctx context.Context) error {
	_, err := enrol(ctx, s.in.url, s.code, password)
	return want(err, api.ErrorCodeUnauthenticated, "login_failed")
}

// want is nil when the error is a problem of the code and, unless that is empty, the reason.
func want(err error, code api.ErrorCode, reason string) error {
	if !bothy.HasCode(err, code) || reason != "" && bothy.Reason(err) != reason {
		return fmt.Errorf("%s %s was expected, got: %w", code, reason, orNone(err))
	}
	return nil
}

var errNone = errors.New("no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func (s *story) enrolBob(ctx context.Context) error {
	yes := true
	user, err := s.owner.CreateUser(ctx, api.CreateUserRequest{Handle: "bob", DisplayName: "Bob Ray", IssueCode: &yes})
	if err != nil {
		return err
	}
	if user.Enrollment == nil {
		return errors.New("no code in the answer")
	}
	code, err := s.owner.IssueEnrollmentCode(ctx, user.ID)
	if err != nil {
		return fmt.Errorf("issue another code: %w", err)
	}
	if _, err := enrol(ctx, s.in.url, user.Enrollment.Code, password); err == nil {
		return errors.New("the replaced code still works")
	}
	if s.bob, err = enrol(ctx, s.in.url, code.Code, password); err != nil {
		return err
	}
	if s.bob.id != user.ID {
		return fmt.Errorf("the code is of %s instead of %s", s.bob.id, user.ID)
	}
	return s.bob.online(ctx, 1)
}

func (s *story) makeChannel(ctx context.Context) (err error) {
	if s.space, err = s.owner.CreateSpace(ctx, api.CreateSpaceRequest{Name: "Workshop"}); err != nil {
		return err
	}
	s.channel, err = s.owner.CreateChannel(ctx, s.space.ID, api.CreateChannelRequest{Kind: api.CreateChannelRequestKindText, Name: "general"})
	if err != nil {
		return err
	}
	if s.channel.MainThreadID == nil {
		return errors.New("the channel has no main thread")
	}
	s.thread = *s.channel.MainThreadID
	if _, err := s.bob.Channel(ctx, s.channel.ID); !bothy.HasCode(err, api.ErrorCodeNotFound) {
		return fmt.Errorf("bob, who has no right, gets: %w", orNone(err))
	}
	return nil
}

func (s *story) giveAccess(ctx context.Context) (err error) {
	if s.grant, err = s.grantOn(ctx, s.bob.id, api.LevelTrigger, api.CapabilityThreadsCreate); err != nil {
		return err
	}
	_, err = await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, g := range d.Gained {
			if g.Target.ID != nil && *g.Target.ID == s.channel.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	part, err := s.bob.SnapshotOf(ctx, "", "channel:"+s.channel.ID)
	if err != nil {
		return err
	}
	for _, c := range part.Sections.Channels {
		if c.Channel.ID == s.channel.ID && c.Access.Level != nil && *c.Access.Level == api.LevelTrigger {
			return nil
		}
	}
	return fmt.Errorf("the snapshot of the channel has %d channels, none of them with the right", len(part.Sections.Channels))
}

func (s *story) grantOn(ctx context.Context, principal string, level api.Level, capabilities ...api.Capability) (*api.GrantCreated, error) {
	return s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: principal},
		Target:  api.TargetInput{Kind: api.TargetKindChannel, ID: &s.channel.ID}, Level: level, Capabilities: capabilities,
	})
}
