// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ExportHeader is how an export begins.
type ExportHeader struct {
	InstanceID ids.ID
	// FromSeq and ToSeq are the rows of the export, FirstSeq and LastSeq those of the record.
	FromSeq, ToSeq, FirstSeq, LastSeq int64
	ExportedAt                        time.Time
}

// ExportKey is a public key of checkpoints.
type ExportKey struct {
	KID string
	Key crypto.PublicKey
}

// ExportWriter writes an export in its form. Its methods are called in the order in which they
// stand here; rows and checkpoints alternate by their numbers.
type ExportWriter interface {
	Header(h ExportHeader) error
	Key(k ExportKey) error
	Row(r domain.Row, canonical []byte) error
	Checkpoint(c domain.Checkpoint) error
	// End counts what was written; an export without it was cut.
	End() error
}

// Export is a range of the record that a caller may have.
type Export struct {
	s           *Service
	header      ExportHeader
	keys        []ExportKey
	checkpoints []domain.Checkpoint
}

// NewExport decides about an export and records it; zero stands for the first and the last row.
// Everything that can be refused is refused here, before the first byte.
func (s *Service) NewExport(ctx context.Context, from, to int64) (*Export, error) {
	if err := s.authz.Authorize(ctx, authorize.ActionAuditRead, authorize.Instance()); err != nil {
		return nil, err
	}
	info, err := s.instance.Info(ctx)
	if err != nil {
		return nil, err
	}
	at := s.clock.Now() // Before the end is known: a checkpoint that is newer may lie beyond it.
	first, last, err := s.store.Bounds(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the bounds of the record: %w", err)
	}
	if from < first {
		from = first
	}
	if to == 0 || to > last {
		to = last
	}
	if from > to {
		return nil, errs.Invalid("query:from_seq", "out_of_range", "There is no row in this range.")
	}
	e := &Export{s: s, header: ExportHeader{InstanceID: info.ID, FromSeq: from, ToSeq: to, FirstSeq: first, LastSeq: last, ExportedAt: at}}
	keys, err := s.public.VerificationKeys(ctx, instance.PurposeCheckpoint)
	if err != nil {
		return nil, err
	}
	for _, kid := range slices.Sorted(maps.Keys(keys)) {
		e.keys = append(e.keys, ExportKey{KID: kid, Key: keys[kid].Key})
	}
	if e.checkpoints, err = s.store.Checkpoints(ctx, from, to); err != nil {
		return nil, fmt.Errorf("read checkpoints: %w", err)
	}
	return e, s.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionAuditRead), ResourceKind: string(authorize.ResourceInstance),
		Details: map[string]any{"export": true, "from_seq": from, "to_seq": to},
	})
}

// errTrimmed means that old rows were removed while they were being exported.
var errTrimmed = errors.New("old rows were removed meanwhile; export again")

// Write writes the export page by page. A fault of the record is part of it; that rows were
// removed meanwhile is an error.
func (e *Export) Write(ctx context.Context, w ExportWriter) error {
	if err := w.Header(e.header); err != nil {
		return err
	}
	for _, k := range e.keys {
		if err := w.Key(k); err != nil {
			return err
		}
	}
	next := e.header.FromSeq
	err := e.s.walk(ctx, walk{
		from: e.header.FromSeq, to: e.header.ToSeq, checkpoints: e.checkpoints, checkpoint: w.Checkpoint,
		row: func(r domain.Row) error {
			if r.Seq != next {
				if err := e.untrimmed(ctx, next); err != nil {
					return err
				}
			}
			next = r.Seq + 1
			body, err := r.Canonical(e.s.canon)
			if err != nil {
				return err
			}
			return w.Row(r, body)
		},
		missing: func(int64) {},
	})
	if err != nil {
		return err
	}
	return w.End()
}

func (e *Export) untrimmed(ctx context.Context, next int64) error {
	first, _, err := e.s.store.Bounds(ctx)
	if err == nil && first > next {
		return errTrimmed
	}
	return err
}
