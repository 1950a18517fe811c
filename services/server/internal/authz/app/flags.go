// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var _ instance.FlagGroupSource = (*Service)(nil)

// InAnyGroup implements instance.FlagGroupSource.
func (s *Service) InAnyGroup(ctx context.Context, person ids.ID, groups []ids.ID) (bool, error) {
	e, err := s.entry(ctx, person)
	if err != nil {
		return false, fmt.Errorf("read the groups of a person: %w", err)
	}
	if slices.ContainsFunc(groups, e.InGroup) {
		return true, nil
	}
	if !e.InEveryone() {
		return false, nil
	}
	everyone, err := s.store.Everyone(ctx)
	if errors.Is(err, ErrNoRow) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the group of all members: %w", err)
	}
	return slices.Contains(groups, everyone.ID), nil
}

// UnknownGroups implements instance.FlagGroupSource.
func (s *Service) UnknownGroups(ctx context.Context, list []ids.ID) ([]ids.ID, error) {
	var unknown []ids.ID
	for _, id := range list {
		_, err := s.store.Group(ctx, id)
		switch {
		case errors.Is(err, ErrNoRow):
			unknown = append(unknown, id)
		case err != nil:
			return nil, fmt.Errorf("read a group: %w", err)
		}
	}
	return unknown, nil
}
