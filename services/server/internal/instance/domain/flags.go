// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// FlagState is for whom a flag is on.
type FlagState string

// The states.
const (
	FlagOff     FlagState = "off"
	FlagOn      FlagState = "on"
	FlagRollout FlagState = "rollout"
)

// Flag is the stored state of a feature flag. Version is 1 for one that was never changed.
type Flag struct {
	Key     string
	State   FlagState
	People  []ids.ID
	Groups  []ids.ID
	Percent int
	Version int64
	// UpdatedBy and UpdatedAt are zero for one that was never changed.
	UpdatedBy ids.ID
	UpdatedAt time.Time
}

// Untouched is the state of a flag that nobody has changed.
func Untouched(key string, on bool) Flag {
	f := Flag{Key: key, State: FlagOff, Version: 1}
	if on {
		f.State = FlagOn
	}
	return f
}

// Subject is for whom a flag is evaluated.
type Subject struct {
	ID ids.ID
	// Person is false for agents and apps, which a rollout does not reach: their behaviour
	// must not depend on chance.
	Person bool
	// InGroup reports whether the subject is a member; asked only when it matters.
	InGroup func(groups []ids.ID) (bool, error)
}

// For evaluates the flag. The error is that of the groups.
func (f Flag) For(s Subject) (bool, error) {
	switch {
	case f.State == FlagOn:
		return true, nil
	case f.State != FlagRollout || !s.Person:
		return false, nil
	case slices.Contains(f.People, s.ID), FlagBucket(f.Key, s.ID) < f.Percent:
		return true, nil
	case len(f.Groups) == 0 || s.InGroup == nil:
		return false, nil
	default:
		return s.InGroup(f.Groups)
	}
}

// FlagBucket gives a principal a number from 0 to 99 that is stable and differs from flag to
// flag. Raising the percentage therefore only adds people.
func FlagBucket(key string, id ids.ID) int {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(id[:])
	return int(binary.BigEndian.Uint64(h.Sum(nil)) % 100)
}

// Normalize sorts the lists and removes what stands twice.
func (f *Flag) Normalize() {
	f.People, f.Groups = sorted(f.People), sorted(f.Groups)
}

func sorted(list []ids.ID) []ids.ID {
	out := slices.Clone(list)
	slices.SortFunc(out, func(a, b ids.ID) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(out)
}
