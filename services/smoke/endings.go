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

func (s *story) takeAway(ctx context.Context) error {
	if err := s.owner.RevokeGrant(ctx, s.grant.ID); err != nil {
		return err
	}
	_, err := await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, t := range d.Lost {
			if t.ID != nil && *t.ID == s.channel.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	for what, call := range map[string]func() error{
		"the channel":  func() error { _, err := s.bob.Channel(ctx, s.channel.ID); return err },
		"its messages": func() error { _, err := s.bob.ListMessages(ctx, s.thread, bothy.MessageRange{}); return err },
		"writing": func() error {
			_, err := s.bob.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "x"})
			return err
		},
	} {
		if err := want(call(), api.ErrorCodeNotFound, ""); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	secret, err := s.owner.CreateMessage(ctx, s.thread, api.CreateMessageRequest{Content: "Without Bob."})
	if err != nil {
		return err
	}
	// What bob may still see comes behind it in the log, so by then the message would have come, too.
	user, err := s.owner.CreateSpace(ctx, api.CreateSpaceRequest{Name: "Open"})
	if err != nil {
		return err
	}
	_, err = s.owner.CreateGrant(ctx, api.CreateGrantRequest{
		Subject: api.SubjectInput{Kind: api.SubjectKindPrincipal, ID: s.bob.id}, Target: api.TargetInput{Kind: api.TargetKindSpace, ID: &user.ID}, Level: api.LevelRead,
	})
	if err != nil {
		return err
	}
	_, err = await(ctx, s.bob, gateway.AccessChanged, func(d *api.AccessChangedData) bool {
		for _, g := range d.Gained {
			if g.Target.ID != nil && *g.Target.ID == user.ID {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	if n := seen(s.bob, gateway.MessageCreated, func(d *api.MessageCreatedData) bool { return d.Message.ID == secret.ID }); n != 0 {
		return errors.New("the message reached who may not read it")
	}
	return nil
}

func (s *story) revoke(ctx context.Context) error {
	if err := s.owner.RevokeToken(ctx, s.agent.Token.ID); err != nil {
		return err
	}
	code, err := s.adapter.wait(ctx)
	if err != nil {
		return fmt.Errorf("the adapter: %w", err)
	}
	const refused = 3
	if code != refused {
		return fmt.Errorf("the adapter ended with %d instead of %d", code, refused)
	}
	return nil
}

func (s *story) endSession(ctx context.Context) error {
	if err := s.bob.RevokeSession(ctx, s.bob.session.State().SessionID); err != nil {
		return err
	}
	select {
	case err := <-s.bob.ended:
		if !errors.Is(err, gateway.ErrCredentials) {
			return fmt.Errorf("the gateway ended with: %w", orNone(err))
		}
		return nil
	case <-ctx.Done():
		return errors.New("the connection stays")
	}
}

func (s *story) stop(ctx context.Context) error {
	code, err := s.in.server.stop(ctx)
	if err != nil || code != 0 {
		return fmt.Errorf("exit code %d, %w", code, orNone(err))
	}
	s.in.server = nil
	return nil
}
