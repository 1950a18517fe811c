// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The kinds of groups.
const (
	groupManual = "manual"
	groupClaim  = "claim"
	// groupEveryone is the group of all members, whose members are computed.
	groupEveryone = "everyone"
)

const (
	everyoneName   = "Everyone"
	everyoneHandle = "everyone"
)

// GroupQuery says which groups to list.
type GroupQuery struct {
	// Query is the beginning of a name or handle.
	Query, Kind string
	// After is the handle of the last group of the page before.
	After string
	Limit int
}

// Groups lists groups by handle, with the caller's role in each. Guests see their own alone.
func (s *Service) Groups(ctx context.Context, q GroupQuery) (list []GroupRow, more bool, err error) {
	if _, err := s.Scope(ctx, authorize.ActionGroupRead); err != nil {
		return nil, false, err
	}
	e, err := s.entry(ctx, actor.From(ctx).ID)
	if err != nil {
		return nil, false, sourceError(authorize.ActionGroupRead, err)
	}
	list, err = s.store.Groups(ctx, GroupFilter{
		Query: q.Query, Kind: q.Kind, Viewer: e.ID, OwnOnly: e.Guest, Now: s.now(ctx), After: q.After, Limit: q.Limit + 1,
	})
	if err != nil {
		return nil, false, err
	}
	for i := range list {
		if list[i].Kind == groupEveryone && e.InEveryone() {
			list[i].MyRole = RoleMember
		}
	}
	if len(list) > q.Limit {
		return list[:q.Limit], true, nil
	}
	return list, false, nil
}

// GroupDetail is a group with how much depends on it.
type GroupDetail struct {
	GroupRow
	GroupCounts
}

// Group reads one, with the caller's role.
func (s *Service) Group(ctx context.Context, id ids.ID) (GroupDetail, error) {
	var out GroupDetail
	err := s.units.View(ctx, func(ctx context.Context) error {
		g, err := s.readGroup(ctx, id)
		if err != nil {
			return err
		}
		out.GroupRow = g
		if out.GroupCounts, err = s.store.GroupCounts(ctx, id, s.now(ctx)); err != nil {
			return fmt.Errorf("count the members of a group: %w", err)
		}
		caller := actor.From(ctx).ID
		if g.Kind != groupEveryone {
			out.MyRole, err = s.store.RoleIn(ctx, id, caller, s.now(ctx))
			return err
		}
		everyone, err := s.everyone(ctx)
		if err != nil {
			return err
		}
		out.Members = len(everyone)
		if slices.Contains(everyone, caller) {
			out.MyRole = RoleMember
		}
		return nil
	})
	return out, err
}

// readGroup reads a group that the caller may see; one that is missing and one that is hidden
// are not found alike.
func (s *Service) readGroup(ctx context.Context, id ids.ID) (GroupRow, error) {
	g, err := s.store.Group(ctx, id)
	if err != nil && !errors.Is(err, ErrNoRow) {
		return GroupRow{}, fmt.Errorf("read a group: %w", err)
	}
	if denied := s.Authorize(ctx, authorize.ActionGroupRead, authorize.Resource{Kind: authorize.ResourceGroup, ID: id}); denied != nil {
		return GroupRow{}, denied
	}
	if err != nil {
		return GroupRow{}, errs.NotFound()
	}
	return g, nil
}

// HandleTaken implements authz.Groups.
func (s *Service) HandleTaken(ctx context.Context, handle string) (bool, error) {
	return s.store.HandleTaken(ctx, handle)
}

// CreateEveryone implements authz.Grants.
func (s *Service) CreateEveryone(ctx context.Context) (ids.ID, error) {
	g, err := s.store.Everyone(ctx)
	if err == nil {
		return g.ID, nil
	}
	if !errors.Is(err, ErrNoRow) {
		return ids.ID{}, err
	}
	now := s.now(ctx)
	g = GroupRow{
		ID: ids.NewAt(now), Name: everyoneName, Handle: everyoneHandle, Kind: groupEveryone, Mentionable: true,
		Version: 1, CreatedAt: now,
	}
	if err := s.store.InsertGroup(ctx, g); err != nil {
		return ids.ID{}, fmt.Errorf("make the group of all members: %w", err)
	}
	return g.ID, s.tellGroup(ctx, groupChangedPayload{Change: "created", Group: groupPayloadOf(g)})
}

func (s *Service) tellGroup(ctx context.Context, p groupChangedPayload) error {
	return s.events.Append(ctx, eventlog.Event{
		Type: EventGroupChanged, Resource: eventlog.Resource{Type: "group", ID: p.Group.ID}, Payload: p,
	})
}
