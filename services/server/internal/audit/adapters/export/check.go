// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
)

// The kinds of breaks that only a file can have, beside those of the record.
const (
	// BreakCut: lines are missing at the end of the file.
	BreakCut = "cut"
	// BreakDeposit: a checkpoint that was kept outside says something else than the file.
	BreakDeposit = "deposit"
)

// CheckOptions are what a file is held against.
type CheckOptions struct {
	// Trusted are public keys that did not come with the file, by their ID. Without any, the
	// keys of the file are used, and the file is only held against itself.
	Trusted map[string]crypto.PublicKey
	// Deposits are checkpoints that were kept outside, by the number of their last row.
	Deposits map[int64]string
	// Canonicalize writes the canonical form of JSON.
	Canonicalize domain.Canonicalize
}

// Report is what was found in a file.
type Report struct {
	audit.Result
	Head app.ExportHeader
	// Signed tells that a checkpoint was verified with a trusted key, and that none of an
	// unknown key stands behind it.
	Signed bool
	// Deposits counts those that the file agrees with, Beyond those over rows that the file does
	// not reach.
	Deposits, Beyond int
}

// Check verifies an export. A file that is no export gives an error that wraps ErrForm; what was
// found before stands in the report all the same.
func Check(ctx context.Context, file io.Reader, o CheckOptions) (Report, error) {
	r, err := NewReader(file)
	if err != nil {
		return Report{}, err
	}
	keys := o.Trusted
	if len(keys) == 0 {
		keys = r.Keys
	}
	out := Report{Head: r.Head}
	d := &deposits{list: maps.Clone(o.Deposits), waiting: map[int64]domain.Checkpoint{}, report: &out}
	d.open(keys)
	out.Result, err = app.NewRowsVerifier(o.Canonicalize).VerifyRows(ctx, audit.Origin{
		InstanceID: r.Head.InstanceID, FromSeq: r.Head.FromSeq, FirstSeq: r.Head.FirstSeq, Keys: keys,
	}, d.beside(r.Entries()))
	d.close()
	d.unknownKeys()
	out.Breaks = append(out.Breaks, d.breaks...)
	switch {
	case errors.Is(err, ErrCut):
		out.Breaks, err = append(out.Breaks, audit.Break{Seq: out.LastSeq, Kind: BreakCut, Detail: ErrCut.Error()}), nil
	case err == nil && out.LastSeq < r.Head.ToSeq:
		out.Breaks = append(out.Breaks, audit.Break{Seq: out.LastSeq, Kind: BreakCut, Detail: fmt.Sprintf("the header promises rows up to %d", r.Head.ToSeq)})
	}
	out.OK = err == nil && len(out.Breaks) == 0
	out.Signed = out.OK && out.SignedSeq > 0 && out.SignedSeq >= out.UnknownSeq && len(o.Trusted) > 0
	return out, err
}

// deposits holds the file against checkpoints that were kept outside. Whoever rewrites a record
// and signs it anew cannot reach those.
type deposits struct {
	list    map[int64]string
	waiting map[int64]domain.Checkpoint
	report  *Report
	breaks  []audit.Break
	// unknown are checkpoints whose key is unknown.
	unknown []domain.Checkpoint
	last    int64
}

func (d *deposits) broken(seq int64, detail string) {
	if len(d.breaks) < audit.MaxBreaks {
		d.breaks = append(d.breaks, audit.Break{Seq: seq, Kind: BreakDeposit, Detail: detail})
	}
}

func (d *deposits) open(keys map[string]crypto.PublicKey) {
	for _, seq := range slices.Sorted(maps.Keys(d.list)) {
		c, err := domain.CheckpointOf(d.list[seq])
		if err == nil {
			err = c.Signed(keys, d.report.Head.InstanceID)
		}
		if errors.Is(err, domain.ErrUnknownKey) {
			// It lay outside, so its row is held against it all the same.
			d.unknown, err = append(d.unknown, c), nil
		}
		if err == nil && c.Seq != seq {
			err = errors.New("it is about another row than its name says")
		}
		if err != nil {
			d.broken(seq, "the deposited checkpoint: "+err.Error())
			delete(d.list, seq)
			continue
		}
		if seq >= d.report.Head.FromSeq {
			d.waiting[seq] = c
		}
	}
}

// beside looks at the entries while they pass.
func (d *deposits) beside(entries iter.Seq2[audit.Entry, error]) iter.Seq2[audit.Entry, error] {
	return func(yield func(audit.Entry, error) bool) {
		for e, err := range entries {
			if err == nil {
				d.pass(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (d *deposits) pass(e audit.Entry) {
	if e.Checkpoint != "" {
		if c, err := domain.CheckpointOf(e.Checkpoint); err == nil && d.list[c.Seq] != "" && d.list[c.Seq] != e.Checkpoint {
			d.broken(c.Seq, "the file holds another checkpoint than the one that was deposited")
		}
		return
	}
	var row struct {
		Seq string `json:"seq"`
	}
	if json.Unmarshal(e.Row, &row) != nil {
		return
	}
	seq, err := strconv.ParseInt(row.Seq, 10, 64)
	if err != nil {
		return
	}
	d.last = max(d.last, seq)
	c, waits := d.waiting[seq]
	if !waits {
		return
	}
	delete(d.waiting, seq)
	if string(c.HashValue[:]) != string(e.Hash) {
		d.broken(seq, "the row is not the one that the deposited checkpoint covers")
		return
	}
	d.report.Deposits++
}

// unknownKeys adds the keys of deposits to those of the file. A deposit over rows that the file
// does not reach takes nothing from those it has.
func (d *deposits) unknownKeys() {
	r := d.report
	for _, c := range d.unknown {
		r.NoteUnknownKey(c.Seq, c.KID)
		if c.Seq <= r.Head.ToSeq {
			r.UnknownSeq = max(r.UnknownSeq, c.Seq)
		}
		if !slices.Contains(r.Warnings, audit.WarnUnknownKey) {
			r.Warnings = append(r.Warnings, audit.WarnUnknownKey)
			slices.Sort(r.Warnings)
		}
	}
}

// close looks at what never came: rows that are missing, or rows that did not exist yet when the
// file was made.
func (d *deposits) close() {
	for _, seq := range slices.Sorted(maps.Keys(d.waiting)) {
		switch c := d.waiting[seq]; {
		case seq <= d.last:
			d.broken(seq, "the row that the deposited checkpoint covers is missing")
		case seq > d.report.Head.LastSeq && !c.CreatedAt.After(d.report.Head.ExportedAt):
			d.broken(seq, "the row existed when the file was made, and the file knows nothing of it")
		default:
			d.report.Beyond++
		}
	}
}
