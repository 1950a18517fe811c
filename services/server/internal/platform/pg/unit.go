// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// rightsRetryMax bounds the repetitions of a unit that decided on stale rights.
const rightsRetryMax = 3

var errUnsealed = errors.New("pg: a unit of work was opened before the registry was sealed")

// UnitConfig is what units depend on beside the database.
type UnitConfig struct {
	// Maintenance reports whether writes are refused; nil means never.
	Maintenance func() bool
	// MaintenanceRetryAfter goes with the refusal.
	MaintenanceRetryAfter time.Duration
	// SharedDatabase says that other server processes write to the same database, so a
	// View waits for durability even when no unit of this process is between commit and
	// flush.
	SharedDatabase bool
}

// Units implements txn.UnitOfWork on a DB.
type Units struct {
	db       *DB
	registry *txn.Registry
	clock    clock.Clock
	cfg      UnitConfig
}

var _ txn.UnitOfWork = (*Units)(nil)

// NewUnits makes the units of db. The registry is sealed before the first unit runs.
func NewUnits(db *DB, registry *txn.Registry, clk clock.Clock, cfg UnitConfig) *Units {
	return &Units{db: db, registry: registry, clock: clk, cfg: cfg}
}

// Do implements txn.UnitOfWork.
func (s *Units) Do(ctx context.Context, fn func(ctx context.Context) error, opts ...txn.Option) error {
	o := collect(opts)
	if outer, err := unitOf(ctx); err != nil {
		return err
	} else if outer != nil {
		return outer.join(ctx, fn, o)
	}
	if !s.registry.Sealed() {
		return errUnsealed
	}
	exempt := o.WriteInMaintenance || txn.IsExemptFromMaintenance(ctx)
	if s.cfg.Maintenance != nil && !exempt && s.cfg.Maintenance() {
		return errs.New(errs.CodeMaintenance, "The instance is in maintenance: reading works, writing does not.").
			WithRetryAfter(s.cfg.MaintenanceRetryAfter)
	}
	begin := time.Now()
	err := s.repeat(ctx, func() error { return s.runOnce(ctx, fn, o) })
	s.db.cfg.Metrics.UnitDone(ctx, outcomeOf(err), time.Since(begin))
	return err
}

// View implements txn.UnitOfWork.
func (s *Units) View(ctx context.Context, fn func(ctx context.Context) error, opts ...txn.Option) error {
	if outer, err := unitOf(ctx); err != nil {
		return err
	} else if outer != nil {
		return fn(ctx)
	}
	if !s.registry.Sealed() {
		return errUnsealed
	}
	u := s.newUnit(collect(opts), true)
	defer u.rollback(ctx)
	ctx = txn.WithUnit(ctx, u)
	defer u.report(ctx)
	u.phase = txn.PhaseWork
	if err := u.outcome(fn(ctx)); err != nil {
		return translate(err)
	}
	unflushed := s.db.mayShowUnflushed()
	if err := u.commit(ctx); err != nil {
		return translate(err)
	}
	if u.generation == 0 || !unflushed && !s.cfg.SharedDatabase {
		return nil
	}
	return s.db.await(ctx, u.generation)
}

// repeat runs a unit again after a deadlock, a lock timeout or stale rights. The unit has
// been rolled back and had no effect outside its transaction, so this is safe.
func (s *Units) repeat(ctx context.Context, run func() error) error {
	for locks, rights := 0, 0; ; {
		err := run()
		switch retryOf(err) {
		case retryLock:
			if locks++; locks > s.db.cfg.TxRetryMax {
				return unavailable(CauseRetries, err)
			}
			yieldLocks(ctx, locks)
		case retryRights:
			if rights++; rights > rightsRetryMax {
				return unavailable(CauseRetries, err)
			}
		default:
			return translate(err)
		}
		s.db.cfg.Metrics.UnitRepeated(ctx, retryReason(err))
		if ctx.Err() != nil {
			return unavailable(CauseDeadline, errors.Join(ctx.Err(), err))
		}
	}
}

