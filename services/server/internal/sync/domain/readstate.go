// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of the module sync that need no input and no output: how far
// somebody has read, what a cursor may ask for, and what is left of a redacted event.
package domain

import "github.com/OWNER/bothy/services/server/internal/kernel/ids"

// Origin says why a read position exists.
type Origin string

// The origins of read positions.
const (
	// OriginUser: the person has read or marked.
	OriginUser Origin = "user"
	// OriginPost: the person has written, which reads everything before.
	OriginPost Origin = "post"
	// OriginBaseline: the thread was there before the person looked for the first time.
	OriginBaseline Origin = "baseline"
)

// ReadState is how far a person has read a thread.
type ReadState struct {
	ThreadID, ChannelID ids.ID
	// LastRead never falls.
	LastRead int64
	// UnreadFrom is the first message of a manual mark, zero for none.
	UnreadFrom int64
	Origin     Origin
	Version    int64
}

// Position is the number up to which everything counts as read.
func (r ReadState) Position() int64 {
	if r.UnreadFrom > 0 {
		return r.UnreadFrom - 1
	}
	return r.LastRead
}

// Read moves the position forward to upTo, clamped to the end of the thread, and reports
// whether anything changed. A manual mark stays unless clearMark is set: a second device that
// merely shows the thread must not undo what the person marked on the first.
func (r *ReadState) Read(upTo, end int64, clearMark bool, origin Origin) bool {
	changed := false
	if upTo = min(upTo, end); upTo > r.LastRead {
		r.LastRead, changed = upTo, true
	}
	if clearMark && r.UnreadFrom > 0 {
		r.UnreadFrom, changed = 0, true
	}
	if changed {
		r.Origin = origin
		r.Version++
	}
	return changed
}

// MarkUnread sets the manual mark, with from between 1 and the end of the thread, and reports
// whether anything changed.
func (r *ReadState) MarkUnread(from int64) bool {
	if r.UnreadFrom == from {
		return false
	}
	r.UnreadFrom = from
	r.Origin = OriginUser
	r.Version++
	return true
}
