// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// rightsChange is what a unit that changes rights remembers between its two hooks.
type rightsChange struct {
	action  string
	version int64
	// before are the entries of the affected as they were before the first write.
	before    map[ids.ID]*domain.Entry
	structure *domain.Structure
	// i1 is what the rule for personal agents saw before, and lowered the grants that a remedy
	// has replaced.
	i1      *i1State
	lowered map[ids.ID]GrantRow
	// places is set when the unit may change places, so they must be read again.
	places bool
}

// RightsBegin is the hook before a change of rights: it raises the version, whose lock makes
// changes of rights serial, and remembers what the affected hold.
func (s *Service) RightsBegin(ctx context.Context, c txn.RightsChange) error {
	state := stateOf(ctx)
	if state == nil || state.changing != nil {
		return errors.New("authz: a change of rights outside a unit or within another")
	}
	state.known = false
	got := func(v int64) { state.version, state.known = v, true }
	if err := s.counters.Raise(ctx, instance.CounterPermissionVersion, 1, got); err != nil {
		return fmt.Errorf("raise the version of all rights: %w", err)
	}
	change := &rightsChange{action: c.Action, before: map[ids.ID]*domain.Entry{}, places: len(c.Targets) > 0 || c.Everyone}
	state.changing = change
	var err error
	if change.structure, err = s.readStructure(ctx); err != nil {
		return err
	}
	if !state.known {
		v, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
		if err != nil {
			return fmt.Errorf("read the version of all rights: %w", err)
		}
		state.version, state.known = v, true
	}
	change.version = state.version
	authz.RecordDecision(ctx, state.version)
	if change.i1, err = s.readI1(ctx, change.structure); err != nil {
		return err
	}
	affected, err := s.affectedBy(ctx, c, change.structure)
	if err != nil {
		return err
	}
	return s.Affect(ctx, affected...)
}

// affectedBy lists the principals that a declared change can concern.
func (s *Service) affectedBy(ctx context.Context, c txn.RightsChange, st *domain.Structure) ([]ids.ID, error) {
	out := slices.Clone(c.Principals)
	if c.Everyone {
		all, err := s.store.AllSubjects(ctx)
		if err != nil {
			return nil, err
		}
		people, err := s.principals.ActivePeople(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range people {
			all = append(all, p.ID)
		}
		return append(out, all...), nil
	}
	for _, t := range c.Targets {
		p := place{kind: domain.TargetKind(t.Kind), found: true, space: domain.Space{ID: t.ID}}
		if p.kind == domain.TargetChannel {
			if p.channel, p.found = st.Channel(t.ID); !p.found {
				continue // It is about to be made; who gets rights on it is reported then.
			}
		}
		list, err := s.subjectsAt(ctx, p)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
		if p.kind != domain.TargetSpace {
			continue
		}
		if list, err = s.channelSubjects(ctx, st, t.ID); err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// channelSubjects are who holds something in the channels of a space by themselves: who has a
// grant there, and the operators.
func (s *Service) channelSubjects(ctx context.Context, st *domain.Structure, space ids.ID) ([]ids.ID, error) {
	var out []ids.ID
	var channels []domain.Target
	for _, id := range st.Channels() {
		c, _ := st.Channel(id)
		if c.SpaceID != space {
			continue
		}
		channels = append(channels, domain.Target{Kind: domain.TargetChannel, ID: id})
		if !c.Operator.IsZero() {
			out = append(out, c.Operator)
		}
	}
	subjects, err := s.subjectsOf(ctx, channels)
	return append(out, subjects...), err
}

// Affect implements authz.Affected.
func (s *Service) Affect(ctx context.Context, principals ...ids.ID) error {
	change, err := changing(ctx)
	if err != nil {
		return err
	}
	var fresh []ids.ID
	for _, id := range principals {
		if _, known := change.before[id]; !known && !id.IsZero() {
			fresh = append(fresh, id)
		}
	}
	if fresh = sortedUnique(fresh); len(fresh) == 0 {
		return nil
	}
	at := s.now(ctx)
	if ends(change.action) {
		at = time.Time{} // What has ended counts as held before, or nobody would hear of its end.
	}
	entries, err := s.readAt(ctx, fresh, at)
	if err != nil {
		return fmt.Errorf("read the rights of the affected: %w", err)
	}
	maps.Copy(change.before, entries)
	return nil
}

// ends reports whether the action removes what has ended by itself.
func ends(action string) bool {
	return action == string(authorize.ActionGrantExpire) || action == string(authorize.ActionGroupMemberExpire)
}

func changing(ctx context.Context) (*rightsChange, error) {
	if state := stateOf(ctx); state != nil && state.changing != nil {
		return state.changing, nil
	}
	return nil, errors.New("authz: the unit has not declared a change of rights")
}

// RightsCheck is the hook after the work of a change of rights: it keeps personal agents to
// their holders, and tells every affected principal what has become different, in the log and
// to the modules that end what is no longer allowed.
func (s *Service) RightsCheck(ctx context.Context, _ txn.RightsChange) error {
	change, err := changing(ctx)
	if err != nil {
		return err
	}
	after := change.structure
	if change.places {
		if after, err = s.readStructure(ctx); err != nil {
			return err
		}
	}
	if after, err = s.keepPersonal(ctx, change, after); err != nil {
		return err
	}
	affected := slices.SortedFunc(maps.Keys(change.before), ids.ID.Compare)
	entries, err := s.read(ctx, affected)
	if err != nil {
		return err
	}
	published := authorize.AccessChanged{Action: authorize.Action(change.action), PermissionVersion: change.version}
	for _, id := range affected {
		before, now := change.before[id], entries[id]
		diff := domain.Diff(before, now, change.structure, after)
		if diff.Empty() && before.ValidUntil.Equal(now.ValidUntil) {
			continue
		}
		if err := s.events.Append(ctx, eventlog.Event{
			Type: EventAccessChanged, PrincipalID: id, Resource: eventlog.Resource{Type: "principal", ID: id},
			Payload: accessChangedOf(change.version, change.action, diff, before, now),
		}); err != nil {
			return err
		}
		if diff.Flags || diff.Size() > 0 {
			published.Principals = append(published.Principals, principalChange(id, diff))
		}
	}
	if len(published.Principals) == 0 {
		return nil
	}
	return txn.Publish(ctx, published)
}

func principalChange(id ids.ID, d domain.Change) authorize.PrincipalChange {
	return authorize.PrincipalChange{
		PrincipalID: id, Gained: targetAccess(d.Gained), Changed: targetAccess(d.Changed), Lost: targetAccess(d.Lost),
	}
}

func targetAccess(list []domain.TargetHeld) []authorize.TargetAccess {
	var out []authorize.TargetAccess
	for _, t := range list {
		out = append(out, authorize.TargetAccess{
			Kind: string(t.Target.Kind), ID: t.Target.ID, Level: levelTo(t.Held.Level), Capabilities: capsTo(t.Held.Caps),
		})
	}
	return out
}
