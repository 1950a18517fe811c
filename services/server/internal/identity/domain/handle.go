// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"strings"
	"time"
)

// Fault is why a value is refused, as a code of a validation answer; empty for none.
type Fault string

// The faults of handles, names and passwords.
const (
	FaultNone     Fault = ""
	FaultFormat   Fault = "invalid_format"
	FaultReserved Fault = "reserved"
)

const (
	handleMin = 2
	handleMax = 32
)

// reservedHandles address groups of readers or the product itself.
var reservedHandles = []string{"everyone", "here", "channel", "all", "system", "admin", "bothy", "deleted"}

// CheckHandle tells whether a handle may be taken: lower-case letters, digits, dot, hyphen
// and underscore, 2 to 32 characters, beginning with a letter or digit, not ending in a dot.
func CheckHandle(h string) Fault {
	if len(h) < handleMin || len(h) > handleMax || strings.HasSuffix(h, ".") {
		return FaultFormat
	}
	for i := range len(h) {
		c := h[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || c != '.' && c != '_' && c != '-') {
			return FaultFormat
		}
	}
	if slices.Contains(reservedHandles, h) {
		return FaultReserved
	}
	return FaultNone
}

// FormerHandle is a handle that a principal gave up. It leads to her and nobody else may
// take it until then.
type FormerHandle struct {
	Handle string    `json:"handle"`
	Until  time.Time `json:"until"`
}

// formerHandlesMax bounds the list; who renames more often than that lets the oldest go.
const formerHandlesMax = 16

// RenameHandle gives the list of former handles after a rename: the old handle is held
// until the time given, a handle taken back leaves the list, and what is over goes.
func RenameHandle(former []FormerHandle, before, after string, now, until time.Time) []FormerHandle {
	kept := make([]FormerHandle, 0, len(former)+1)
	for _, f := range former {
		if f.Handle != after && f.Handle != before && now.Before(f.Until) {
			kept = append(kept, f)
		}
	}
	kept = append(kept, FormerHandle{Handle: before, Until: until})
	if len(kept) > formerHandlesMax {
		kept = kept[len(kept)-formerHandlesMax:]
	}
	return kept
}

// MayRename tells whether the interval between two renames by the person is over. A zero
// time means that she never renamed herself.
func MayRename(changedAt, now time.Time, interval time.Duration) bool {
	return changedAt.IsZero() || !now.Before(changedAt.Add(interval))
}
