// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const (
	maxGroupName        = 80
	maxGroupDescription = 500
	maxClaimValue       = 256
)

// NewGroup is a group that somebody wants to make.
type NewGroup struct {
	Name, Handle, Description string
	Mentionable               bool
	// ProviderID and ClaimValue are set for a group whose members an identity provider
	// names.
	ProviderID ids.ID
	ClaimValue string
}

// CreateGroup makes a group without members.
func (s *Service) CreateGroup(ctx context.Context, in NewGroup) (GroupRow, error) {
	g := GroupRow{
		Name: in.Name, Handle: in.Handle, Description: in.Description, Kind: groupManual, Mentionable: in.Mentionable, Version: 1,
	}
	if !in.ProviderID.IsZero() {
		g.Kind, g.ProviderID, g.ClaimValue = groupClaim, in.ProviderID, in.ClaimValue
	}
	if err := s.checkGroup(g); err != nil {
		return GroupRow{}, err
	}
	err := s.units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorize(ctx, authorize.ActionGroupCreate, authorize.Resource{Kind: authorize.ResourceGroup}); err != nil {
			return err
		}
		n, err := s.store.CountGroups(ctx)
		if err != nil {
			return fmt.Errorf("count groups: %w", err)
		}
		if n >= s.cfg.MaxGroups {
			return errs.Conflict("limit_reached", "There are as many groups as there can be. Delete one first.")
		}
		if err := s.takeHandle(ctx, g.Handle); err != nil {
			return err
		}
		g.ID, g.CreatedAt, g.CreatedBy = ids.NewAt(s.now(ctx)), s.now(ctx), actor.From(ctx).ID
		if err := s.store.InsertGroup(ctx, g); err != nil {
			if errors.Is(err, ErrClaimTaken) {
				return errs.Conflict("claim_taken", "Another group follows this claim.")
			}
			return fmt.Errorf("store a group: %w", err)
		}
		details := map[string]any{"kind": g.Kind, "mentionable": g.Mentionable}
		if g.Kind == groupClaim {
			details["provider_id"] = g.ProviderID
		}
		return s.groupDone(ctx, authorize.ActionGroupCreate, details, groupChangedPayload{Change: "created", Group: groupPayloadOf(g)})
	}, groupChange(authorize.ActionGroupCreate))
	return g, err
}

// groupChange makes everything that is done to groups serial, also what changes nobody's
// rights: the limits hold then, and two managers decide one after the other.
func groupChange(action authorize.Action, affected ...ids.ID) txn.Option {
	return txn.WithRightsChange(txn.RightsChange{Action: string(action), Principals: affected})
}

func (s *Service) checkGroup(g GroupRow) error {
	var v errs.Validation
	if n := utf8.RuneCountInString(g.Name); n == 0 || n > maxGroupName {
		v.Addf("/name", "length", "A name has 1 to %d characters.", maxGroupName)
	} else if err := textcheck.Name(g.Name); err != nil {
		v.Add("/name", err.Error(), "A name is one line of plain text.")
	}
	if utf8.RuneCountInString(g.Description) > maxGroupDescription {
		v.Addf("/description", "too_long", "A description has at most %d characters.", maxGroupDescription)
	} else if g.Description != "" {
		if err := textcheck.Body(g.Description); err != nil {
			v.Add("/description", err.Error(), "A description is plain text.")
		}
	}
	if code := s.handles.CheckHandle(g.Handle); code != "" && g.Kind != groupEveryone {
		v.Add("/handle", code, "A handle has lower-case letters, digits, dot, hyphen and underscore, 2 to 32 of them.")
	}
	if g.Kind == groupClaim {
		if n := utf8.RuneCountInString(g.ClaimValue); n == 0 || n > maxClaimValue {
			v.Addf("/claim/value", "length", "A claim has 1 to %d characters.", maxClaimValue)
		}
	}
	return v.Err()
}

// takeHandle takes a handle for a group. Principals and groups share one name space.
func (s *Service) takeHandle(ctx context.Context, handle string) error {
	held, err := s.handles.ClaimHandle(ctx, handle)
	if err != nil {
		return fmt.Errorf("look for the holder of a handle: %w", err)
	}
	if !held {
		if held, err = s.store.HandleTaken(ctx, handle); err != nil {
			return fmt.Errorf("look for a group with the handle: %w", err)
		}
	}
	if held {
		return errs.Conflict("handle_taken", "This handle is in use or was until recently. Take another.")
	}
	return nil
}

// groupDone records what was done to a group and tells it.
func (s *Service) groupDone(ctx context.Context, action authorize.Action, details map[string]any, p groupChangedPayload) error {
	if err := s.audit.Allowed(ctx, auditing.Entry{
		Action: string(action), ResourceKind: "group", ResourceID: p.Group.ID, Details: details,
	}); err != nil {
		return err
	}
	return s.tellGroup(ctx, p)
}

// GroupChange is what somebody wants to change of a group; nil leaves a member as it is.
type GroupChange struct {
	// Version is the one the change was made from.
	Version                   int64
	Name, Handle, Description *string
	Mentionable               *bool
}