// yieldLocks lets the other side of a deadlock take the lock it waits for: a victim that
// comes back at once takes it first and meets the same deadlock again.
func yieldLocks(ctx context.Context, attempt int) {
	pause := time.NewTimer(time.Duration(attempt) * (5*time.Millisecond + rand.N(15*time.Millisecond)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
}

func (s *Units) runOnce(ctx context.Context, fn func(ctx context.Context) error, o txn.Options) error {
	u := s.newUnit(o, false)
	defer u.rollback(ctx)
	ctx = txn.WithUnit(ctx, u)
	defer u.report(ctx)
	if err := u.outcome(u.phases(ctx, fn, o)); err != nil {
		return err
	}
	s.db.unflushed.Add(1)
	defer s.db.unflushed.Add(-1)
	err := u.commit(ctx)
	if committed := s.registry.Hooks().Committed; committed != nil && (err == nil || CauseOf(err) == CauseOutcomeUnknown) {
		committed(ctx)
	}
	if err != nil {
		if CauseOf(err) == CauseOutcomeUnknown {
			s.db.doubts.Add(1)
		}
		return err
	}
	u.phase = txn.PhaseDone
	// Others see the commit even when the wait for its flush fails, so they are told either way.
	defer txn.Committed(u)
	if u.generation == 0 {
		return nil // No statement ran, so there is nothing to wait for.
	}
	return s.db.await(ctx, u.generation)
}

// phases runs everything between begin and commit, in the order that fixes the order of
// the counters' locks.
func (u *unit) phases(ctx context.Context, fn func(ctx context.Context) error, o txn.Options) error {
	if err := u.work(ctx, fn, o.Rights); err != nil {
		return err
	}
	hooks := u.registry.Hooks()
	u.phase = txn.PhaseLog
	if hooks.Log != nil {
		if err := hooks.Log(ctx); err != nil {
			return fmt.Errorf("phase log: %w", err)
		}
	}
	u.phase = txn.PhaseAudit
	if hooks.Audit != nil {
		if err := hooks.Audit(ctx); err != nil {
			return fmt.Errorf("phase audit: %w", err)
		}
	}
	return nil
}

// work runs fn, between the two hooks of rights when the unit declares a change of them.
func (u *unit) work(ctx context.Context, fn func(ctx context.Context) error, rights *txn.RightsChange) error {
	hooks := u.registry.Hooks()
	if rights != nil {
		u.rightsDeclared = true
		u.phase = txn.PhaseBegin
		if hooks.RightsBegin != nil {
			if err := hooks.RightsBegin(ctx, *rights); err != nil {
				return fmt.Errorf("phase begin: %w", err)
			}
		}
	}
	u.phase = txn.PhaseWork
	if err := fn(ctx); err != nil {
		return err
	}
	if rights != nil && hooks.RightsCheck != nil {
		u.phase = txn.PhaseRights
		if err := hooks.RightsCheck(ctx, *rights); err != nil {
			return fmt.Errorf("phase rights: %w", err)
		}
	}
	return nil
}

// join runs a nested Do in the transaction of the outer one. An error of the nested part
// fails the whole unit: half of it may have been written.
func (u *unit) join(ctx context.Context, fn func(ctx context.Context) error, o txn.Options) error {
	switch {
	case u.readOnly:
		return errors.New("pg: a unit that writes cannot join a View")
	case u.phase != txn.PhaseWork && u.phase != txn.PhaseRights && u.phase != txn.PhaseBegin:
		return fmt.Errorf("pg: a unit of work cannot be joined in phase %d", u.phase)
	}
	var err error
	switch {
	case o.Rights == nil:
		err = fn(ctx)
	case !u.opts.LateRights:
		err = errors.New("pg: only the outermost unit may declare a change of rights")
	case u.rightsDeclared || u.phase != txn.PhaseWork:
		err = errors.New("pg: the unit has declared a change of rights already")
	default:
		err = u.work(ctx, fn, o.Rights)
		u.phase = txn.PhaseWork
	}
	if err != nil {
		u.fail(err)
	}
	return err
}

func collect(opts []txn.Option) txn.Options {
	var o txn.Options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
