// SPDX-License-Identifier: Apache-2.0

// Package flush is what must hold before anything leaves the process: that it is durable.
// Commits return before their log is on disk; one flush for many of them follows. An
// answer, an event or a position may leave only behind that flush, or a crash of the
// database could give the same position to something else.
package flush

import (
	"context"
	"sync/atomic"
)

// Barrier waits until what is committed is also durable. platform/pg implements it.
type Barrier interface {
	// Generation counts the connections of the flusher. Note it before reading or
	// writing, and hand it to Wait: a flush that succeeds on the same connection proves
	// that the database has not crashed in between.
	Generation() uint64
	// Wait returns when everything committed before the call is durable. It fails, with
	// code unavailable, when the generation has changed or the flush takes too long: the
	// outcome of the commit is then unknown, never assumed.
	Wait(ctx context.Context, generation uint64) error
}

// Positions ties answers to the event log. The module sync implements it.
type Positions interface {
	// ReadPosition gives a position such that data read after the call reflects every
	// event up to it. The position is durable.
	ReadPosition(ctx context.Context) (int64, error)
}

// Mark is the highest position that the units of one request appended. The HTTP chain
// makes one per request and sends it as the header Sync-Seq.
type Mark struct{ seq atomic.Int64 }

// Seq is the highest recorded position; zero when nothing was appended.
func (m *Mark) Seq() int64 { return m.seq.Load() }

type key struct{}

// WithMark puts a new mark into the context.
func WithMark(ctx context.Context) (context.Context, *Mark) {
	m := &Mark{}
	return context.WithValue(ctx, key{}, m), m
}

// Record raises the mark of the context, when there is one. The append hook calls it.
func Record(ctx context.Context, seq int64) {
	m, _ := ctx.Value(key{}).(*Mark)
	if m == nil {
		return
	}
	for {
		old := m.seq.Load()
		if seq <= old || m.seq.CompareAndSwap(old, seq) {
			return
		}
	}
}