// apply gives the group after the change and the names of what differs.
func (c GroupChange) apply(g GroupRow) (GroupRow, []string) {
	changed := []string{}
	set := func(name string, to *string, field *string) {
		if to != nil && *to != *field {
			*field = *to
			changed = append(changed, name)
		}
	}
	set("name", c.Name, &g.Name)
	set("handle", c.Handle, &g.Handle)
	set("description", c.Description, &g.Description)
	if c.Mentionable != nil && *c.Mentionable != g.Mentionable {
		g.Mentionable = *c.Mentionable
		changed = append(changed, "mentionable")
	}
	return g, changed
}

// UpdateGroup changes what a group is called and whether it can be mentioned.
func (s *Service) UpdateGroup(ctx context.Context, id ids.ID, in GroupChange) (GroupRow, error) {
	var out GroupRow
	err := s.units.Do(ctx, func(ctx context.Context) error {
		before, err := s.groupFor(ctx, authorize.ActionGroupUpdate, id)
		if err != nil {
			return err
		}
		if before.Version != in.Version {
			return errGroupChanged()
		}
		after, changed := in.apply(before)
		if out = after; len(changed) == 0 {
			// Every change of rights has an event, so that memory learns of its version.
			return s.tellGroup(ctx, groupChangedPayload{Change: "updated", Group: groupPayloadOf(after)})
		}
		if err := s.checkGroup(after); err != nil {
			return err
		}
		if after.Handle != before.Handle {
			if before.Kind == groupEveryone {
				return errSystemGroup()
			}
			if err := s.takeHandle(ctx, after.Handle); err != nil {
				return err
			}
		}
		after.Version++
		out = after
		if err := s.store.UpdateGroup(ctx, after, s.now(ctx)); err != nil {
			return fmt.Errorf("change a group: %w", err)
		}
		return s.groupDone(ctx, authorize.ActionGroupUpdate, map[string]any{"changed": changed},
			groupChangedPayload{Change: "updated", Group: groupPayloadOf(after)})
	}, groupChange(authorize.ActionGroupUpdate))
	return out, err
}

// DeleteGroup removes a group with its memberships and grants.
func (s *Service) DeleteGroup(ctx context.Context, id ids.ID, version int64) error {
	return s.units.Do(ctx, func(ctx context.Context) error {
		g, err := s.groupFor(ctx, authorize.ActionGroupDelete, id)
		if err != nil {
			return err
		}
		if g.Kind == groupEveryone {
			return errSystemGroup()
		}
		if g.Version != version {
			return errGroupChanged()
		}
		if err := s.proveForGroup(ctx, authorize.ActionGroupDelete, g); err != nil {
			return err
		}
		members, err := s.store.GroupMembers(ctx, id)
		if err != nil {
			return fmt.Errorf("list the members of the group: %w", err)
		}
		if err := s.Affect(ctx, members...); err != nil {
			return err
		}
		grants, err := s.store.DeleteGroup(ctx, id)
		if err != nil {
			return fmt.Errorf("delete a group: %w", err)
		}
		for _, gr := range grants {
			payload := grantChangedPayload{Change: "revoked", Grant: grantPayloadOf(gr)}
			if err := s.tell(ctx, authorize.ActionGrantRevoke, gr, payload, grantDetails(gr)); err != nil {
				return err
			}
		}
		return s.groupDone(ctx, authorize.ActionGroupDelete, map[string]any{"members": len(members), "grants": len(grants)},
			groupChangedPayload{Change: "deleted", Group: groupPayloadOf(g)})
	}, groupChange(authorize.ActionGroupDelete))
}

// groupFor reads the group that an action is about and decides. Managers of the group count
// as those it belongs to, which matters for the actions that the catalogue opens to them;
// own names further principals of that kind.
func (s *Service) groupFor(ctx context.Context, action authorize.Action, id ids.ID, own ...ids.ID) (GroupRow, error) {
	g, err := s.store.Group(ctx, id)
	missing := errors.Is(err, ErrNoRow)
	if err != nil && !missing {
		return GroupRow{}, fmt.Errorf("read a group: %w", err)
	}
	r := authorize.Resource{Kind: authorize.ResourceGroup, ID: id, Related: own}
	caller := actor.From(ctx).ID
	role, err := s.store.RoleIn(ctx, id, caller, s.now(ctx))
	if err != nil {
		return GroupRow{}, fmt.Errorf("read the role in a group: %w", err)
	}
	if role == RoleManager {
		r.Related = append(r.Related, caller)
	}
	if err := s.Authorize(ctx, action, r); err != nil {
		return GroupRow{}, err
	}
	if missing {
		return GroupRow{}, errs.NotFound()
	}
	return g, nil
}

// proveForGroup asks for a fresh proof of the person where the group carries a strong grant.
func (s *Service) proveForGroup(ctx context.Context, action authorize.Action, g GroupRow) error {
	strong, err := s.store.GroupIsStrong(ctx, g.ID, s.now(ctx))
	if err != nil || !strong {
		return err
	}
	if err := s.requireStepUp(ctx); err != nil {
		s.recordDenial(ctx, action, authorize.Resource{Kind: authorize.ResourceGroup, ID: g.ID}, reasonStepUpMissing)
		return err
	}
	return nil
}

func errGroupChanged() error {
	return errs.New(errs.CodeVersionConflict, "Somebody has changed the group meanwhile. Read it again and repeat the change.")
}

func errSystemGroup() error {
	return errs.Conflict("system_group", "The group of all members is kept by the server.")
}
