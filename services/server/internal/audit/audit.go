// SPDX-License-Identifier: Apache-2.0

// Package audit is the port of the module audit: the record of sensitive acts that nobody can
// rewrite unseen. Rows are written through kernel/auditing; this package verifies them.
package audit

import (
	"context"
	"time"
)

// Break is a place where the record does not fit together.
type Break struct {
	// Seq is the row, or the last row of the checkpoint, that does not fit.
	Seq int64
	// Kind is one of the kinds of breaks.
	Kind string
}

// The kinds of breaks.
const (
	// BreakGap: a number is missing.
	BreakGap = "gap"
	// BreakHash: a row is not what its hash was made over.
	BreakHash = "hash"
	// BreakLink: a row does not follow the one before it.
	BreakLink = "link"
	// BreakCheckpointSignature: a checkpoint was not signed by this instance.
	BreakCheckpointSignature = "checkpoint_signature"
	// BreakCheckpointHash: the rows are not those a checkpoint was made over, or the
	// checkpoint does not follow the one before it.
	BreakCheckpointHash = "checkpoint_hash"
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
}

// MaxBreaks bounds the breaks that a result lists.
const MaxBreaks = 100

// Log verifies the record. It does not authorize.
type Log interface {
	// Verify checks the rows from one number to another, both included; zero stands for the
	// first and the last row. A range beyond audit.verify_max_rows is validation_failed.
	Verify(ctx context.Context, from, to int64) (Result, error)
}

// Metrics counts what an operator must hear of.
type Metrics interface {
	// ChainBreaks counts breaks found by the periodic verification.
	ChainBreaks(ctx context.Context, n int)
	// DenialsLost counts denials whose row could not be written.
	DenialsLost(ctx context.Context, n int)
	// Checkpointed notes the time of the newest checkpoint.
	Checkpointed(ctx context.Context, at time.Time)
}
