// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// loadAttempts bounds the repetitions of a load that a change overtakes.
const loadAttempts = 4

// unitState is what authz keeps in a unit of work or in a View.
type unitState struct {
	version      int64
	known        bool
	credentialOK bool
	// changing is set while the unit changes rights: rows are then its own, unfinished ones
	// and must not reach the memory of the process.
	changing *rightsChange
}

type unitStateKey struct{}

// stateOf is the state of the running unit, nil outside.
func stateOf(ctx context.Context) *unitState {
	u := txn.Current(ctx)
	if u == nil {
		return nil
	}
	if s, ok := u.Value(unitStateKey{}).(*unitState); ok {
		return s
	}
	s := &unitState{}
	u.SetValue(unitStateKey{}, s)
	return s
}

func inWriteUnit(ctx context.Context) bool {
	u := txn.Current(ctx)
	return u != nil && !u.ReadOnly()
}

func (s *Service) now(ctx context.Context) time.Time {
	if u := txn.Current(ctx); u != nil {
		return u.Now()
	}
	return s.clock.Now()
}

func (s *Service) generation() uint64 {
	if s.barrier == nil {
		return 0
	}
	return s.barrier.Generation()
}

// version is the version of all rights that the unit or the request decides with. It is read
// once; a unit that writes notes it for the log.
func (s *Service) version(ctx context.Context) (int64, error) {
	state := stateOf(ctx)
	if state == nil {
		return s.requestVersion(ctx)
	}
	if !state.known {
		v, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
		if err != nil {
			return 0, fmt.Errorf("read the version of all rights: %w", err)
		}
		state.version, state.known = v, true
	}
	authz.RecordDecision(ctx, state.version)
	return state.version, nil
}

// queueVersion lets the version travel with the next read of a unit that writes.
func (s *Service) queueVersion(ctx context.Context) error {
	if !inWriteUnit(ctx) {
		return nil
	}
	state := stateOf(ctx)
	if state.known {
		return nil
	}
	return s.versions.Queue(ctx, instance.CounterPermissionVersion, func(v int64) { state.version, state.known = v, true })
}

// entry gives the rights of a principal for the version of the unit or request.
func (s *Service) entry(ctx context.Context, principal ids.ID) (*domain.Entry, error) {
	v, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	if state := stateOf(ctx); state != nil && state.changing != nil {
		list, err := s.read(ctx, []ids.ID{principal})
		if err != nil {
			return nil, err
		}
		return list[principal], nil
	}
	if e := s.cache.get(principal, v, s.generation(), s.now(ctx)); e != nil {
		return e, nil
	}
	return s.load(ctx, principal, v, false)
}

// load reads the entry of a principal, installs it and gives it. With pin the principal
// stays in memory until it is released.
func (s *Service) load(ctx context.Context, principal ids.ID, version int64, pin bool) (*domain.Entry, error) {
	s.cache.begin(principal, pin)
	for range loadAttempts {
		generation := s.generation()
		list, err := s.read(ctx, []ids.ID{principal})
		if err != nil {
			return nil, err
		}
		e := list[principal]
		if inWriteUnit(ctx) && e.Version != version {
			return nil, fmt.Errorf("load rights: %w", txn.ErrRetry)
		}
		if s.cache.put(e, generation) {
			return e, nil
		}
		if inWriteUnit(ctx) {
			return nil, fmt.Errorf("load rights: %w", txn.ErrRetry)
		}
	}
	return nil, errors.New("load rights: they change faster than they can be read")
}

// read gives the entries of principals as they stand: in a unit those of its transaction,
// outside those of one snapshot. A principal that is unknown holds nothing.
func (s *Service) read(ctx context.Context, principals []ids.ID) (map[ids.ID]*domain.Entry, error) {
	return s.readAt(ctx, principals, s.now(ctx))
}

// readAt is read for grants that count at the moment.
func (s *Service) readAt(ctx context.Context, principals []ids.ID, at time.Time) (map[ids.ID]*domain.Entry, error) {
	var out map[ids.ID]*domain.Entry
	err := s.units.View(ctx, func(ctx context.Context) error {
		people, err := s.principals.Principals(ctx, principals)
		if err != nil {
			return fmt.Errorf("read principals: %w", err)
		}
		rows, err := s.store.Held(ctx, principals)
		if err != nil {
			return fmt.Errorf("read grants: %w", err)
		}
		if err := s.stillAt(ctx, rows.Version); err != nil {
			return err
		}
		out = compile(principals, people, rows, at)
		return nil
	})
	return out, err
}

