// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
)

// RowsVerifier implements audit.RowsVerifier. It works on what it is handed and on nothing
// else.
type RowsVerifier struct{ canon domain.Canonicalize }

var _ audit.RowsVerifier = RowsVerifier{}

// NewRowsVerifier makes a verifier; canon writes the canonical form of JSON.
func NewRowsVerifier(canon domain.Canonicalize) RowsVerifier { return RowsVerifier{canon} }

// foreignRow is what of a row must be understood; its hash covers every byte of the rest.
type foreignRow struct {
	Seq    string `json:"seq"`
	Action string `json:"action"`
	Actor  struct {
		Kind string `json:"kind"`
	} `json:"actor"`
	Details json.RawMessage `json:"details"`
}

// VerifyRows implements audit.RowsVerifier. What cannot be understood is broken, not an error.
func (r RowsVerifier) VerifyRows(ctx context.Context, o audit.Origin, entries iter.Seq2[audit.Entry, error]) (audit.Result, error) {
	c := newCollector(o.FromSeq, o.FromSeq-1)
	v := domain.NewVerifier(domain.Range{InstanceID: o.InstanceID, Keys: o.Keys, From: o.FromSeq, First: o.FirstSeq, Broken: c.broken, Unknown: c.unknown})
	for e, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			c.add(v.Close())
			return c.result(), fmt.Errorf("read the record: %w", err)
		}
		if len(e.Row) == 0 {
			r.checkpoint(v, c, e)
			continue
		}
		link, anchor := r.link(e, c.r.LastSeq+1)
		v.Row(link)
		if anchor != nil {
			v.Anchor(*anchor)
		}
		c.r.LastSeq = link.Seq
	}
	s := v.Close()
	c.add(s)
	if s.Rows > 0 && s.Covered < s.Last {
		c.warnings[audit.WarnTail] = true
	}
	if o.FirstSeq > 1 {
		c.warnings[audit.WarnTrimmed] = true
	}
	if s.Rows > 0 && !s.Vouched {
		c.warnings[audit.WarnBeginning] = true
	}
	return c.result(), nil
}

func (r RowsVerifier) checkpoint(v *domain.Verifier, c *collector, e audit.Entry) {
	p, err := domain.CheckpointOf(e.Checkpoint)
	if err != nil {
		c.broken(c.r.LastSeq, audit.BreakCheckpointSignature, err)
		return
	}
	v.Checkpoint(p)
}

// link reads a row as far as the chain needs it. A row without a number gets the one it should
// have, and its hash then tells what is wrong.
func (r RowsVerifier) link(e audit.Entry, expected int64) (domain.Link, *domain.Anchor) {
	l := domain.Link{Seq: expected, Body: e.Row}
	copy(l.PrevHash[:], e.PrevHash)
	copy(l.HashValue[:], e.Hash)
	if body, err := r.canon(e.Row); err == nil {
		l.Body = body
	}
	var row foreignRow
	if json.Unmarshal(e.Row, &row) != nil {
		return l, nil
	}
	if seq, err := strconv.ParseInt(row.Seq, 10, 64); err == nil {
		l.Seq = seq
	}
	if anchor, ok := domain.AnchorOf(row.Action, row.Actor.Kind, row.Details); ok {
		return l, &anchor
	}
	return l, nil
}
