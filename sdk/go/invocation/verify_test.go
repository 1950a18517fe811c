// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

const (
	issuer   = "https://chat.example.org"
	instance = "0199c2a0-0015-7000-8000-000000000015"
	agentID  = "0199c2a0-000f-7000-8000-00000000000f"
	personID = "0199c2a0-0010-7000-8000-000000000010"
	eventID  = "0199c2a0-0017-7000-8000-000000000017"
	runID    = "0199c2a0-000e-7000-8000-00000000000e"
)

// bench is a verifier with an instance that signs for it.
type bench struct {
	*Verifier
	key      *ecdsa.PrivateKey
	time     time.Time
	kid      string
	fetches  int
	fetchErr error
	dir      string
}

func setup(t testing.TB, change func(*Policy)) *bench {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{key: key, time: time.Unix(1_800_000_000, 0), kid: "k1", dir: t.TempDir()}
	policy := Policy{Issuer: issuer, InstanceID: instance, AgentID: agentID, BillingMode: api.BillingModeLocal, ToolClass: api.ToolClassChat}
	if change != nil {
		change(&policy)
	}
	replay, err := OpenReplay(filepath.Join(b.dir, "tokens.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = replay.Close() })
	replay.now = func() time.Time { return b.time }
	b.Verifier = NewVerifier(policy, b.fetch, replay)
	b.Verifier.now = func() time.Time { return b.time }
	return b
}

func (b *bench) fetch(context.Context) (*api.JWKS, error) {
	b.fetches++
	if b.fetchErr != nil {
		return nil, b.fetchErr
	}
	point, err := b.key.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	enc := base64.RawURLEncoding.EncodeToString
	y := enc(point[33:])
	return &api.JWKS{Keys: []api.JWK{{Kty: "OKP", Kid: "other", Crv: "Ed25519", X: "AA"}, {Kty: "EC", Crv: "P-256", Alg: "ES256", Kid: b.kid, X: enc(point[1:33]), Y: &y}}}, nil
}

func (b *bench) claims() map[string]any {
	return map[string]any{
		"iss": issuer, "aud": agentID, "sub": personID, "iat": b.time.Unix(), "nbf": b.time.Unix(), "exp": b.time.Add(15 * time.Minute).Unix(),
		"jti": "t1", "instance_id": instance, "purpose": "invocation", "event_id": eventID, "run_id": runID, "channel_id": "c1",
		"billing_mode": "local", "tool_class": "chat",
	}
}

func header() map[string]any {
	return map[string]any{"alg": "ES256", "typ": "invocation+jwt", "kid": "k1"}
}

func (b *bench) sign(head, claims map[string]any) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(head) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, b.key, digest[:])
	if err != nil {
		panic(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func reason(err error) string {
	var r *Rejected
	if errors.As(err, &r) {
		return r.Reason
	}
	return ""
}

func TestAGoodTokenIsTaken(t *testing.T) {
	b := setup(t, nil)
	c, err := b.Verify(t.Context(), b.sign(header(), b.claims()), eventID, runID)
	if err != nil || c.Subject != personID || !c.Expires().Equal(b.time.Add(15*time.Minute)) {
		t.Fatalf("%+v, %v", c, err)
	}
	list := b.claims()
	list["aud"], list["jti"] = []string{agentID}, "t2"
	if _, err := b.Verify(t.Context(), b.sign(header(), list), eventID, runID); err != nil {
		t.Errorf("audience as a list of one: %v", err)
	}
}

func TestEachFaultOfATokenIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		header func(map[string]any)
		claims func(map[string]any)
		policy func(*Policy)
		want   string
	}{
		{name: "algorithm none", header: func(h map[string]any) { h["alg"] = "none" }, want: "algorithm"},
		{name: "symmetric algorithm", header: func(h map[string]any) { h["alg"] = "HS256" }, want: "algorithm"},
		{name: "an access token", header: func(h map[string]any) { h["typ"] = "at+jwt" }, want: "type"},
		{name: "critical extension", header: func(h map[string]any) { h["crit"] = []string{"x"} }, want: "malformed"},
		{name: "no key name", header: func(h map[string]any) { delete(h, "kid") }, want: "malformed"},
		{name: "key of nobody", header: func(h map[string]any) { h["kid"] = "k9" }, want: "unknown_key"},
		{name: "key of another kind", header: func(h map[string]any) { h["kid"] = "other" }, want: "unknown_key"},
		{name: "purpose", claims: func(c map[string]any) { c["purpose"] = "access" }, want: "purpose"},
		{name: "issuer", claims: func(c map[string]any) { c["iss"] = "https://evil.example.org" }, want: "issuer"},
		{name: "instance", claims: func(c map[string]any) { c["instance_id"] = agentID }, want: "instance"},
		{name: "another agent", claims: func(c map[string]any) { c["aud"] = personID }, want: "audience"},
		{name: "several audiences", claims: func(c map[string]any) { c["aud"] = []string{agentID, personID} }, want: "audience"},
		{name: "expired beyond the skew", claims: func(c map[string]any) { c["exp"] = 1_800_000_000 - 60 }, want: "expired"},
		{name: "no end", claims: func(c map[string]any) { delete(c, "exp") }, want: "expired"},
		{name: "not yet", claims: func(c map[string]any) { c["nbf"] = 1_800_000_000 + 61 }, want: "not_yet_valid"},
		{name: "no ID", claims: func(c map[string]any) { delete(c, "jti") }, want: "incomplete"},
		{name: "another event", claims: func(c map[string]any) { c["event_id"] = runID }, want: "event"},
		{name: "another run", claims: func(c map[string]any) { c["run_id"] = eventID }, want: "run"},
		{name: "billing mode", claims: func(c map[string]any) { c["billing_mode"] = "organization" }, want: "billing_mode"},
		{name: "personal for another", policy: func(p *Policy) { p.BillingMode, p.HolderID = api.BillingModePersonal, agentID },
			claims: func(c map[string]any) { c["billing_mode"] = "personal" }, want: "holder"},
		{name: "tools above the order", policy: func(p *Policy) { p.ToolClass = api.ToolClassHost }, want: "tool_class"},
		{name: "unknown tool class", claims: func(c map[string]any) { c["tool_class"] = "all" }, want: "tool_class"},
		{name: "person not allowed here", policy: func(p *Policy) { p.AllowPeople = []string{agentID} }, want: "person_not_allowed"},
		{name: "channel not allowed here", policy: func(p *Policy) { p.AllowChannels = []string{"c2"} }, want: "channel_not_allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := setup(t, test.policy)
			head, claims := header(), b.claims()
			if test.header != nil {
				test.header(head)
			}
			if test.claims != nil {
				test.claims(claims)
			}
			if _, err := b.Verify(t.Context(), b.sign(head, claims), eventID, runID); reason(err) != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestClocksMayDifferByAMinute(t *testing.T) {
	b := setup(t, nil)
	c := b.claims()
	c["exp"], c["nbf"] = b.time.Unix()-59, b.time.Unix()+60
	if _, err := b.Verify(t.Context(), b.sign(header(), c), eventID, runID); err != nil {
		t.Error(err)
	}
}

func TestAChangedTokenIsRefused(t *testing.T) {
	b := setup(t, nil)
	other := setup(t, nil)
	if _, err := b.Verify(t.Context(), other.sign(header(), b.claims()), eventID, runID); reason(err) != "signature" {
		t.Errorf("foreign signature: %v", err)
	}
	good := b.sign(header(), b.claims())
	parts := strings.Split(good, ".")
	c := b.claims()
	c["sub"] = agentID
	forged := strings.Split(b.sign(header(), c), ".")
	if _, err := b.Verify(t.Context(), parts[0]+"."+forged[1]+"."+parts[2], eventID, runID); reason(err) != "signature" {
		t.Errorf("other claims: %v", err)
	}
}

func TestATokenCountsForOneEvent(t *testing.T) {
	b := setup(t, nil)
	token := b.sign(header(), b.claims())
	for range 2 {
		if _, err := b.Verify(t.Context(), token, eventID, runID); err != nil {
			t.Fatalf("delivered again: %v", err)
		}
	}
	c := b.claims()
	c["event_id"] = "other"
	if _, err := b.Verify(t.Context(), b.sign(header(), c), "other", runID); reason(err) != "replayed" {
		t.Errorf("same token ID for another event: %v", err)
	}
	if err := b.replay.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenReplay(filepath.Join(b.dir, "tokens.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	b.replay = again
	if _, err := b.Verify(t.Context(), b.sign(header(), c), "other", runID); reason(err) != "replayed" {
		t.Errorf("after a restart: %v", err)
	}
}

func TestTheMemoryOfTokensForgetsAndSurvivesATornLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens.log")
	r, err := OpenReplay(name)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, u := range []struct {
		id    string
		until time.Time
	}{{"old", now.Add(-time.Second)}, {"new", now.Add(time.Hour)}} {
		if ok, err := r.take(u.id, "e", u.until); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"jti":"torn","ev`)
	_ = f.Close()
	if r, err = OpenReplay(name); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if len(r.used) != 1 || r.used["new"].EventID != "e" {
		t.Errorf("%v", r.used)
	}
}

func TestKeysAreFetchedSeldomAndKeptWhenTheyCannotBe(t *testing.T) {
	b := setup(t, nil)
	n := 0
	verify := func(kid string) error {
		n++
		h, c := header(), b.claims()
		h["kid"], c["jti"] = kid, string(rune('a'+n))
		_, err := b.Verify(t.Context(), b.sign(h, c), eventID, runID)
		return err
	}
	for range 5 {
		if err := verify("k1"); err != nil {
			t.Fatal(err)
		}
	}
	if b.fetches != 1 {
		t.Fatalf("%d fetches", b.fetches)
	}
	if err := verify("k2"); !errors.Is(err, errKeysUnknown) || reason(err) != "" {
		t.Errorf("unknown key a moment after a fetch: %v", err)
	}
	b.time = b.time.Add(time.Minute)
	b.kid = "k2"
	if err := verify("k2"); err != nil || b.fetches != 2 {
		t.Errorf("rotated key: %v after %d fetches", err, b.fetches)
	}
	b.time, b.fetchErr = b.time.Add(time.Hour), errors.New("unreachable")
	if err := verify("k2"); err != nil {
		t.Errorf("keys cannot be fetched: %v", err)
	}
	b.time = b.time.Add(time.Hour)
	if err := verify("k3"); err == nil || reason(err) != "" {
		t.Errorf("unknown key while keys cannot be fetched: %v, must not be final", err)
	}
}

func FuzzTokensNeverPanicAndAreNeverBelieved(f *testing.F) {
	b := setup(f, nil)
	good := b.sign(header(), b.claims())
	for _, seed := range []string{"", "..", "a.b.c", good[:len(good)-3], "e30.e30.e30", strings.Repeat("A", 20000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if token == good {
			t.Skip()
		}
		if _, err := b.Verify(context.Background(), token, eventID, runID); err == nil && token != good {
			// Base64 allows a last character with spare bits, which stand for the same token.
			if p, _ := parse(token); p == nil || !p.signedBy(&b.key.PublicKey) {
				t.Errorf("%q was believed", token)
			}
		}
	})
}
