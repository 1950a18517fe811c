// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto"
	"fmt"
	"maps"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// verifyPage is how many rows are read at a time.
const verifyPage = 1000

// Verify implements audit.Log.
func (s *Service) Verify(ctx context.Context, from, to int64) (audit.Result, error) {
	first, last, err := s.store.Bounds(ctx)
	if err != nil {
		return audit.Result{}, fmt.Errorf("read the bounds of the record: %w", err)
	}
	if from == 0 {
		from = first
	}
	if to == 0 || to > last {
		to = last
	}
	if to-from >= s.cfg.VerifyMaxRows {
		return audit.Result{}, errs.Invalid("/to_seq", "range_too_large", fmt.Sprintf("Verify at most %d rows at a time.", s.cfg.VerifyMaxRows))
	}
	c := newCollector(from, to)
	if from >= 1 && from <= to {
		if err := s.verify(ctx, c, domain.Range{From: from, First: first}, to); err != nil {
			return audit.Result{}, err
		}
	}
	if err := s.warn(ctx, c, last); err != nil {
		return audit.Result{}, err
	}
	return c.result(), nil
}

// collector gathers what a verification finds.
type collector struct {
	r        audit.Result
	warnings map[string]bool
	// covered is the last row of the range that a checkpoint covers.
	covered int64
}

func newCollector(from, to int64) *collector {
	return &collector{r: audit.Result{FirstSeq: from, LastSeq: to}, warnings: map[string]bool{}}
}

func (c *collector) broken(seq int64, kind string, err error) {
	if len(c.r.Breaks) >= audit.MaxBreaks {
		return
	}
	b := audit.Break{Seq: seq, Kind: kind}
	if err != nil {
		b.Detail = err.Error()
	}
	c.r.Breaks = append(c.r.Breaks, b)
}

// unknown notes a checkpoint of an unknown key.
func (c *collector) unknown(seq int64, kid string) {
	c.warnings[audit.WarnUnknownKey] = true
	c.r.UnknownSeq = max(c.r.UnknownSeq, seq)
	c.r.NoteUnknownKey(seq, kid)
}

func (c *collector) add(s domain.Summary) {
	c.r.Checked, c.r.Checkpoints, c.covered, c.r.SignedSeq = s.Rows, s.Checkpoints, s.Covered, s.Signed
}

func (c *collector) result() audit.Result {
	c.r.OK = len(c.r.Breaks) == 0
	c.r.Warnings = slices.Sorted(maps.Keys(c.warnings))
	return c.r
}

// verify walks the range in pages, each checkpoint behind the row it covers.
func (s *Service) verify(ctx context.Context, c *collector, r domain.Range, to int64) error {
	info, err := s.instance.Info(ctx)
	if err != nil {
		return err
	}
	keys, err := s.public.VerificationKeys(ctx, instance.PurposeCheckpoint)
	if err != nil {
		return err
	}
	checkpoints, err := s.store.Checkpoints(ctx, r.From, to)
	if err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	r.InstanceID, r.Broken, r.Keys = info.ID, c.broken, map[string]crypto.PublicKey{}
	for kid, k := range keys {
		r.Keys[kid] = k.Key
	}
	v := domain.NewVerifier(r)
	if err := s.anchored(ctx, v, r); err != nil {
		return err
	}
	err = s.walk(ctx, walk{
		from: r.From, to: to, checkpoints: checkpoints,
		row: func(row domain.Row) error {
			link, err := row.Link(s.canon)
			if err != nil {
				return err
			}
			v.Row(link)
			return nil
		},
		checkpoint: func(p domain.Checkpoint) error {
			if k, known := keys[p.KID]; known && !k.Published {
				c.warnings[audit.WarnKey] = true
			}
			v.Checkpoint(p)
			return nil
		},
		missing: func(seq int64) { c.broken(seq, audit.BreakGap, nil) },
	})
	c.add(v.Close())
	return err
}

// anchored shows the newest anchor, which stands anywhere behind a beginning that was cut
// off. Its own row is verified with the range it lies in.
func (s *Service) anchored(ctx context.Context, v *domain.Verifier, r domain.Range) error {
	if r.From == 1 || r.From != r.First {
		return nil
	}
	row, found, err := s.store.LastTrim(ctx)
	if err != nil {
		return fmt.Errorf("read the anchor: %w", err)
	}
	if anchor, ok := domain.AnchorOf(row.Action, row.Actor.Kind, row.Details); found && ok {
		v.Anchor(anchor)
	}
	return nil
}

// walk is a way through a range: rows ascending, each checkpoint behind the row it covers.
type walk struct {
	from, to    int64
	checkpoints []domain.Checkpoint
	row         func(domain.Row) error
	checkpoint  func(domain.Checkpoint) error
	// missing is told of the first number behind the last row, when the range goes on.
	missing func(seq int64)
}

func (s *Service) walk(ctx context.Context, w walk) error {
	for next := w.from; next <= w.to; {
		page, err := s.store.Rows(ctx, next, int(min(verifyPage, w.to-next+1)))
		if err != nil {
			return fmt.Errorf("read audit rows: %w", err)
		}
		if len(page) == 0 || page[0].Seq > w.to {
			w.missing(next)
			break
		}
		for _, r := range page {
			if r.Seq > w.to {
				break
			}
			if err := w.upTo(r.Seq - 1); err != nil {
				return err
			}
			if err := w.row(r); err != nil {
				return err
			}
			next = r.Seq + 1
		}
	}
	return w.upTo(w.to)
}

// upTo shows the checkpoints over rows that have passed.
func (w *walk) upTo(seq int64) error {
	for len(w.checkpoints) > 0 && w.checkpoints[0].Seq <= seq {
		if err := w.checkpoint(w.checkpoints[0]); err != nil {
			return err
		}
		w.checkpoints = w.checkpoints[1:]
	}
	return nil
}

// warn adds what is not broken and yet proves less than it could.
func (s *Service) warn(ctx context.Context, c *collector, last int64) error {
	if s.sink == nil {
		c.warnings[audit.WarnNoSink] = true
	}
	pending, err := s.store.Pending(ctx, 1)
	if err != nil {
		return fmt.Errorf("read checkpoints that wait: %w", err)
	}
	if len(pending) > 0 {
		c.warnings[audit.WarnSinkPending] = true
	}
	if c.r.LastSeq == last && c.covered < last {
		c.warnings[audit.WarnTail] = true
	}
	_, trimmed, err := s.store.LastTrim(ctx)
	if err != nil {
		return fmt.Errorf("read the anchor: %w", err)
	}
	if trimmed {
		c.warnings[audit.WarnTrimmed] = true
	}
	return nil
}
