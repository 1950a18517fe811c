// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// BrokenError is what ChainVerify finds; repeating the run finds it again.
type BrokenError struct{ Breaks []audit.Break }

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the audit log is broken at %d places, first at row %d (%s)", len(e.Breaks), e.Breaks[0].Seq, e.Breaks[0].Kind)
}

// ChainVerify is the periodic job: it verifies the rows since the last checkpoint and signs a
// new one over them.
type ChainVerify struct{ s *Service }

// ChainVerify gives the job.
func (s *Service) ChainVerify() *ChainVerify { return &ChainVerify{s: s} }

// Run verifies, signs and deposits. A break stores nothing and is a *BrokenError, which
// repeating does not mend; without new rows there is no new checkpoint. What waits for the
// sink is deposited either way, and a sink that fails never keeps the record from growing.
func (j *ChainVerify) Run(ctx context.Context) error {
	return errors.Join(j.checkpoint(ctx), j.s.deposit(ctx))
}

func (j *ChainVerify) checkpoint(ctx context.Context) error {
	s := j.s
	previous, found, err := s.store.LastCheckpoint(ctx)
	if err != nil {
		return fmt.Errorf("read the last checkpoint: %w", err)
	}
	first, last, err := s.store.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("read the bounds of the record: %w", err)
	}
	if last == 0 && !found || found && previous.Seq == last {
		return nil
	}
	from := first
	if found {
		from = max(first, previous.Seq) // The row itself may have been removed since.
	}
	head, hash, err := j.verify(ctx, from, max(last, from))
	if err != nil {
		return err
	}
	return j.sign(ctx, previous, domain.Checkpoint{
		FirstSeq: first, Seq: head, HashValue: hash, CreatedAt: s.clock.Now().UTC().Truncate(time.Microsecond),
	})
}

// verify walks the range in parts that one verification allows.
func (j *ChainVerify) verify(ctx context.Context, from, to int64) (int64, domain.Hash, error) {
	s := j.s
	for at := from; at <= to; {
		end := min(to, at+s.cfg.VerifyMaxRows-1)
		r, err := s.Verify(ctx, at, end)
		if err != nil {
			return 0, domain.Hash{}, err
		}
		if r.LastSeq < end {
			r.Breaks = append(r.Breaks, audit.Break{Seq: r.LastSeq + 1, Kind: audit.BreakGap})
		}
		if len(r.Breaks) > 0 {
			broken := &BrokenError{Breaks: r.Breaks}
			s.log.Error("the audit log is broken", "first_seq", r.Breaks[0].Seq, "kind", r.Breaks[0].Kind, "breaks", len(r.Breaks))
			s.metrics.ChainBreaks(ctx, len(r.Breaks))
			return 0, domain.Hash{}, broken
		}
		if end == to {
			break
		}
		at = end // The next part begins with the row that links it.
	}
	rows, err := s.store.Rows(ctx, to, 1)
	if err != nil || len(rows) != 1 || rows[0].Seq != to {
		return 0, domain.Hash{}, fmt.Errorf("read the last audit row %d: %w", to, err)
	}
	return to, rows[0].HashValue, nil
}

func (j *ChainVerify) sign(ctx context.Context, previous, c domain.Checkpoint) error {
	s := j.s
	info, err := s.instance.Info(ctx)
	if err != nil {
		return err
	}
	c.ID, c.Sink = ids.NewAt(c.CreatedAt), domain.SinkNone
	if s.sink != nil {
		c.Sink = domain.SinkPending
	}
	if previous.JWS != "" {
		c.Previous = previous.Digest()
	}
	payload, err := json.Marshal(domain.StatementOf(c, info.ID, info.SyncEpoch))
	if err != nil {
		return fmt.Errorf("encode a checkpoint: %w", err)
	}
	if c.JWS, err = s.keys.Sign(ctx, instance.PurposeCheckpoint, payload); err != nil {
		return fmt.Errorf("sign a checkpoint: %w", err)
	}
	token, err := jose.Parse(c.JWS)
	if err != nil {
		return fmt.Errorf("read the signed checkpoint: %w", err)
	}
	c.KID = token.Header.KeyID
	err = s.units.Do(ctx, func(ctx context.Context) error { return s.store.InsertCheckpoint(ctx, c) })
	if err == nil {
		s.metrics.Checkpointed(ctx, c.CreatedAt)
	}
	return err
}

// depositBatch bounds what one run brings to the sink; the rest waits for the next.
const depositBatch = 500

// deposit brings checkpoints to the sink in their order. Outside the database they still say
// what the record was when somebody has rewritten all of it. It ends at the first that fails,
// so that the sink never has a hole.
func (s *Service) deposit(ctx context.Context) error {
	if s.sink == nil {
		return nil
	}
	pending, err := s.store.Pending(ctx, depositBatch)
	if err != nil {
		return fmt.Errorf("read checkpoints that wait: %w", err)
	}
	for _, c := range pending {
		fault := s.sink.Deposit(ctx, c.Seq, c.JWS)
		err := s.units.Do(ctx, func(ctx context.Context) error {
			if fault != nil {
				return s.store.NoteSinkFailure(ctx, c.ID, sinkCode(fault))
			}
			return s.store.NoteDeposit(ctx, c.ID, s.clock.Now())
		})
		if err != nil {
			return fmt.Errorf("note what became of a checkpoint: %w", err)
		}
		if fault != nil {
			s.log.Error("a checkpoint cannot be deposited", "seq", c.Seq, "code", sinkCode(fault), "error", fault)
			s.metrics.SinkFailed(ctx)
			return nil
		}
	}
	return nil
}

func sinkCode(err error) string {
	if errors.Is(err, ErrSinkConflict) {
		return "conflict"
	}
	return "unavailable"
}
