// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Space is a part of the team's structure. Names of spaces that are not archived are unique.
type Space struct {
	ID          ids.ID
	Name        string
	Description string
	Icon, Color *string
	Key         string
	// OperatorID answers in channels that take their operator from the space; zero for none.
	OperatorID ids.ID
	ArchivedAt *time.Time
	ArchivedBy ids.ID
	CreatedBy  ids.ID
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Version    int64
}

// Touch notes a change.
func (s *Space) Touch(at time.Time) {
	s.Version++
	s.UpdatedAt = at
}

// Passing is what somebody sees of a space who may see only single channels of it.
func (s Space) Passing() Space {
	s.Description, s.OperatorID = "", ids.ID{}
	return s
}

// Sibling is an element in an order.
type Sibling struct {
	ID       ids.ID
	Key      string
	Archived bool
}

// Present counts the siblings that are not archived.
func Present(siblings []Sibling) int {
	n := 0
	for _, s := range siblings {
		if !s.Archived {
			n++
		}
	}
	return n
}

// PlaceAfter gives the key of a new element behind the named sibling, or at the end for the
// zero ID. ok is false when there is no such sibling. ErrKeysFull asks for fresh keys.
func PlaceAfter(siblings []Sibling, after ids.ID) (key string, ok bool, err error) {
	if after.IsZero() {
		last := ""
		if len(siblings) > 0 {
			last = siblings[len(siblings)-1].Key
		}
		key, err = KeyAfter(last)
		return key, true, err
	}
	for i, s := range siblings {
		if s.ID != after {
			continue
		}
		if i == len(siblings)-1 {
			key, err = KeyAfter(s.Key)
		} else {
			key, err = KeyBetween(s.Key, siblings[i+1].Key)
		}
		return key, true, err
	}
	return "", false, nil
}
