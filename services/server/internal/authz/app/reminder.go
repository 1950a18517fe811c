// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	// reminderBatch bounds the grants, and the memberships, of one unit.
	reminderBatch = 50
	// reminderPeople bounds whom one unit reminds, because a unit appends a bounded number of
	// events. What does not fit waits for the next unit.
	reminderPeople = 400
)

// RemindExpiry is the periodic job that tells people of what will end, once per stage: those
// who hold it, and whoever gave it while she may still renew it.
func (s *Service) RemindExpiry(ctx context.Context) error {
	ctx = actor.With(ctx, actor.System())
	if len(s.cfg.ReminderBefore) == 0 {
		return nil
	}
	for {
		more := false
		err := s.units.Do(ctx, func(ctx context.Context) (err error) {
			more, err = s.remindBatch(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("remind of what will end: %w", err)
		}
		if !more {
			return nil
		}
	}
}

// reminders collects what each principal is told in one unit.
type reminders struct {
	items map[ids.ID][]expiringPayload
}

func (r *reminders) add(item expiringPayload, to ...ids.ID) {
	for _, id := range sortedUnique(to) {
		r.items[id] = append(r.items[id], item)
	}
}

// remindBatch reminds of some grants and memberships; more is false when none were due.
func (s *Service) remindBatch(ctx context.Context) (more bool, err error) {
	now := s.now(ctx)
	by := make([]time.Time, len(s.cfg.ReminderBefore))
	for i, d := range s.cfg.ReminderBefore {
		by[i] = now.Add(d)
	}
	told := &reminders{items: map[ids.ID][]expiringPayload{}}
	grants, err := s.store.LockExpiring(ctx, now, by, reminderBatch)
	if err != nil {
		return false, err
	}
	members, err := s.store.LockExpiringMembers(ctx, now, by, reminderBatch)
	if err != nil {
		return false, err
	}
	for _, g := range grants {
		if len(told.items) >= reminderPeople {
			break
		}
		if err := s.remindGrant(ctx, g, told); err != nil {
			return false, err
		}
	}
	groups, err := s.groupsOf(ctx, members)
	if err != nil {
		return false, err
	}
	for _, m := range members {
		if len(told.items) >= reminderPeople {
			break
		}
		if err := s.remindMember(ctx, groups[m.GroupID], m, told); err != nil {
			return false, err
		}
	}
	return len(grants)+len(members) > 0, s.tellExpiring(ctx, told)
}

func (s *Service) tellExpiring(ctx context.Context, told *reminders) error {
	for _, id := range slices.SortedFunc(maps.Keys(told.items), ids.ID.Compare) {
		if err := s.events.Append(ctx, eventlog.Event{
			Type: EventAccessExpiring, PrincipalID: id, Resource: eventlog.Resource{Type: "principal", ID: id},
			Payload: accessExpiringPayload{Items: told.items[id]},
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) remindGrant(ctx context.Context, g GrantRow, told *reminders) error {
	to := []ids.ID{g.SubjectID}
	if g.SubjectKind == SubjectGroup {
		var err error
		if to, err = s.remindedMembers(ctx, g.SubjectID); err != nil {
			return err
		}
	}
	renewer, err := s.mayRenew(ctx, g)
	if err != nil {
		return err
	}
	if renewer {
		to = append(to, g.CreatedBy)
	}
	target, level := targetPayloadOf(g.Target), g.Level.String()
	told.add(expiringPayload{GrantID: g.ID.Ptr(), Target: &target, Level: level, ExpiresAt: stamp(g.ExpiresAt)}, to...)
	return s.store.Reminded(ctx, g.ID, domain.ReminderStage(s.cfg.ReminderBefore, s.now(ctx), g.ExpiresAt))
}

// remindedMembers are the members of a group who are told of the end of its grant: all of
// them, in a group too large for one unit its managers.
func (s *Service) remindedMembers(ctx context.Context, group ids.ID) ([]ids.ID, error) {
	g, err := s.store.Group(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("read the group: %w", err)
	}
	if g.Kind == groupEveryone {
		people, err := s.everyone(ctx)
		if err != nil || len(people) > reminderPeople {
			return nil, err
		}
		return people, nil
	}
	list, err := s.store.Members(ctx, group, s.now(ctx), ids.ID{}, s.cfg.MaxGroupMembers)
	if err != nil {
		return nil, err
	}
	var out []ids.ID
	for _, m := range list {
		if len(list) <= reminderPeople || m.Role == RoleManager && len(out) < reminderPeople {
			out = append(out, m.PrincipalID)
		}
	}
	return out, nil
}

// mayRenew reports whether whoever gave the grant could still give it.
func (s *Service) mayRenew(ctx context.Context, g GrantRow) (bool, error) {
	if g.CreatedBy.IsZero() {
		return false, nil
	}
	e, err := s.entry(ctx, g.CreatedBy)
	if err != nil || !e.Active {
		return false, err
	}
	r := targetResource(g.Target)
	p := place{kind: domain.TargetInstance, found: true}
	if g.Target.Kind != domain.TargetInstance {
		if p, err = s.locateFresh(ctx, r.ChannelID, r.SpaceID); err != nil {
			return false, err
		}
	}
	return g.MayHandle(e.Owner, p.held(e)) == "", nil
}

func (s *Service) remindMember(ctx context.Context, g GroupRow, m MemberRow, told *reminders) error {
	to := []ids.ID{m.PrincipalID}
	if !m.AddedBy.IsZero() {
		e, err := s.entry(ctx, m.AddedBy)
		if err != nil {
			return err
		}
		role, err := s.store.RoleIn(ctx, g.ID, m.AddedBy, s.now(ctx))
		if err != nil {
			return fmt.Errorf("read the role in a group: %w", err)
		}
		if e.Active && (e.Owner || role == RoleManager) {
			to = append(to, m.AddedBy)
		}
	}
	told.add(expiringPayload{GroupID: g.ID.Ptr(), PrincipalID: m.PrincipalID.Ptr(), ExpiresAt: stamp(m.ExpiresAt)}, to...)
	return s.store.MemberReminded(ctx, m.ID, domain.ReminderStage(s.cfg.ReminderBefore, s.now(ctx), m.ExpiresAt))
}
