// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// prover makes proofs of a key for the server, each with a fresh nonce.
type prover struct {
	server *harness.Server
	key    *identitytest.Key
}

func (p prover) nonce(t *testing.T) string {
	t.Helper()
	path := p.server.URL + "/api/v1/auth/login"
	fetch := p.server.Anonymous().Call(t, "beginLogin", harness.Body{"driver": "local", "device": device}, harness.Header{
		"DPoP": p.key.Proof(t, identitytest.Claims{Method: "POST", URL: path, IssuedAt: p.server.Clock.Now()}),
	})
	return fetch.Refused(t, "use_dpop_nonce").Header.Get("DPoP-Nonce")
}

// proof is for GET /me with the token, changed by the edit.
func (p prover) proof(t *testing.T, token string, edit func(*identitytest.Claims)) string {
	t.Helper()
	c := identitytest.Claims{
		Method: "GET", URL: p.server.URL + "/api/v1/me", AccessToken: token, Nonce: p.nonce(t), IssuedAt: p.server.Clock.Now(),
	}
	if edit != nil {
		edit(&c)
	}
	return p.key.Proof(t, c)
}

// Whoever finds an access token in a log or a memory dump cannot use it.
func TestAStolenAccessTokenIsUseless(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	stolen := ana.Access()
	nobody := s.Anonymous()
	owner, thief := prover{s, ana.DeviceKey}, prover{s, identitytest.NewKey(t)}
	get := func(headers harness.Header) *harness.Response { return nobody.Call(t, "getSelf", headers) }
	with := func(proof string) harness.Header {
		return harness.Header{"Authorization": "DPoP " + stolen, "DPoP": proof}
	}
	get(with(owner.proof(t, stolen, nil))).OK(t)
	for name, c := range map[string]struct {
		headers harness.Header
		code    string
	}{
		"as a bearer token":       {harness.Header{"Authorization": "Bearer " + stolen}, "unauthenticated"},
		"as a bearer with proof":  {harness.Header{"Authorization": "Bearer " + stolen, "DPoP": owner.proof(t, stolen, nil)}, "unauthenticated"},
		"without a proof":         {harness.Header{"Authorization": "DPoP " + stolen}, "invalid_dpop_proof"},
		"with a key of the thief": {with(thief.proof(t, stolen, nil)), "invalid_dpop_proof"},
		"with a proof for another address": {with(owner.proof(t, stolen, func(c *identitytest.Claims) {
			c.URL = s.URL + "/api/v1/me/sessions"
		})), "invalid_dpop_proof"},
		"with a proof for another server": {with(owner.proof(t, stolen, func(c *identitytest.Claims) {
			c.URL = "https://evil.example/api/v1/me"
		})), "invalid_dpop_proof"},
		"with a proof for another method":     {with(owner.proof(t, stolen, func(c *identitytest.Claims) { c.Method = "PATCH" })), "invalid_dpop_proof"},
		"with a proof without the token":      {with(owner.proof(t, "", nil)), "invalid_dpop_proof"},
		"with a proof for another token":      {with(owner.proof(t, stolen+"x", nil)), "invalid_dpop_proof"},
		"with a proof that has no nonce":      {with(owner.proof(t, stolen, func(c *identitytest.Claims) { c.Nonce = "" })), "use_dpop_nonce"},
		"with a proof under a nonce made up":  {with(owner.proof(t, stolen, func(c *identitytest.Claims) { c.Nonce = strings.Repeat("A", 43) })), "use_dpop_nonce"},
		"with a proof that is a day too late": {with(owner.proof(t, stolen, func(c *identitytest.Claims) { c.IssuedAt = c.IssuedAt.Add(-25 * time.Hour) })), "invalid_dpop_proof"},
		"with two proofs in one":              {with(owner.proof(t, stolen, nil) + "," + owner.proof(t, stolen, nil)), "invalid_dpop_proof"},
	} {
		t.Run(name, func(t *testing.T) { get(c.headers).Refused(t, c.code) })
	}
	t.Run("with a proof that was seen on the way", func(t *testing.T) {
		seen := with(owner.proof(t, stolen, nil))
		get(seen).OK(t)
		get(seen).Refused(t, "invalid_dpop_proof")
	})
	t.Run("its owner does not notice", func(t *testing.T) { ana.Call(t, "getSelf").OK(t) })
}

