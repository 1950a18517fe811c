// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// verifyPage is how many rows are read at a time.
const verifyPage = 1000

// checkpointType is the typ of a checkpoint's JWS.
const checkpointType = "bothy-audit-checkpoint+jws"

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
	v := &verification{s: s, hashes: map[int64]domain.Hash{}}
	v.result = audit.Result{FirstSeq: from, LastSeq: to}
	if from < 1 || from > to {
		v.result.OK = true
		return v.result, nil
	}
	if err := v.run(ctx, from, to); err != nil {
		return audit.Result{}, err
	}
	v.result.OK = len(v.result.Breaks) == 0
	return v.result, nil
}

type verification struct {
	s      *Service
	result audit.Result
	chain  *domain.Chain
	// hashes are those of rows that checkpoints speak of.
	hashes map[int64]domain.Hash
}

func (v *verification) broken(seq int64, kind string) {
	if kind != "" && len(v.result.Breaks) < audit.MaxBreaks {
		v.result.Breaks = append(v.result.Breaks, audit.Break{Seq: seq, Kind: kind})
	}
}

func (v *verification) run(ctx context.Context, from, to int64) error {
	info, err := v.s.instance.Info(ctx)
	if err != nil {
		return err
	}
	checkpoints, err := v.s.store.Checkpoints(ctx, from, to)
	if err != nil {
		return fmt.Errorf("read checkpoints: %w", err)
	}
	for _, c := range checkpoints {
		v.hashes[c.Seq] = domain.Hash{}
	}
	var prev *domain.Hash
	if from == 1 {
		genesis := domain.Genesis(info.ID)
		prev = &genesis
	}
	v.chain = domain.NewChain(v.s.canon, from-1, prev)
	if err := v.rows(ctx, from, to); err != nil {
		return err
	}
	return v.checkpoints(ctx, info.ID, checkpoints, from)
}

// rows walks the range. A row missing at its end is a gap at the first missing number.
func (v *verification) rows(ctx context.Context, from, to int64) error {
	next := from
	for next <= to {
		page, err := v.s.store.Rows(ctx, next, int(min(verifyPage, to-next+1)))
		if err != nil {
			return fmt.Errorf("read audit rows: %w", err)
		}
		for _, r := range page {
			if r.Seq > to {
				return nil
			}
			kind, err := v.chain.Next(r)
			if err != nil {
				return err
			}
			v.broken(r.Seq, kind)
			v.result.Checked++
			if _, wanted := v.hashes[r.Seq]; wanted {
				v.hashes[r.Seq] = r.HashValue
			}
			next = r.Seq + 1
		}
		if len(page) == 0 {
			v.broken(next, audit.BreakGap)
			return nil
		}
	}
	return nil
}

func (v *verification) checkpoints(ctx context.Context, instanceID ids.ID, list []domain.Checkpoint, from int64) error {
	keys, err := v.s.public.VerificationKeys(ctx, instance.PurposeCheckpoint)
	if err != nil {
		return err
	}
	for i, c := range list {
		if c.Seq < from {
			continue // It only tells what the first one of the range follows.
		}
		v.result.Checkpoints++
		switch {
		case !signed(c, keys, instanceID):
			v.broken(c.Seq, audit.BreakCheckpointSignature)
		case v.hashes[c.Seq] != c.HashValue:
			v.broken(c.Seq, audit.BreakCheckpointHash)
		case i == 0 && c.Previous != domain.Hash{}, i > 0 && c.Previous != list[i-1].Digest():
			v.broken(c.Seq, audit.BreakCheckpointHash)
		}
	}
	return nil
}

// signed checks a checkpoint with the keys of its purpose alone, old ones too.
func signed(c domain.Checkpoint, keys map[string]crypto.PublicKey, instanceID ids.ID) bool {
	token, err := jose.Parse(c.JWS)
	if err != nil || token.Header.Type != checkpointType || token.Header.Algorithm != jose.ES256 {
		return false
	}
	key, known := keys[token.Header.KeyID]
	return known && token.Verify(key) == nil && c.Confirms(token.Payload, instanceID) == nil
}

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

// Run verifies and signs. A break stores nothing and is a *BrokenError, which repeating does
// not mend; without new rows there is no new checkpoint.
func (j *ChainVerify) Run(ctx context.Context) error {
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
		from = previous.Seq
	}
	head, hash, err := j.verify(ctx, from, max(last, from))
	if err != nil {
		return err
	}
	return j.sign(ctx, previous, domain.Checkpoint{
		FirstSeq: first, Seq: head, HashValue: hash, CreatedAt: s.clock.Now(),
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
	c.ID = ids.NewAt(c.CreatedAt)
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