// stillAt repeats a unit whose statements saw two versions. A View has one snapshot, and a
// unit that changes rights holds the lock of the version.
func (s *Service) stillAt(ctx context.Context, version int64) error {
	state := stateOf(ctx)
	if !inWriteUnit(ctx) || state.changing != nil {
		return nil
	}
	v, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
	if err != nil {
		return fmt.Errorf("read the version of all rights: %w", err)
	}
	if v != version || state.known && v != state.version {
		return fmt.Errorf("read rights: %w", txn.ErrRetry)
	}
	return nil
}

func compile(principals []ids.ID, people []authz.Principal, rows HeldRows, now time.Time) map[ids.ID]*domain.Entry {
	known := make(map[ids.ID]domain.Principal, len(people))
	for _, p := range people {
		known[p.ID] = domain.Principal{ID: p.ID, Kind: domain.Kind(p.Kind), Active: p.Active, Owner: p.Owner, Guest: p.Guest}
	}
	out := make(map[ids.ID]*domain.Entry, len(principals))
	for _, id := range principals {
		p, ok := known[id]
		if !ok {
			p = domain.Principal{ID: id}
		}
		grants := rows.ByPrincipal[id]
		if p.InEveryone() {
			grants = append(grants[:len(grants):len(grants)], rows.Everyone...)
		}
		out[id] = domain.Compile(p, rows.Version, grants, now, rows.Groups[id]...)
	}
	return out
}

// structureFor gives the places for decisions of the version. Memory serves while the log has
// brought this process up to it; otherwise everything is read, once per version.
func (s *Service) structureFor(ctx context.Context, version int64) (*domain.Structure, error) {
	if state := stateOf(ctx); state != nil && state.changing != nil {
		return s.readStructure(ctx)
	}
	generation := s.generation()
	if st := s.cache.structureAt(version, generation); st != nil {
		return st, nil
	}
	var st *domain.Structure
	err := s.units.View(ctx, func(ctx context.Context) error {
		v, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
		if err != nil {
			return fmt.Errorf("read the version of all rights: %w", err)
		}
		if st, err = s.readStructure(ctx); err == nil && !inWriteUnit(ctx) {
			s.cache.putFresh(st, v, generation)
		}
		return err
	})
	return st, err
}

func (s *Service) readStructure(ctx context.Context) (*domain.Structure, error) {
	spaces, err := s.places.Spaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("read spaces: %w", err)
	}
	channels, err := s.places.Channels(ctx)
	if err != nil {
		return nil, fmt.Errorf("read channels: %w", err)
	}
	ds := make([]domain.Space, 0, len(spaces))
	for _, sp := range spaces {
		ds = append(ds, toSpace(sp))
	}
	dc := make([]domain.Channel, 0, len(channels))
	for _, c := range channels {
		dc = append(dc, toChannel(c))
	}
	return domain.NewStructure(ds, dc), nil
}

// LoadStructure reads all places into memory. Until it has run, Admit answers Unknown. It
// may run at any time after the log tail has fixed where it begins: changes that are
// observed meanwhile are repeated on what was read.
func (s *Service) LoadStructure(ctx context.Context) error {
	s.cache.beginLoad()
	var st *domain.Structure
	err := s.units.View(ctx, func(ctx context.Context) (err error) {
		st, err = s.readStructure(ctx)
		return err
	})
	s.cache.install(st)
	return err
}

func toSpace(sp authz.SpaceState) domain.Space {
	return domain.Space{ID: sp.ID, Archived: sp.Archived}
}

func toChannel(c authz.ChannelState) domain.Channel {
	return domain.Channel{
		ID: c.ID, SpaceID: c.SpaceID, Direct: c.Direct, Inherits: c.Inherits,
		Archived: c.Archived, ReadOnly: c.ReadOnly, Operator: c.OperatorID, Participants: c.Participants,
	}
}