// The same for a refresh token, and whoever tries it cannot end the session either.
func TestAStolenRefreshTokenIsUseless(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	thief := newDevice(t, s)
	body := harness.Body{"refresh_token": ana.Refresh()}
	for range 3 {
		thief.Call(t, "refreshToken", body).Refused(t, "unauthenticated", "session_ended")
	}
	// A member of the same instance is no better off, with a session of her own.
	s.Person(t, "bob").Call(t, "refreshToken", body).Refused(t, "unauthenticated", "session_ended")
	ana.Call(t, "getSelf").OK(t)
	ana.Renew(t).OK(t)
	thief.Call(t, "refreshToken", body).Refused(t, "unauthenticated", "session_ended")
	ana.Renew(t).OK(t)
	ana.Call(t, "getSelf").OK(t)
}

// twin is the client in another tab: the same key and tokens, and a nonce of its own.
func twin(c *harness.Client) *harness.Client {
	other := &harness.Client{
		Server: c.Server, ID: c.ID, Handle: c.Handle, Password: c.Password, Session: c.Session, Device: c.Device, DeviceKey: c.DeviceKey,
	}
	other.Hold(c.Access(), c.Refresh())
	return other
}

// Two tabs without a lock between them send the same refresh token. Nobody is signed out by
// that. When both go on with what they got, the session ends: two hands hold it.
func TestTwoTabsRefreshAtOnce(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	tabs := []*harness.Client{twin(ana), twin(ana)}
	var wait sync.WaitGroup
	answers := make([]*harness.Response, len(tabs))
	for i, tab := range tabs {
		wait.Go(func() { answers[i] = tab.Call(t, "refreshToken", harness.Body{"refresh_token": ana.Refresh()}) })
	}
	wait.Wait()
	for i, tab := range tabs {
		tab.Adopt(answers[i].Is(t, http.StatusOK))
		tab.Call(t, "getSelf").OK(t)
	}
	if tabs[0].Refresh() == tabs[1].Refresh() {
		t.Error("both tabs hold one token")
	}
	// Of the two successors one is superseded. Its use shows that the tabs went apart.
	tabs[0].Renew(t)
	tabs[1].Renew(t).Refused(t, "unauthenticated", "session_ended")
	ana.Call(t, "getSelf").Refused(t, "unauthenticated", "session_ended")
}

// A client whose answers are lost comes back with the same token for a day, however often.
func TestLostAnswersOfARefreshEndNothing(t *testing.T) {
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	kept := ana.Refresh()
	for range 5 {
		ana.Call(t, "refreshToken", harness.Body{"refresh_token": kept}).Is(t, http.StatusOK)
		s.Clock.Advance(4 * time.Hour)
	}
	ana.Renew(t).Is(t, http.StatusOK)
	ana.Call(t, "getSelf").OK(t)
	// The answer arrived and was used: from then on the old token is in the wrong hands.
	ana.Renew(t).Is(t, http.StatusOK)
	ana.Call(t, "refreshToken", harness.Body{"refresh_token": kept}).Refused(t, "unauthenticated", "session_ended")
	ana.Call(t, "getSelf").Refused(t, "unauthenticated", "session_ended")
}

func TestALostAnswerIsForgivenForADay(t *testing.T) {
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	kept := ana.Refresh()
	ana.Call(t, "refreshToken", harness.Body{"refresh_token": kept}).Is(t, http.StatusOK)
	s.Clock.Advance(24 * time.Hour)
	ana.Call(t, "refreshToken", harness.Body{"refresh_token": kept}).Refused(t, "unauthenticated", "session_ended")
}

// Credentials are taken from the headers alone, and from each of them once.
func TestCredentialsStandInOneHeader(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	pat := ana.Token(t, "identity.read")
	pat.Call(t, "getSelf").OK(t)
	s.Anonymous().Call(t, "getSelf", harness.Query{"access_token": pat.Bearer}).Refused(t, "unauthenticated")
	pat.Call(t, "getSelf", harness.Query{"access_token": pat.Bearer}).Refused(t, "validation_failed")
}
