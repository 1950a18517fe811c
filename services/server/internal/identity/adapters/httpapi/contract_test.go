// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var now = time.Date(2028, 2, 29, 12, 0, 0, 123_000_000, time.UTC)

func fullAccount() app.Account {
	emoji, until, login := "🌲", now.Add(time.Hour), now
	return app.Account{
		ID: ids.New(), Kind: actor.KindPerson, Status: identity.StatusActive, Handle: "ana", DisplayName: "Ana", Version: 7,
		CreatedAt: now, Owner: true,
		Person: &app.Person{
			Email: "ana@example.org", EmailVerified: true, Locale: "pt-BR", TimeZone: "Europe/Lisbon", Title: "Chief", Pronouns: "she",
			Bio: "two\nlines", Status: &app.CustomStatus{Emoji: &emoji, Text: "out", Until: &until}, LastLoginAt: &login, HasPassword: true,
		},
	}
}

// The events carry members in a form of their own; it must be the contract's.
func TestEventPayloadsFollowTheContract(t *testing.T) {
	agent := app.Account{ID: ids.New(), Kind: actor.KindAgent, Status: identity.StatusActive, Handle: "bot", DisplayName: "Bot", Version: 1}
	for name, a := range map[string]app.Account{"person": fullAccount(), "agent": agent} {
		if got, want := encode(t, app.EntryOf(a)), encode(t, directoryEntry(app.Shown{Account: a})); !bytes.Equal(got, want) {
			t.Errorf("%s: the event says\n%s, the operation\n%s", name, got, want)
		}
	}
	a := fullAccount()
	view := self(app.SelfView{Account: a})
	if got, want := encode(t, app.SelfEntryOf(a)), encode(t, view); !bytes.Equal(got, want) {
		t.Errorf("self: the event says\n%s, the operation\n%s", got, want)
	}
}

// encode writes JSON with its members in one order.
func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(members); err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestAddressesAreShownOnlyWhereAllowed(t *testing.T) {
	a := fullAccount()
	if directoryEntry(app.Shown{Account: a}).Email != nil {
		t.Error("the address is shown to everybody")
	}
	if e := directoryEntry(app.Shown{Account: a, ShowEmail: true}).Email; e == nil || *e != "ana@example.org" {
		t.Error("the address is hidden from her")
	}
	if encoded := encode(t, userListItem(app.Shown{Account: a})); bytes.Contains(encoded, []byte("last_login_at")) {
		t.Errorf("the last login is shown to everybody: %s", encoded)
	}
	if encoded := encode(t, userListItem(app.Shown{Account: a, ShowAdmin: true})); !bytes.Contains(encoded, []byte(`"last_login_at":"2028-02-29T12:00:00.123Z"`)) {
		t.Errorf("the last login is hidden from owners: %s", encoded)
	}
}

func TestIfMatch(t *testing.T) {
	if v, err := ifMatch(`"7"`); err != nil || v != 7 {
		t.Errorf("%d, %v", v, err)
	}
	for _, header := range []string{"", "*", `W/"7"`, `"x"`} {
		if _, err := ifMatch(header); !errs.Is(err, errs.CodeVersionConflict) {
			t.Errorf("%q: %v", header, err)
		}
	}
}

func TestProofMiddleware(t *testing.T) {
	clk := clocktest.New(now)
	cfg := app.DefaultConfig()
	cfg.PublicURL, cfg.CodeHMACKey = identitytest.Origin, []byte("a secret of at least thirty-two bytes")
	proofs, err := app.NewProofs(cfg, clk)
	if err != nil {
		t.Fatal(err)
	}
	var got app.ProofInput
	handler := ProofMiddleware(proofs)(func(ctx context.Context, _ http.ResponseWriter, _ *http.Request, _ any) (any, error) {
		got = proofOf(ctx)
		return nil, nil
	}, "beginLogin")
	serve := func(proofs ...string) {
		got = app.ProofInput{}
		r := httptest.NewRequest(http.MethodPost, "/api/v1/auth/login?x=y", http.NoBody)
		for _, p := range proofs {
			r.Header.Add("DPoP", p)
		}
		w := httptest.NewRecorder()
		if _, err := handler(r.Context(), w, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	url := identitytest.Origin + "/api/v1/auth/login"
	proof := identitytest.NewKey(t).Proof(t, identitytest.Claims{Method: "POST", URL: url, Nonce: proofs.Nonce()})
	if serve(proof); got != (app.ProofInput{Compact: proof, Method: "POST", URL: url}) {
		t.Errorf("handed over %+v", got)
	}
	if serve(proof, proof); got != (app.ProofInput{}) {
		t.Error("one of two proofs is taken")
	}
}

func TestNoncesOfProofs(t *testing.T) {
	clk := clocktest.New(now)
	cfg := app.DefaultConfig()
	cfg.PublicURL, cfg.CodeHMACKey = identitytest.Origin, []byte("a secret of at least thirty-two bytes")
	proofs, err := app.NewProofs(cfg, clk)
	if err != nil {
		t.Fatal(err)
	}
	look, key := Nonces(proofs), identitytest.NewKey(t)
	proof := func(nonce string) string {
		return key.Proof(t, identitytest.Claims{Method: "POST", URL: identitytest.Origin, Nonce: nonce})
	}
	for name, c := range map[string]struct {
		age           time.Duration
		proof         func(nonce string) string
		fresh, needed bool
	}{
		"young":             {0, proof, false, false},
		"a minute old":      {time.Minute, proof, true, false},
		"over":              {3 * time.Minute, proof, true, true},
		"no nonce":          {0, func(string) string { return proof("") }, true, true},
		"a foreign nonce":   {0, func(string) string { return proof("AAAA") }, true, true},
		"an empty header":   {0, func(string) string { return "" }, false, false},
		"no proof":          {0, func(string) string { return "a.b.c" }, false, false},
		"claims of nothing": {0, func(string) string { return "a.IiI.c" }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.proof(proofs.Nonce())
			clk.Advance(c.age)
			fresh, needed := look(text)
			if (fresh != "") != c.fresh || needed != c.needed {
				t.Errorf("fresh %q, needed %v", fresh, needed)
			}
		})
	}
}

func FuzzNonceOf(f *testing.F) {
	f.Add("a.eyJub25jZSI6Im4ifQ.c")
	f.Add("..")
	f.Fuzz(func(_ *testing.T, compact string) { nonceOf(compact) })
}
