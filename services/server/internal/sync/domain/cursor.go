// SPDX-License-Identifier: Apache-2.0

package domain

import "github.com/OWNER/bothy/services/server/internal/kernel/ids"

// The reasons for which a cursor cannot be followed and the client must load anew.
const (
	ResyncEpoch     = "epoch"
	ResyncRetention = "retention"
	ResyncFuture    = "future"
	ResyncTooFar    = "too_far"
)

// Log is what the check of a cursor needs to know.
type Log struct {
	Epoch ids.ID
	// MinSeq is the smallest stored position; 1 for an empty log.
	MinSeq int64
	// Target is the position to catch up to.
	Target int64
	// MaxEvents bounds how much is caught up.
	MaxEvents int64
}

// CheckCursor gives the reason why a cursor cannot be followed, or an empty text. A zero
// epoch of the client means that it does not name one.
func (l Log) CheckCursor(epoch ids.ID, cursor int64) string {
	switch {
	case !epoch.IsZero() && epoch != l.Epoch:
		return ResyncEpoch
	case cursor < 0 || cursor > l.Target:
		return ResyncFuture
	case cursor < l.MinSeq-1:
		return ResyncRetention
	case l.Target-cursor > l.MaxEvents:
		return ResyncTooFar
	default:
		return ""
	}
}
