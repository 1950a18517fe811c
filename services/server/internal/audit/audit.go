// SPDX-License-Identifier: Apache-2.0

// Package audit is the port of the module audit: the record of sensitive acts that nobody can
// rewrite unseen. Rows are written through kernel/auditing; this package verifies them.
package audit

import (
	"context"
	"crypto"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Break is a place where the record does not fit together.
type Break struct {
	// Seq is the row, or the last row of the checkpoint, that does not fit.
	Seq int64
	// Kind is one of the kinds of breaks.
	Kind string
	// Detail says more where there is more to say.
	Detail string
}

// The kinds of breaks.
const (
	// BreakGap: a number is missing.
	BreakGap = "gap"
	// BreakHash: a row is not what its hash was made over.
	BreakHash = "hash"
	// BreakLink: a row does not follow the one before it.
	BreakLink = "link"
	// BreakCheckpointSignature: a checkpoint was not signed by this instance, or not with the
	// key that it names.
	BreakCheckpointSignature = "checkpoint_signature"
	// BreakCheckpointHash: the rows are not those a checkpoint was made over, or the
	// checkpoint does not follow the one before it.
	BreakCheckpointHash = "checkpoint_hash"
	// BreakAnchor: rows were removed from the beginning, and no anchor says so.
	BreakAnchor = "anchor"
)

// The warnings of a verification: nothing is broken, and yet less is proven than could be.
const (
	// WarnNoSink: checkpoints lie in the database alone.
	WarnNoSink = "no_sink"
	// WarnSinkPending: a checkpoint waits to be deposited.
	WarnSinkPending = "sink_pending"
	// WarnTail: no checkpoint covers the last rows yet.
	WarnTail = "uncheckpointed_tail"
	// WarnKey: a checkpoint was signed with a key that is no longer published.
	WarnKey = "key_unpublished"
	// WarnTrimmed: old rows were removed, and an anchor stands for them.
	WarnTrimmed = "trimmed"
	// WarnBeginning: nothing vouches for what stands before the first row that was handed in.
	WarnBeginning = "unproven_beginning"
	// WarnUnknownKey: a checkpoint names a key that was not handed in, so that its signature
	// cannot be verified.
	WarnUnknownKey = "unknown_key"
)

// Result is what a verification found.
type Result struct {
	OK                bool
	FirstSeq, LastSeq int64
	// Checked counts rows, Checkpoints the checkpoints among them.
	Checked     int64
	Checkpoints int
	// Breaks are at most MaxBreaks; more of them tell nothing new.
	Breaks []Break
	// Warnings are sorted.
	Warnings []string
	// SignedSeq is the last row that a checkpoint with a known key covers; zero for none.
	SignedSeq int64
	// UnknownSeq is the last row of the last checkpoint with an unknown key; zero for none.
	// When it is beyond SignedSeq, no known key vouches for the rows between them.
	UnknownSeq int64
	// UnknownKeys are those of WarnUnknownKey in the order they were met, at most
	// MaxUnknownKeys.
	UnknownKeys []UnknownKey
}

// NoteUnknownKey lists a key that the checkpoint over the rows up to seq names. Thousands may
// name the same one, which is listed once.
func (r *Result) NoteUnknownKey(seq int64, kid string) {
	i := slices.IndexFunc(r.UnknownKeys, func(k UnknownKey) bool { return k.KID == kid })
	switch {
	case i >= 0:
		k := &r.UnknownKeys[i]
		k.FirstSeq, k.LastSeq = min(k.FirstSeq, seq), max(k.LastSeq, seq)
	case len(r.UnknownKeys) < MaxUnknownKeys:
		r.UnknownKeys = append(r.UnknownKeys, UnknownKey{KID: kid, FirstSeq: seq, LastSeq: seq})
	}
}

// UnknownKey is a key that checkpoints name and that was not handed in.
type UnknownKey struct {
	KID string
	// FirstSeq and LastSeq are the last rows of the first and the last checkpoint that name it.
	FirstSeq, LastSeq int64
}

// MaxUnknownKeys bounds the unknown keys that a result lists.
const MaxUnknownKeys = 100

// MaxBreaks bounds the breaks that a result lists.
const MaxBreaks = 100

// Log verifies the record. It does not authorize.
type Log interface {
	// Verify checks the rows from one number to another, both included; zero stands for the
	// first and the last row. A range beyond audit.verify_max_rows is validation_failed.
	Verify(ctx context.Context, from, to int64) (Result, error)
}

// Entry is one line of a record that is handed in from elsewhere.
type Entry struct {
	// Row is a row in JSON, with its hashes beside it; empty for a checkpoint.
	Row            json.RawMessage
	PrevHash, Hash []byte
	// Checkpoint is the JWS of a checkpoint. It stands behind the last row it covers.
	Checkpoint string
}

// Origin says where such a record comes from.
type Origin struct {
	InstanceID ids.ID
	// FromSeq is the first row handed in, FirstSeq the first one that the record had.
	FromSeq, FirstSeq int64
	// Keys are the public keys of checkpoints by their ID. Whoever trusts keys that came with
	// the record proves only that it agrees with itself.
	Keys map[string]crypto.PublicKey
}

// RowsVerifier verifies a record that is handed in from elsewhere: an export, or the database
// that a backup was restored to. It needs no database and holds no more than one entry.
type RowsVerifier interface {
	// VerifyRows follows the entries, rows ascending. The error is that of the entries.
	VerifyRows(ctx context.Context, o Origin, entries iter.Seq2[Entry, error]) (Result, error)
}

// Metrics counts what an operator must hear of.
type Metrics interface {
	// ChainBreaks counts breaks found by the periodic verification.
	ChainBreaks(ctx context.Context, n int)
	// DenialsLost counts denials whose row could not be written.
	DenialsLost(ctx context.Context, n int)
	// SinkFailed counts checkpoints that could not be deposited.
	SinkFailed(ctx context.Context)
	// Checkpointed notes the time of the newest checkpoint.
	Checkpointed(ctx context.Context, at time.Time)
}
