// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestUsesOfAPasskey(t *testing.T) {
	person := ids.New()
	own, foreign := UserHandle(person), UserHandle(ids.New())
	for name, c := range map[string]struct {
		state   PasskeyState
		use     PasskeyUse
		needed  bool
		refused error
	}{
		"no counter":                {use: PasskeyUse{UserHandle: own}, needed: true},
		"a growing counter":         {state: PasskeyState{SignCount: 4}, use: PasskeyUse{UserHandle: own, SignCount: 9}, needed: true},
		"a counter that stands":     {state: PasskeyState{SignCount: 4}, use: PasskeyUse{UserHandle: own, SignCount: 4}, refused: ErrPasskeyCloned},
		"a counter that shrinks":    {state: PasskeyState{SignCount: 4}, use: PasskeyUse{UserHandle: own, SignCount: 3}, refused: ErrPasskeyCloned},
		"a counter that is gone":    {state: PasskeyState{SignCount: 4}, use: PasskeyUse{UserHandle: own}, refused: ErrPasskeyCloned},
		"somebody else's handle":    {use: PasskeyUse{UserHandle: foreign}, refused: ErrPasskey},
		"no handle where needed":    {needed: true, refused: ErrPasskey},
		"no handle where she named": {},
		"newly eligible for backup": {use: PasskeyUse{UserHandle: own, BackupEligible: true}, refused: ErrPasskey},
		"no longer eligible":        {state: PasskeyState{BackupEligible: true}, use: PasskeyUse{UserHandle: own}, refused: ErrPasskey},
		"backed up, not eligible":   {use: PasskeyUse{UserHandle: own, BackedUp: true}, refused: ErrPasskey},
		"backed up since":           {state: PasskeyState{BackupEligible: true}, use: PasskeyUse{UserHandle: own, BackupEligible: true, BackedUp: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.state.PrincipalID = person
			err := c.state.CheckUse(c.use, c.needed)
			if !errors.Is(err, c.refused) || (err == nil) != (c.refused == nil) {
				t.Errorf("%v, want %v", err, c.refused)
			}
		})
	}
}

// However an original and a copy of a counting authenticator take turns, what is accepted
// never counts backwards, and as soon as the one that is behind is used, that is noticed.
func TestCopiesOfACountingPasskeyAreNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := PasskeyState{PrincipalID: ids.New(), SignCount: rapid.Int64Range(1, 1000).Draw(t, "stored")}
		counters := [2]int64{stored.SignCount, stored.SignCount}
		for range rapid.IntRange(1, 30).Draw(t, "uses") {
			who := rapid.IntRange(0, 1).Draw(t, "who")
			counters[who] += rapid.Int64Range(1, 3).Draw(t, "step")
			err := stored.CheckUse(PasskeyUse{UserHandle: UserHandle(stored.PrincipalID), SignCount: counters[who]}, true)
			if behind := counters[who] <= stored.SignCount; behind != errors.Is(err, ErrPasskeyCloned) {
				t.Fatalf("counter %d after %d: %v", counters[who], stored.SignCount, err)
			}
			if err == nil {
				stored.SignCount = counters[who]
			}
		}
	})
}

func TestNewPasskeys(t *testing.T) {
	good := NewPasskey{CredentialID: []byte("id"), PublicKey: []byte("key"), Alg: AlgES256}
	for name, c := range map[string]struct {
		change func(*NewPasskey)
		fits   bool
	}{
		"as asked":                {func(*NewPasskey) {}, true},
		"no ID":                   {func(p *NewPasskey) { p.CredentialID = nil }, false},
		"a long ID":               {func(p *NewPasskey) { p.CredentialID = make([]byte, 1024) }, false},
		"an algorithm not asked":  {func(p *NewPasskey) { p.Alg = -257 - 1 }, false},
		"backed up, not eligible": {func(p *NewPasskey) { p.BackedUp = true }, false},
	} {
		p := good
		c.change(&p)
		if err := p.Check(); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTransportsAreHints(t *testing.T) {
	got := UsableTransports([]string{"usb", "usb", "", "<script>", strings.Repeat("a", 33), "smart-card", "INTERNAL"})
	if strings.Join(got, " ") != "usb smart-card" {
		t.Errorf("%q", got)
	}
	if n := len(UsableTransports(strings.Split("a b c d e f g h i j", " "))); n != transportsMax {
		t.Errorf("%d are kept", n)
	}
	if UsableTransports(nil) == nil {
		t.Error("no list at all")
	}
}

func TestRelyingParty(t *testing.T) {
	for url, want := range map[string]string{
		"https://chat.example": "chat.example", "https://chat.example:8443/": "chat.example", "http://localhost:8080": "localhost", "": "", "x": "",
	} {
		got, err := RelyingPartyID(url)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", url, got, err)
		}
	}
}

func TestWaysIn(t *testing.T) {
	none, one := WaysIn{}, WaysIn{Passkeys: 1}
	for name, c := range map[string]struct {
		left             WaysIn
		own, owner, want bool
	}{
		"another way is left":           {one, true, true, true},
		"nobody takes her own last way": {none, true, false, false},
		"an owner keeps one":            {none, false, true, false},
		"an owner may take a member's":  {none, false, false, true},
		"a password is a way":           {WaysIn{Password: true}, true, false, true},
		"an identity is a way":          {WaysIn{Identities: 1}, true, true, true},
	} {
		if got := c.left.MayBecome(c.own, c.owner); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
