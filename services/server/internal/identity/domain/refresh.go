// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// RefreshOutcome is what becomes of a presented refresh token.
type RefreshOutcome int

// The outcomes.
const (
	// RefreshEnded: the family has ended or the token has expired.
	RefreshEnded RefreshOutcome = iota
	// RefreshRotate: the token is current; mark it used and issue the next generation.
	RefreshRotate
	// RefreshReissue: the answer to an earlier use was lost; supersede the successor that
	// nobody has presented and issue another.
	RefreshReissue
	// RefreshReuse: two parties hold tokens of the family; family and session end.
	RefreshReuse
)

// FamilyState is what the family knows of its tokens.
type FamilyState struct {
	Ended bool
	// Current is the generation of the newest token. It was never presented: presenting it
	// makes a newer one.
	Current int64
	// LastUsed is the highest generation that was exchanged, zero for none.
	LastUsed int64
}

// PresentedToken is the token as it is stored.
type PresentedToken struct {
	Generation int64
	ExpiresAt  time.Time
	// UsedAt is the first use, zero for none.
	UsedAt     time.Time
	Superseded bool
}

// DecideRefresh is the whole rule of rotation. Tokens are bound to a device key, so only a
// holder of that key gets here; of all generations just two can be honest: the newest, and
// the last one exchanged while its answer may have been lost. Whatever else once belonged
// to the family proves that a second party took part.
func DecideRefresh(f FamilyState, t PresentedToken, now time.Time, grace time.Duration) RefreshOutcome {
	if f.Ended {
		return RefreshEnded
	}
	switch {
	case t.Superseded:
		return RefreshReuse
	case t.Generation == f.Current && t.UsedAt.IsZero():
		if !now.Before(t.ExpiresAt) {
			return RefreshEnded
		}
		return RefreshRotate
	case t.Generation == f.LastUsed && !t.UsedAt.IsZero() && now.Sub(t.UsedAt) < grace:
		if !now.Before(t.ExpiresAt) {
			return RefreshEnded
		}
		return RefreshReissue
	default:
		return RefreshReuse
	}
}
