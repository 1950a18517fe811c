// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const testGrace = 24 * time.Hour

func TestDecideRefresh(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	later := now.Add(time.Hour)
	used := func(ago time.Duration) time.Time { return now.Add(-ago) }
	for name, c := range map[string]struct {
		family FamilyState
		token  PresentedToken
		want   RefreshOutcome
	}{
		"current":                     {FamilyState{Current: 1}, PresentedToken{Generation: 1, ExpiresAt: later}, RefreshRotate},
		"current, expired":            {FamilyState{Current: 1}, PresentedToken{Generation: 1, ExpiresAt: now}, RefreshEnded},
		"ended family":                {FamilyState{Current: 1, Ended: true}, PresentedToken{Generation: 1, ExpiresAt: later}, RefreshEnded},
		"lost answer":                 {FamilyState{Current: 2, LastUsed: 1}, PresentedToken{Generation: 1, ExpiresAt: later, UsedAt: used(time.Minute)}, RefreshReissue},
		"lost answer twice":           {FamilyState{Current: 3, LastUsed: 1}, PresentedToken{Generation: 1, ExpiresAt: later, UsedAt: used(time.Minute)}, RefreshReissue},
		"lost answer after the grace": {FamilyState{Current: 2, LastUsed: 1}, PresentedToken{Generation: 1, ExpiresAt: later, UsedAt: used(testGrace)}, RefreshReuse},
		"predecessor after its successor was used": {FamilyState{Current: 3, LastUsed: 2}, PresentedToken{Generation: 1, ExpiresAt: later, UsedAt: used(time.Minute)}, RefreshReuse},
		"superseded": {FamilyState{Current: 3, LastUsed: 1}, PresentedToken{Generation: 2, ExpiresAt: later, Superseded: true}, RefreshReuse},
	} {
		if got := DecideRefresh(c.family, c.token, now, testGrace); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// refreshModel is the store side of rotation, as the use case keeps it.
type refreshModel struct {
	family FamilyState
	tokens map[int64]*PresentedToken
	expiry time.Time
}

func (m *refreshModel) issue() int64 {
	m.family.Current++
	m.tokens[m.family.Current] = &PresentedToken{Generation: m.family.Current, ExpiresAt: m.expiry}
	return m.family.Current
}

// present is one refresh: the new generation, or zero for a refusal.
func (m *refreshModel) present(generation int64, now time.Time) int64 {
	token := m.tokens[generation]
	switch DecideRefresh(m.family, *token, now, testGrace) {
	case RefreshRotate:
		token.UsedAt = now
		m.family.LastUsed = generation
		return m.issue()
	case RefreshReissue:
		m.tokens[m.family.Current].Superseded = true
		return m.issue()
	case RefreshReuse:
		m.family.Ended = true
	}
	return 0
}

// live counts the tokens that would be exchanged and are not the last one used.
func (m *refreshModel) live(now time.Time) int {
	n := 0
	for _, token := range m.tokens {
		if DecideRefresh(m.family, *token, now, testGrace) == RefreshRotate {
			n++
		}
	}
	return n
}

// TestRefreshInterleavings plays a client whose answers may be lost against a thief who
// copied whatever the client held at some moment.
func TestRefreshInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		m := &refreshModel{tokens: map[int64]*PresentedToken{}, expiry: now.Add(4320 * time.Hour)}
		client := m.issue()
		var thief int64
		thiefUsed, clientAfterTheft := false, false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute)
			switch rapid.SampledFrom([]string{"refresh", "refresh", "lost", "steal", "thief", "thief-lost"}).Draw(t, "step") {
			case "refresh":
				got := m.present(client, now)
				if got != 0 {
					client = got
				} else if !thiefUsed {
					t.Fatalf("an honest client was refused")
				}
				clientAfterTheft = clientAfterTheft || thiefUsed
			case "lost":
				if m.present(client, now) == 0 && !thiefUsed {
					t.Fatalf("an honest client was refused after a lost answer")
				}
				clientAfterTheft = clientAfterTheft || thiefUsed
			case "steal":
				thief = client
			case "thief", "thief-lost":
				if thief == 0 {
					continue
				}
				if got := m.present(thief, now); got != 0 {
					thief = got
				}
				thiefUsed = true
			}
			if n := m.live(now); n > 1 {
				t.Fatalf("%d tokens can be exchanged", n)
			}
			if m.family.Ended && !thiefUsed {
				t.Fatalf("the family ended without a second party")
			}
		}
		// Two parties that go on cannot both stay: within two turns each the family ends.
		if thiefUsed && !m.family.Ended {
			for range 2 {
				if got := m.present(client, now); got != 0 {
					client = got
				}
				if got := m.present(thief, now); got != 0 {
					thief = got
				}
			}
			if !m.family.Ended && client != thief {
				t.Fatalf("client and thief both stay (client used after theft: %v)", clientAfterTheft)
			}
		}
	})
}
