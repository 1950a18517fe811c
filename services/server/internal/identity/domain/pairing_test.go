// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestUserCodes(t *testing.T) {
	seen := map[UserCode]bool{}
	letters := map[rune]int{}
	for range 5000 {
		code := NewUserCode()
		if seen[code] {
			t.Fatalf("%s twice", code)
		}
		seen[code] = true
		for _, c := range code {
			letters[c]++
		}
		back, err := ParseUserCode(strings.ToLower(code.Shown()))
		if err != nil || back != code {
			t.Fatalf("%s read back as %s, %v", code, back, err)
		}
	}
	if len(letters) != len(userCodeLetters) {
		t.Errorf("%d letters are used", len(letters))
	}
	for c, n := range letters {
		if n < 1700 || n > 2300 { // 2000 of 40,000 are expected
			t.Errorf("%c came %d times", c, n)
		}
	}
	for _, text := range []string{"", "BCDF", "BCDF-GHJ", "BCDF-GHJKL", "ACDF-GHJK", "BCDF_GHJK", "BCDF-GHJ1", strings.Repeat(" ", 60) + "BCDFGHJK"} {
		if _, err := ParseUserCode(text); err == nil {
			t.Errorf("%q is a code", text)
		}
	}
	if UserCode("BCDFGHJK").Hash([]byte("a")) == UserCode("BCDFGHJK").Hash([]byte("b")) {
		t.Error("the hash has no key")
	}
}

func FuzzParseUserCode(f *testing.F) {
	f.Add("BCDF-GHJK")
	f.Add("bcdf ghjk")
	f.Fuzz(func(t *testing.T, text string) {
		code, err := ParseUserCode(text)
		if err != nil {
			return
		}
		if again, err := ParseUserCode(code.Shown()); err != nil || again != code {
			t.Fatalf("%q is read as %q and that as %q, %v", text, code, again, err)
		}
	})
}

func TestPoll(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	base := Pairing{State: PairingPending, ExpiresAt: now.Add(time.Minute), PollInterval: PollInterval}
	with := func(change func(*Pairing)) Pairing {
		p := base
		change(&p)
		return p
	}
	for name, c := range map[string]struct {
		pairing Pairing
		want    PollOutcome
		next    time.Duration
	}{
		"first question": {base, PollPending, PollInterval},
		"in time":        {with(func(p *Pairing) { p.LastPolledAt = now.Add(-PollInterval) }), PollPending, PollInterval},
		"too early":      {with(func(p *Pairing) { p.LastPolledAt = now.Add(-PollInterval + 1) }), PollSlowDown, 2 * PollInterval},
		"never slower than a minute": {with(func(p *Pairing) {
			p.LastPolledAt, p.PollInterval = now, time.Minute
		}), PollSlowDown, time.Minute},
		"approved, early":     {with(func(p *Pairing) { p.State, p.LastPolledAt = PairingApproved, now }), PollReady, PollInterval},
		"approved, too late":  {with(func(p *Pairing) { p.State, p.ExpiresAt = PairingApproved, now }), PollOver, PollInterval},
		"denied, also late":   {with(func(p *Pairing) { p.State, p.ExpiresAt = PairingDenied, now }), PollDenied, PollInterval},
		"collected":           {with(func(p *Pairing) { p.State = PairingConsumed }), PollOver, PollInterval},
		"nobody has decided":  {with(func(p *Pairing) { p.ExpiresAt = now }), PollOver, PollInterval},
		"ended with a person": {with(func(p *Pairing) { p.State = PairingExpired }), PollOver, PollInterval},
	} {
		if got, next := c.pairing.Poll(now); got != c.want || next != c.next {
			t.Errorf("%s: %v, %v", name, got, next)
		}
	}
}

// Whatever the order of questions, decisions and time: tokens are collected at most once, only
// behind an approval, and never behind a refusal or the end.
func TestPairingHandsOutOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		p := Pairing{State: PairingPending, ExpiresAt: now.Add(10 * time.Minute), PollInterval: PollInterval}
		collected, approved := 0, false
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "s")) * time.Second) },
			"decide": func(t *rapid.T) {
				if !p.Open(now) {
					return
				}
				if approved = rapid.Bool().Draw(t, "approve"); approved {
					p.State = PairingApproved
				} else {
					p.State = PairingDenied
				}
			},
			"poll": func(t *rapid.T) {
				outcome, next := p.Poll(now)
				p.PollInterval = next
				switch outcome {
				case PollReady:
					collected++
					p.State = PairingConsumed
				case PollPending, PollSlowDown:
					p.LastPolledAt = now
				}
			},
			"": func(t *rapid.T) {
				if collected > 1 || collected == 1 && !approved {
					t.Fatalf("collected %d times, approved %v", collected, approved)
				}
				if p.PollInterval < PollInterval || p.PollInterval > pollIntervalMost {
					t.Fatalf("the interval is %v", p.PollInterval)
				}
			},
		})
	})
}
