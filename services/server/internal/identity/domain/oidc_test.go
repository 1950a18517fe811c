// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

const issuer = "https://id.example.org"

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

type doc = map[string]any

func with(base doc, more doc) doc {
	out := doc{}
	for k, v := range base {
		out[k] = v
	}
	for k, v := range more {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = v
	}
	return out
}

func TestMetadataSpeaksForItsIssuer(t *testing.T) {
	good := doc{
		"issuer": issuer, "authorization_endpoint": issuer + "/a", "token_endpoint": issuer + "/t", "jwks_uri": issuer + "/k", "userinfo_endpoint": issuer + "/u",
	}
	if m, err := ParseMetadata(encoded(t, good), issuer); err != nil || m.TokenEndpoint != issuer+"/t" {
		t.Fatalf("%+v, %v", m, err)
	}
	for name, c := range map[string]struct {
		change doc
		want   error
	}{
		"other issuer":        {doc{"issuer": "https://evil.example"}, ErrIssuerMismatch},
		"almost the issuer":   {doc{"issuer": issuer + "/"}, ErrIssuerMismatch},
		"no token endpoint":   {doc{"token_endpoint": nil}, ErrProviderDocument},
		"no keys":             {doc{"jwks_uri": nil}, ErrProviderDocument},
		"plain http":          {doc{"token_endpoint": "http://id.example.org/t"}, ErrProviderDocument},
		"script":              {doc{"authorization_endpoint": "javascript:alert(1)"}, ErrProviderDocument},
		"with a user":         {doc{"jwks_uri": "https://user@id.example.org/k"}, ErrProviderDocument},
		"with a fragment":     {doc{"userinfo_endpoint": issuer + "/u#x"}, ErrProviderDocument},
		"wrong kind of value": {doc{"issuer": 7}, ErrProviderDocument},
	} {
		if _, err := ParseMetadata(encoded(t, with(good, c.change)), issuer); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	local := with(good, doc{"issuer": "http://127.0.0.1:9", "token_endpoint": "http://127.0.0.1:9/t"})
	if _, err := ParseMetadata(encoded(t, local), "http://127.0.0.1:9"); err != nil {
		t.Errorf("a provider on the own machine: %v", err)
	}
	m := ProviderMetadata{ChallengeMethods: []string{"plain"}, TokenAuthMethods: []string{"private_key_jwt"}}
	if got := m.Unsupported(ClientSecretPost); !slices.Equal(got, []string{"pkce_unsupported", "client_auth_unsupported"}) {
		t.Errorf("unsupported: %v", got)
	}
	if got := (ProviderMetadata{}).Unsupported(ClientSecretBasic); got != nil {
		t.Errorf("silence is the default of the specification: %v", got)
	}
}

// signer is a provider's key with what it publishes of it.
type signer struct {
	key  *ecdsa.PrivateKey
	kid  string
	jwks doc
}

func newSigner(t testing.TB, kid string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := jose.FromPublic(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public.KeyID = kid
	return signer{key, kid, doc{"keys": []any{public}}}
}

func (s signer) sign(t testing.TB, claims doc) string {
	t.Helper()
	token, err := jose.Sign(s.key, jose.Header{KeyID: s.kid}, encoded(t, claims))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s signer) keys(t testing.TB) []ProviderKey {
	t.Helper()
	keys, err := ParseKeySet(encoded(t, s.jwks))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	return keys
}

func TestKeySetsKeepWhatVerifies(t *testing.T) {
	ec := newSigner(t, "a").jwks["keys"].([]any)[0]
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	edKey, err := jose.FromPublic(ed.Public())
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := func(bytes int) doc {
		n := make([]byte, bytes)
		n[0], n[bytes-1] = 0x80, 1
		return doc{"kty": "RSA", "n": base64.RawURLEncoding.EncodeToString(n), "e": "AQAB"}
	}
	set := doc{"keys": []any{
		ec, edKey, with(rsaKey(256), doc{"alg": "PS256"}), rsaKey(256),
		with(rsaKey(256), doc{"use": "enc"}), with(rsaKey(256), doc{"alg": "RS512"}), rsaKey(128),
		doc{"kty": "oct", "k": "c2VjcmV0"}, doc{"kty": "EC", "crv": "P-384"}, "text", doc{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
	}}
	keys, err := ParseKeySet(encoded(t, set))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range keys {
		names = append(names, k.AlgorithmName())
	}
	// A short RSA key stays in the list and fits no token.
	if want := []string{"ES256", "EdDSA", "PS256", "RS256", ""}; !slices.Equal(names, want) {
		t.Errorf("kept %q, want %q", names, want)
	}
	for name, raw := range map[string]string{"no list": `{}`, "a list": `[]`, "nothing": ``, "too many": `{"keys":[` + strings.Repeat(`1,`, 60) + `1]}`} {
		if _, err := ParseKeySet([]byte(raw)); !errors.Is(err, ErrProviderDocument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func part(v string) string { return base64.RawURLEncoding.EncodeToString([]byte(v)) }

func TestOnlyPublishedKeysVerify(t *testing.T) {
	good, other := newSigner(t, "a"), newSigner(t, "a")
	keys := good.keys(t)
	token := good.sign(t, doc{"sub": "x"})
	if payload, err := VerifyIDToken(token, keys); err != nil || string(payload) != `{"sub":"x"}` {
		t.Fatalf("%s, %v", payload, err)
	}
	public := keys[0].Public.(*ecdsa.PublicKey)
	point, _ := public.Bytes()
	mac := hmac.New(sha256.New, point)
	confused := part(`{"alg":"HS256","kid":"a"}`) + "." + part(`{"sub":"x"}`)
	mac.Write([]byte(confused))
	body := strings.Split(token, ".")
	for name, c := range map[string]struct {
		token string
		want  TokenFault
	}{
		"none":              {part(`{"alg":"none","kid":"a"}`) + "." + body[1] + ".", TokenMalformed},
		"none with a text":  {part(`{"alg":"none","kid":"a"}`) + "." + body[1] + "." + body[2], TokenUnknownKey},
		"shared secret":     {confused + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), TokenUnknownKey},
		"other algorithm":   {part(`{"alg":"RS256","kid":"a"}`) + "." + body[1] + "." + body[2], TokenUnknownKey},
		"unknown key":       {newSigner(t, "b").sign(t, doc{}), TokenUnknownKey},
		"key of the sender": {part(`{"alg":"ES256","kid":"a","jwk":{"kty":"EC"}}`) + "." + body[1] + "." + body[2], TokenMalformed},
		"critical":          {part(`{"alg":"ES256","kid":"a","crit":["exp"]}`) + "." + body[1] + "." + body[2], TokenMalformed},
		"foreign signature": {other.sign(t, doc{"sub": "x"}), TokenSignature},
		"changed":           {body[0] + "." + part(`{"sub":"y"}`) + "." + body[2], TokenSignature},
		"cut":               {body[0] + "." + body[1], TokenMalformed},
		"text":              {"token", TokenMalformed},
	} {
		if _, err := VerifyIDToken(c.token, keys); FaultOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	unnamed := signer{good.key, "", good.jwks}
	if _, err := VerifyIDToken(unnamed.sign(t, doc{}), keys); err != nil {
		t.Errorf("a token without kid: %v", err)
	}
	if FaultOf(errors.New("x")) != "" {
		t.Error("any error is a fault of a token")
	}
}

var (
	moment = time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	rules  = func() IDTokenRules {
		hash := sha256.Sum256([]byte("n"))
		return IDTokenRules{Issuer: issuer, ClientID: "bothy", NonceHash: hash[:], Skew: time.Minute}
	}()
	goodClaims = doc{
		"iss": issuer, "aud": "bothy", "sub": "s", "nonce": "n", "iat": moment.Unix(), "exp": moment.Add(5 * time.Minute).Unix(),
	}
)

func TestIDTokensAreForUsNow(t *testing.T) {
	seconds := func(d time.Duration) int64 { return moment.Add(d).Unix() }
	for name, c := range map[string]struct {
		change doc
		want   TokenFault
	}{
		"good":                       {nil, ""},
		"other issuer":               {doc{"iss": "https://evil.example"}, TokenIssuer},
		"issuer with a slash":        {doc{"iss": issuer + "/"}, TokenIssuer},
		"no issuer":                  {doc{"iss": nil}, TokenIssuer},
		"other audience":             {doc{"aud": "someone"}, TokenAudience},
		"no audience":                {doc{"aud": nil}, TokenAudience},
		"audience of another kind":   {doc{"aud": []any{"bothy", 7}}, TokenAudience},
		"list":                       {doc{"aud": []any{"bothy"}}, ""},
		"several without a party":    {doc{"aud": []any{"bothy", "other"}}, TokenAudience},
		"several, we are the party":  {doc{"aud": []any{"bothy", "other"}, "azp": "bothy"}, ""},
		"several, another party":     {doc{"aud": []any{"bothy", "other"}, "azp": "other"}, TokenAudience},
		"one, another party":         {doc{"azp": "other"}, TokenAudience},
		"other nonce":                {doc{"nonce": "m"}, TokenNonce},
		"no nonce":                   {doc{"nonce": nil}, TokenNonce},
		"no subject":                 {doc{"sub": ""}, TokenSubject},
		"endless subject":            {doc{"sub": strings.Repeat("x", 256)}, TokenSubject},
		"no expiry":                  {doc{"exp": nil}, TokenMalformed},
		"no time of issue":           {doc{"iat": nil}, TokenMalformed},
		"expiry as text":             {doc{"exp": "soon"}, TokenMalformed},
		"not before as text":         {doc{"nbf": "soon"}, TokenMalformed},
		"expiry beyond all times":    {doc{"exp": 1e300}, TokenMalformed},
		"expiry before all times":    {doc{"exp": -1}, TokenMalformed},
		"expired 59 seconds ago":     {doc{"exp": seconds(-59 * time.Second)}, ""},
		"expired 61 seconds ago":     {doc{"exp": seconds(-61 * time.Second)}, TokenExpired},
		"issued in 59 seconds":       {doc{"iat": seconds(59 * time.Second)}, ""},
		"issued in 61 seconds":       {doc{"iat": seconds(61 * time.Second)}, TokenFuture},
		"not before in 59 seconds":   {doc{"nbf": seconds(59 * time.Second)}, ""},
		"not before in 61 seconds":   {doc{"nbf": seconds(61 * time.Second)}, TokenFuture},
		"fractions of a second":      {doc{"exp": float64(seconds(time.Minute)) + 0.5}, ""},
		"asked long ago, no matter":  {doc{"auth_time": 1}, ""},
		"not an object at all":       {nil, ""},
		"extra claims are no matter": {doc{"x": doc{"y": []any{1}}}, ""},
	} {
		claims, err := CheckIDToken(encoded(t, with(goodClaims, c.change)), rules, moment)
		if FaultOf(err) != c.want || err != nil && c.want == "" {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == "" && claims.text("sub") != "s" {
			t.Errorf("%s: claims are lost", name)
		}
	}
	for _, raw := range []string{"", "null", "[]", `{"a":1} {"b":2}`, `{"a":`} {
		if _, err := CheckIDToken([]byte(raw), rules, moment); FaultOf(err) != TokenMalformed {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestTheProviderMayHaveToAskAnew(t *testing.T) {
	want := rules
	want.MaxAuthAge = time.Hour
	for name, c := range map[string]struct {
		at   any
		want TokenFault
	}{
		"now": {moment.Unix(), ""}, "an hour ago": {moment.Add(-time.Hour).Unix(), ""}, "too long ago": {moment.Add(-62 * time.Minute).Unix(), TokenAuthTime},
		"not told": {nil, TokenAuthTime}, "as text": {"now", TokenAuthTime},
	} {
		if _, err := CheckIDToken(encoded(t, with(goodClaims, doc{"auth_time": c.at})), want, moment); FaultOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func read(t testing.TB, claims doc, names ClaimNames) External {
	t.Helper()
	values, err := ParseClaims(encoded(t, claims))
	if err != nil {
		t.Fatal(err)
	}
	e, err := ReadPerson(issuer, values, names)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestClaimsAreMapped(t *testing.T) {
	names := StandardClaims()
	names.Groups, names.MFA = "roles", "second_factor"
	full := read(t, doc{
		"sub": "s", "email": "Ana@Example.org", "email_verified": "true", "name": "Ana", "preferred_username": "ana", "locale": "pt-PT",
		"roles": []any{"a", "b", "a", 7, "", strings.Repeat("x", 257)}, "second_factor": true, "acr": "high",
	}, names)
	want := External{
		Issuer: issuer, Subject: "s", Email: "Ana@Example.org", EmailVerified: true, Name: "Ana", Handle: "ana", Locale: "pt-PT", ACR: "high",
		MFA: true, Groups: []string{"a", "b"},
	}
	if fmt.Sprint(full) != fmt.Sprint(want) {
		t.Errorf("%+v", full)
	}
	bare := read(t, doc{"sub": "s", "email": "no address", "email_verified": true, "name": "a\u202eb", "locale": "!", "roles": "a", "amr": []any{"pwd", "hwk"}}, names)
	if bare.Email != "" || bare.EmailVerified || bare.Name != "" || bare.Locale != "" || bare.Groups != nil || !bare.MFA {
		t.Errorf("what cannot be used is kept: %+v", bare)
	}
	if e := read(t, doc{"sub": "s", "roles": []any{}}, names); e.Groups == nil || len(e.Groups) != 0 {
		t.Errorf("an empty list is no absence: %+v", e)
	}
	if e := read(t, doc{"sub": "s", "roles": []any{"a"}, "_claim_names": doc{"roles": "src1"}}, names); e.Groups != nil {
		t.Errorf("a marker of too many is taken for the groups: %+v", e)
	}
	tooMany := make([]any, 1001)
	for i := range tooMany {
		tooMany[i] = fmt.Sprint(i)
	}
	if e := read(t, doc{"sub": "s", "roles": tooMany}, names); e.Groups != nil {
		t.Errorf("more groups than are read: %d", len(e.Groups))
	}
	for _, bad := range []doc{{}, {"sub": 7}, {"sub": strings.Repeat("x", 256)}} {
		values, _ := ParseClaims(encoded(t, bad))
		if _, err := ReadPerson(issuer, values, names); FaultOf(err) != TokenSubject {
			t.Errorf("%v: %v", bad, err)
		}
	}
	names.Subject = "oid"
	if e := read(t, doc{"sub": "s", "oid": "o"}, names); e.Subject != "o" {
		t.Errorf("the mapped subject: %+v", e)
	}
}

func TestUserInfoCompletes(t *testing.T) {
	token := ClaimValues{"sub": "s", "name": "Token"}
	if !token.MissesClaim(StandardClaims()) || (ClaimValues{"sub": "s"}).MissesClaim(ClaimNames{Subject: "sub"}) {
		t.Error("what is missing")
	}
	all, err := token.Complete(ClaimValues{"sub": "s", "name": "Info", "email": "a@example.org"})
	if err != nil || all["name"] != "Token" || all["email"] != "a@example.org" {
		t.Errorf("%v, %v", all, err)
	}
	for _, other := range []ClaimValues{{"sub": "t"}, {}, nil} {
		if _, err := token.Complete(other); FaultOf(err) != TokenSubject {
			t.Errorf("%v: %v", other, err)
		}
	}
}

func TestWhoIsAdmitted(t *testing.T) {
	auto := AdmissionRules{Provisioning: ProvisionAuto}
	domains := AdmissionRules{Provisioning: ProvisionAuto, AllowedDomains: []string{"example.org"}}
	link := AdmissionRules{Provisioning: ProvisionNone, LinkByEmail: true}
	verified := External{Email: "ana@Example.org", EmailVerified: true}
	person := EmailMatch{Found: true, Active: true}
	for name, c := range map[string]struct {
		rules   AdmissionRules
		e       External
		known   bool
		match   EmailMatch
		want    Admission
		refusal string
	}{
		"known":                       {AdmissionRules{}, External{}, true, EmailMatch{}, AdmitKnown, ""},
		"known without acr":           {AdmissionRules{RequiredACR: "high"}, External{ACR: "low"}, true, EmailMatch{}, "", RefuseACR},
		"known without address":       {AdmissionRules{RequireEmail: true}, External{}, true, EmailMatch{}, "", RefuseClaim},
		"stranger":                    {AdmissionRules{}, verified, false, person, "", RefuseNotProvisioned},
		"linked by address":           {link, verified, false, person, AdmitLink, ""},
		"never by unverified address": {link, External{Email: "ana@example.org"}, false, person, "", RefuseNotProvisioned},
		"never an owner":              {link, verified, false, EmailMatch{Found: true, Active: true, Owner: true}, "", RefuseNotProvisioned},
		"never a second identity":     {link, verified, false, EmailMatch{Found: true, Active: true, LinkedHere: true}, "", RefuseNotProvisioned},
		"never who is disabled":       {link, verified, false, EmailMatch{Found: true}, "", RefuseNotProvisioned},
		"nobody with the address":     {link, verified, false, EmailMatch{}, "", RefuseNotProvisioned},
		"new":                         {auto, External{}, false, EmailMatch{}, AdmitProvision, ""},
		"new from the domain":         {domains, verified, false, EmailMatch{}, AdmitProvision, ""},
		"new from elsewhere":          {domains, External{Email: "a@other.org", EmailVerified: true}, false, EmailMatch{}, "", RefuseDomain},
		"new, unverified":             {domains, External{Email: "a@example.org"}, false, EmailMatch{}, "", RefuseDomain},
		"new, a lookalike domain":     {domains, External{Email: "a@evil-example.org", EmailVerified: true}, false, EmailMatch{}, "", RefuseDomain},
		"new, no address":             {domains, External{}, false, EmailMatch{}, "", RefuseDomain},
	} {
		if got, refusal := Admit(c.rules, c.e, c.known, c.match); got != c.want || refusal != c.refusal {
			t.Errorf("%s: %q, %q", name, got, refusal)
		}
	}
}

func TestHandlesAreSuggested(t *testing.T) {
	for want, e := range map[string]External{
		"ana":                              {Handle: "ana"},
		"ana.lima":                         {Handle: "Ana.Lima@example.org"},
		"j-rg":                             {Handle: "Jörg"},
		"bo":                               {Handle: "!", Email: "bo@example.org"},
		"user":                             {},
		"abcdefghijklmnopqrstuvwxyz012345": {Handle: "abcdefghijklmnopqrstuvwxyz0123456789"},
	} {
		if got := SuggestHandle(e, 1); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
	if got := SuggestHandle(External{Handle: "admin"}, 1); got != "user" {
		t.Errorf("a reserved name: %q", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := External{Handle: rapid.String().Draw(t, "handle"), Email: rapid.String().Draw(t, "email")}
		attempt := rapid.IntRange(1, 200).Draw(t, "attempt")
		if h := SuggestHandle(e, attempt); CheckHandle(h) != FaultNone {
			t.Errorf("%q cannot be taken", h)
		}
	})
}

func TestLabels(t *testing.T) {
	if got := (External{Subject: "s", Email: "a@b.c", Handle: "h"}).Label(); got != "a@b.c" {
		t.Error(got)
	}
	if got := (External{Subject: "s\x00" + strings.Repeat("x", 300), Handle: "a\u202eb"}).Label(); len(got) != 254 || got[:2] != "s?" {
		t.Error(got)
	}
}

func TestWhereBrowsersReturn(t *testing.T) {
	for _, good := range []string{"/", "/#/settings", "/#/a?b=c", "bothy://auth", "http://127.0.0.1:49152/", "http://127.0.0.1:80"} {
		if _, fault := ParseReturnTo(good); fault != FaultNone {
			t.Errorf("%s is refused", good)
		}
	}
	for _, bad := range []string{
		"", "//evil.example", "/\\evil.example", "https://evil.example/", "http://localhost:8080/", "http://127.0.0.1/", "http://127.0.0.1:1/?x=y",
		"http://127.0.0.1:1/#x", "http://127.0.0.2:1/", "http://user@127.0.0.1:1/", "bothy://other", "bothy://auth?x=y", "javascript:alert(1)", "data:text/html,x",
		"/a b", "/a\tb", "relative", "http://[::1]:1/", "/" + strings.Repeat("x", 1024), "http://127.0.0.1:1@evil.example/",
	} {
		if _, fault := ParseReturnTo(bad); fault == FaultNone {
			t.Errorf("%s is accepted", bad)
		}
	}
	members := url.Values{"flow": {"f"}, "result": {"r"}}
	for from, want := range map[ReturnTo]string{
		"/": "/?flow=f&result=r", "/?a=b": "/?a=b&flow=f&result=r", "/#/x": "/#/x?flow=f&result=r", "/?a=b#/x?c=d": "/?a=b#/x?c=d&flow=f&result=r",
		"/?a=b#/x": "/?a=b#/x?flow=f&result=r", "bothy://auth": "bothy://auth?flow=f&result=r",
	} {
		if got := from.With(members); got != want {
			t.Errorf("%s: %s", from, got)
		}
	}
	if !ReturnTo("/").Own() || ReturnTo("bothy://auth").Own() {
		t.Error("whose origin")
	}
}

func TestProvidersAreWellFormed(t *testing.T) {
	for value, check := range map[string]func(string) Fault{
		"acme": CheckProviderKey, "https://id.example.org/realms/x": CheckIssuer, "openid": CheckScope, "api://x/.default": CheckScope,
		"example.org": CheckDomain, "key": CheckProviderIcon, "": CheckProviderIcon, "auto": CheckProvisioning,
	} {
		if check(value) != FaultNone {
			t.Errorf("%q is refused", value)
		}
	}
	for _, bad := range []struct {
		value string
		check func(string) Fault
	}{
		{"a", CheckProviderKey}, {"Acme", CheckProviderKey}, {"id.example.org", CheckIssuer}, {"https://id.example.org?x", CheckIssuer},
		{"https://id.example.org#", CheckIssuer}, {"https://u@id.example.org", CheckIssuer}, {"ftp://x", CheckIssuer}, {"a b", CheckScope}, {"", CheckScope},
		{"org", CheckDomain}, {"Example.org", CheckDomain}, {"-a.org", CheckDomain}, {"<svg>", CheckProviderIcon}, {"maybe", CheckProvisioning},
	} {
		if bad.check(bad.value) == FaultNone {
			t.Errorf("%q is accepted", bad.value)
		}
	}
	for _, c := range []struct{ way, ref, member string }{
		{ClientSecretBasic, "file:<secrets.dir>/oidc_a", ""}, {ClientPublic, "", ""}, {ClientSecretPost, "", "client_secret_ref"},
		{ClientPublic, "file:<secrets.dir>/oidc_a", "client_secret_ref"}, {"magic", "", "client_auth"},
		{ClientSecretBasic, "file:<secrets.dir>/database_owner_password", "client_secret_ref"}, {ClientSecretBasic, "file:/etc/shadow", "client_secret_ref"},
		{ClientSecretBasic, "env:PASSWORD", "client_secret_ref"}, {ClientSecretBasic, "file:<secrets.dir>/oidc_../x", "client_secret_ref"},
	} {
		if member, _ := CheckClientAuth(c.way, c.ref); member != c.member {
			t.Errorf("%s %s: %q", c.way, c.ref, member)
		}
	}
	if got := WithOpenID([]string{"email", "openid", "email"}); !slices.Equal(got, []string{"openid", "email"}) {
		t.Errorf("scopes: %v", got)
	}
	if member, _ := (ClaimNames{}).Check(); member != "subject" {
		t.Errorf("no subject: %q", member)
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add([]byte(`{"issuer":"https://id.example.org","authorization_endpoint":"https://a.b/","token_endpoint":"https://a.b","jwks_uri":"https://a.b"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := ParseMetadata(raw, issuer); err == nil && (m.Issuer != issuer || !strings.HasPrefix(m.TokenEndpoint, "https:") && !strings.HasPrefix(strings.ToLower(m.TokenEndpoint), "https:")) {
			t.Errorf("accepted: %+v", m)
		}
	})
}

func FuzzParseKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, err := ParseKeySet(raw)
		if err != nil {
			return
		}
		for _, k := range keys {
			if k.Public == nil || len(keys) > maxProviderKeys {
				t.Errorf("kept: %+v", k)
			}
		}
	})
}

func FuzzIDToken(f *testing.F) {
	s := newSigner(f, "a")
	keys := s.keys(f)
	f.Add(s.sign(f, goodClaims))
	f.Add("a.b.c")
	f.Add(part(`{"alg":"none"}`) + "." + part(`{}`) + ".")
	f.Fuzz(func(t *testing.T, compact string) {
		payload, err := VerifyIDToken(compact, keys)
		if err == nil {
			_, _ = CheckIDToken(payload, rules, moment)
		}
	})
}

func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"sub":"s","aud":["a",1],"exp":1e400,"email":"a@b.c","groups":["x"],"_claim_names":{"groups":"y"},"amr":["mfa"]}`))
	names := StandardClaims()
	names.Groups, names.MFA = "groups", "mfa"
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = CheckIDToken(raw, rules, moment)
		claims, err := ParseClaims(raw)
		if err != nil {
			return
		}
		e, err := ReadPerson(issuer, claims, names)
		if err != nil {
			return
		}
		if CheckName(e.Label(), 254) != FaultNone && e.Label() != strings.Map(printable, e.Subject) {
			t.Logf("label %q", e.Label())
		}
		if e.Email == "" && e.EmailVerified || len(e.Groups) > claimGroupsMax {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzReturnTo(f *testing.F) {
	for _, seed := range []string{"/", "//x", "/\\x", "http://127.0.0.1:1/", "bothy://auth", "/#/a?b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, fault := ParseReturnTo(text)
		if fault != FaultNone {
			return
		}
		base, _ := url.Parse("https://chat.example.org/x")
		to, err := base.Parse(r.With(url.Values{"flow": {"f"}}))
		if err != nil {
			t.Fatalf("%q leads nowhere: %v", text, err)
		}
		if own := to.Host == "chat.example.org" && to.Scheme == "https"; !own && to.Hostname() != "127.0.0.1" && to.Scheme != "bothy" {
			t.Errorf("%q leads to %s", text, to)
		}
	})
}

func TestSecretsOfFlowsAreWrapped(t *testing.T) {
	key, flow := make([]byte, 32), []byte("flow")
	wrapped, err := Wrap(key, flow, "verifier")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Unwrap(key, flow, wrapped); err != nil || text != "verifier" {
		t.Errorf("%q, %v", text, err)
	}
	other := append([]byte{1}, make([]byte, 31)...)
	for name, open := range map[string]func() (string, error){
		"other flow": func() (string, error) { return Unwrap(key, []byte("else"), wrapped) },
		"other key":  func() (string, error) { return Unwrap(other, flow, wrapped) },
		"changed":    func() (string, error) { return Unwrap(key, flow, append(wrapped[:len(wrapped)-1:len(wrapped)-1], 0)) },
		"cut":        func() (string, error) { return Unwrap(key, flow, wrapped[:4]) },
		"no key":     func() (string, error) { return Unwrap(nil, flow, wrapped) },
	} {
		if text, err := open(); err == nil {
			t.Errorf("%s opens: %q", name, text)
		}
	}
	if s := NewFlowSecret(); !IsFlowSecret(s) || IsFlowSecret(s[1:]) || IsFlowSecret(s+"=") || s == NewFlowSecret() {
		t.Errorf("secret %q", s)
	}
}

func TestRequestsToProviders(t *testing.T) {
	r := AuthorizationRequest{
		Endpoint: issuer + "/authorize?tenant=x", ClientID: "bothy", RedirectURI: "https://chat.example.org/api/v1/auth/oidc/callback",
		Scopes: []string{"openid", "email"}, State: "s", Nonce: "n", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", ACR: "gold", MaxAuthAge: time.Hour,
	}
	text, err := r.URL()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	// Verifier and challenge are those of RFC 7636, appendix B.
	for name, want := range map[string]string{
		"tenant": "x", "response_type": "code", "scope": "openid email", "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
		"code_challenge_method": "S256", "max_age": "3600", "acr_values": "gold", "state": "s", "nonce": "n", "redirect_uri": r.RedirectURI,
	} {
		if got := u.Query().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	r.Endpoint = "https://[bad"
	if _, err := r.URL(); err == nil {
		t.Error("an endpoint that is none")
	}
	for _, c := range []struct {
		sends bool
		named string
		want  bool
	}{{false, "", true}, {false, issuer, true}, {true, issuer, true}, {true, "", false}, {true, "https://evil.example", false}, {false, "https://evil.example", false}} {
		if got := (ProviderMetadata{Issuer: issuer, SendsIssuer: c.sends}).IssuerFits(c.named); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
