// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Maintenance gives units of the one role that may remove rows of the record.
type Maintenance interface {
	// Open connects; close ends the connection. It is used only when something is due.
	Open(ctx context.Context) (units txn.UnitOfWork, close func(), err error)
}

// TrimPoint is how far a removal may go: the newest checkpoint that is old enough and lies
// wherever it has to lie. What it covers is proven for as long as it is kept.
type TrimPoint struct {
	CheckpointID ids.ID
	Seq          int64
}

// Removal is a run of rows that are old enough, from the beginning of the record on.
type Removal struct {
	Through int64
	Hash    domain.Hash
	Count   int64
}

// TrimStore is what the removal needs of the tables. The writing methods work in units of
// Maintenance alone.
type TrimStore interface {
	// TrimPoint gives the newest checkpoint made before the cutoff that does not wait for the
	// sink, when there are rows that it covers and that are old enough.
	TrimPoint(ctx context.Context, cutoff time.Time) (p TrimPoint, ok bool, err error)
	// Remove removes rows from the beginning while they are older than the cutoff, up to a
	// number and at most batch of them; ok is false when there is none.
	Remove(ctx context.Context, cutoff time.Time, upTo int64, batch int) (r Removal, ok bool, err error)
	// ExpiredIPKeys counts keys whose time ended before, DestroyIPKeys destroys them.
	ExpiredIPKeys(ctx context.Context, before time.Time) (int, error)
	DestroyIPKeys(ctx context.Context, before, at time.Time) error
}

// Trim is the periodic job: it removes rows that are older than retention.audit and destroys
// keys of pseudonyms whose time is over. The record goes on from an anchor.
type Trim struct {
	s     *Service
	store TrimStore
	maint Maintenance
}

// Trim gives the job.
func (s *Service) Trim(store TrimStore, m Maintenance) *Trim {
	return &Trim{s: s, store: store, maint: m}
}

// trimRuns bounds the batches of one run; the rest waits for the next.
const trimRuns = 200

// Run removes what is due. Nothing is connected while nothing is.
func (t *Trim) Run(ctx context.Context) error {
	now := t.s.clock.Now()
	cutoff, keysBefore := now.Add(-t.s.cfg.Retention), now.Add(-t.s.cfg.IPKeyTTL)
	point, rows, err := t.store.TrimPoint(ctx, cutoff)
	if err != nil {
		return fmt.Errorf("look for old audit rows: %w", err)
	}
	rows = rows && t.s.cfg.Retention > 0
	keys, err := t.store.ExpiredIPKeys(ctx, keysBefore)
	if err != nil {
		return fmt.Errorf("look for old keys of pseudonyms: %w", err)
	}
	if !rows && keys == 0 {
		return nil
	}
	units, disconnect, err := t.maint.Open(ctx)
	if err != nil {
		return fmt.Errorf("connect as the role that removes audit rows: %w", err)
	}
	defer disconnect()
	if keys > 0 {
		if err := units.Do(ctx, func(ctx context.Context) error { return t.store.DestroyIPKeys(ctx, keysBefore, now) }); err != nil {
			return fmt.Errorf("destroy keys of pseudonyms: %w", err)
		}
	}
	for range trimRuns {
		if !rows {
			return nil
		}
		if rows, err = t.batch(ctx, units, cutoff, point); err != nil {
			return err
		}
	}
	return nil
}

// batch removes some rows and leaves the anchor in the same transaction: a beginning that is
// missing without one is a break.
func (t *Trim) batch(ctx context.Context, units txn.UnitOfWork, cutoff time.Time, p TrimPoint) (more bool, err error) {
	err = units.Do(ctx, func(ctx context.Context) error {
		r, ok, err := t.store.Remove(ctx, cutoff, p.Seq, t.s.cfg.TrimBatch)
		if err != nil {
			return fmt.Errorf("remove audit rows: %w", err)
		}
		if more = ok && r.Through < p.Seq; !ok {
			return nil
		}
		anchor := domain.Anchor{ThroughSeq: r.Through, ThroughHash: r.Hash}
		return t.s.Allowed(ctx, auditing.Entry{Action: domain.ActionTrim, Details: anchor.Details(p.CheckpointID, r.Count)})
	})
	return more, err
}
