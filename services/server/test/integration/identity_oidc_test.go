// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// abroad is a server with a provider that lets everybody in.
type abroad struct {
	*harness.Server
	at       *harness.Provider
	provider string
}

func goAbroad(t *testing.T, options ...harness.Option) abroad {
	t.Helper()
	p := harness.StartProvider(t, "a-client-secret")
	options = append(options, harness.ReachProviders(t, p), harness.WithSecret(t, "oidc_acme", p.Secret),
		harness.WithKeys(map[string]string{"egress.timeout": "2s"}))
	s := harness.Start(t, options...)
	p.Follow(s.Clock)
	return abroad{s, p, s.Owner(t).Call(t, "createIdentityProvider", merged(acme(p, "acme"), harness.Body{
		"provisioning": "auto", "claims": harness.Body{"groups": "groups"},
	})).OK(t).Str("id")}
}

// set changes the provider as the server knows it.
func (a abroad) set(t *testing.T, change harness.Body) {
	t.Helper()
	owner := a.Owner(t)
	owner.StepUp(t)
	now := owner.Call(t, "getIdentityProvider", a.provider).OK(t)
	owner.Call(t, "updateIdentityProvider", a.provider, now.Version(t), change).OK(t)
}

// visit goes to the provider as the person and comes back.
func (a abroad) visit(t *testing.T, person string) (v *harness.Visit, result string) {
	t.Helper()
	v = a.Begin(t, a.provider, nil)
	back := v.Back(t, a.at.SignIn(t, v.Address, person))
	if back.Get("result") == "" || back.Get("flow") != v.Flow {
		t.Fatalf("%s comes back with %v", person, back)
	}
	return v, back.Get("result")
}

// in signs the person in.
func (a abroad) in(t *testing.T, person string) *harness.Client {
	t.Helper()
	v, result := a.visit(t, person)
	v.Finish(t, result).Is(t, http.StatusOK)
	return v.Client
}

func TestSignInByProvider(t *testing.T) {
	a := goAbroad(t)
	owner := a.Owner(t)
	group := owner.Call(t, "createGroup", harness.Body{
		"name": "Engineers", "handle": "engineers", "claim": harness.Body{"provider_id": a.provider, "value": "eng"},
	}).OK(t).Str("id")
	ana := a.in(t, "ana")
	self := ana.Call(t, "getSelf").OK(t)
	if self.Str("handle") != "ana" || self.Str("display_name") != "Ana Lima" || self.Str("email") != "ana@example.org" ||
		!strings.Contains(string(self.Body), `"email_verified":true`) || self.Str("locale") != "pt-PT" || self.Str("session.driver") != "oidc" ||
		!strings.Contains(string(self.Body), `"identities":1`) {
		t.Errorf("the person of a first login: %s", self.Body)
	}
	if self.Str("session.step_up_until") != "" {
		t.Errorf("a provider counts as a fresh proof: %s", self.Body)
	}
	if list := owner.Call(t, "listGroupMembers", group).OK(t); !strings.Contains(string(list.Body), ana.ID) {
		t.Errorf("the group of her claim: %s", list.Body)
	}
	if again := a.in(t, "ana"); again.ID != ana.ID {
		t.Error("a second login makes a second person")
	}
	a.at.Behave(t, harness.Misbehave{"people": harness.Body{"ana": harness.Body{"email": "ana@new.example.org", "email_verified": true, "groups": []string{}}}})
	a.in(t, "ana")
	if self := ana.Call(t, "getSelf").OK(t); self.Str("email") != "ana@new.example.org" {
		t.Errorf("her address does not follow: %s", self.Body)
	}
	if list := owner.Call(t, "listGroupMembers", group).OK(t); strings.Contains(string(list.Body), ana.ID) {
		t.Errorf("the group stays when the claim goes: %s", list.Body)
	}
	a.at.Behave(t, nil)
	for _, algorithm := range []string{"RS256", "PS256", "EdDSA"} {
		a.at.Behave(t, harness.Misbehave{"alg": algorithm})
		if a.in(t, "ana").ID != ana.ID {
			t.Errorf("%s: another person", algorithm)
		}
	}
	a.at.Behave(t, nil)
	for _, way := range []string{"client_secret_post", "client_secret_basic"} {
		a.set(t, harness.Body{"client_auth": way})
		a.in(t, "ana")
	}
	if v := a.Begin(t, a.provider, harness.Body{"return_to": "bothy://auth"}); v.Cookie != "" {
		t.Error("a native client gets a cookie")
	} else if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("result") == "" {
		t.Errorf("a native client comes back with %v", back)
	}
}

func TestAddressesAreNoIdentities(t *testing.T) {
	a := goAbroad(t)
	owner := a.Owner(t)
	bo := a.in(t, "bo")
	if self := bo.Call(t, "getSelf").OK(t); self.Str("email") != "" || self.Str("handle") != "bo" {
		t.Errorf("without an address: %s", self.Body)
	}
	local := owner.Call(t, "createUser", harness.Body{"handle": "anna", "display_name": "Anna", "email": "ana@example.org", "issue_code": true}).OK(t)
	ana := a.in(t, "ana")
	if self := ana.Call(t, "getSelf").OK(t); ana.ID == local.Str("id") || self.Str("email") != "" {
		t.Errorf("an address of somebody else: %s", self.Body)
	}
	cy := a.Enroll(t, owner.Call(t, "createUser", harness.Body{"handle": "cyrus", "display_name": "Cyrus", "email": "cy@example.org", "issue_code": true}).OK(t).Str("enrollment.code"))
	dora := a.Enroll(t, owner.Call(t, "createUser", harness.Body{"handle": "dora", "display_name": "Dora", "email": "dora@example.org", "issue_code": true}).OK(t).Str("enrollment.code"))
	owner.StepUp(t)
	for _, one := range []*harness.Client{cy, dora} {
		now := owner.Call(t, "getUser", one.ID).OK(t)
		owner.Call(t, "updateUser", one.ID, now.Version(t), harness.Body{"email_verified": true}).OK(t)
	}
	self := owner.Call(t, "getUser", owner.ID).OK(t)
	owner.Call(t, "updateUser", owner.ID, self.Version(t), harness.Body{"email": "olga@example.org", "email_verified": true}).OK(t)
	a.at.Behave(t, harness.Misbehave{"people": harness.Body{
		"dora": harness.Body{"email": "Dora@example.org", "email_verified": true}, "olga": harness.Body{"email": "olga@example.org", "email_verified": true},
		"dora2": harness.Body{"email": "dora@example.org", "email_verified": true},
	}})
	a.set(t, harness.Body{"link_by_email": true, "provisioning": "none"})
	if a.in(t, "dora").ID != dora.ID {
		t.Error("a verified address does not link")
	}
	for _, stranger := range []string{"cy", "olga", "dora2"} {
		v, result := a.visit(t, stranger)
		v.Finish(t, result).Refused(t, "forbidden", "not_provisioned")
	}
}

func TestWhoMayNotComeIn(t *testing.T) {
	a := goAbroad(t)
	ana := a.in(t, "ana")
	refused := func(person, reason string) {
		t.Helper()
		v, result := a.visit(t, person)
		v.Finish(t, result).Refused(t, "forbidden", reason)
	}
	a.set(t, harness.Body{"require_email": true})
	refused("bo", "claim_missing")
	a.set(t, harness.Body{"require_email": false, "allowed_domains": []string{"example.com"}})
	refused("bo", "domain_not_allowed")
	refused("cy", "domain_not_allowed")
	a.set(t, harness.Body{"allowed_domains": []string{}, "provisioning": "none"})
	refused("bo", "not_provisioned")
	a.set(t, harness.Body{"required_acr": "gold"})
	refused("ana", "acr_missing")
	a.at.Behave(t, harness.Misbehave{"claims": harness.Body{"acr": "gold"}})
	a.in(t, "ana")
	a.at.Behave(t, nil)
	a.set(t, harness.Body{"required_acr": ""})
	owner := a.Owner(t)
	now := owner.Call(t, "getUser", ana.ID).OK(t)
	owner.Call(t, "disableUser", ana.ID, now.Version(t), harness.Body{}).OK(t)
	v, result := a.visit(t, "ana")
	v.Finish(t, result).Refused(t, "unauthenticated", "login_failed")
	away := a.Begin(t, a.provider, nil)
	a.set(t, harness.Body{"enabled": false})
	if back := away.Back(t, a.at.SignIn(t, away.Address, "bo")); back.Get("error") != "login_failed" {
		t.Errorf("a provider that was turned off: %v", back)
	}
	stranger := &harness.Client{Server: a.Server, DeviceKey: away.Client.DeviceKey}
	device := harness.Body{"name": "x", "platform": "linux", "client": "app", "client_version": "1"}
	refuse(t,
		refusal{"disabled", stranger, "beginLogin", with(harness.Body{"driver": "oidc", "provider_id": a.provider, "device": device}), "validation_failed", ""},
		refusal{"no provider", stranger, "beginLogin", with(harness.Body{"driver": "oidc", "device": device}), "validation_failed", ""},
		refusal{"unknown", stranger, "beginLogin", with(harness.Body{"driver": "oidc", "provider_id": harness.NewID(), "device": device}), "validation_failed", ""},
		refusal{"elsewhere", stranger, "beginLogin", with(harness.Body{"driver": "oidc", "provider_id": a.provider, "return_to": "https://evil.example/", "device": device}), "validation_failed", ""},
		refusal{"password", stranger, "beginLogin", with(harness.Body{"driver": "local", "provider_id": a.provider, "device": device}), "validation_failed", ""},
	)
}

func TestTokensThatAreRefused(t *testing.T) {
	a := goAbroad(t)
	at := func(d time.Duration) int64 { return a.Clock.Now().Add(d).Unix() }
	claim := func(name string, value any) harness.Misbehave {
		return harness.Misbehave{"claims": harness.Body{name: value}}
	}
	for name, does := range map[string]harness.Misbehave{
		"wrong nonce": claim("nonce", "other"), "no nonce": claim("nonce", nil), "wrong audience": claim("aud", "other"),
		"two audiences": claim("aud", []string{"bothy", "other"}), "wrong party": claim("azp", "other"), "wrong issuer": claim("iss", "https://evil.example"),
		"no subject": claim("sub", nil), "no expiry": claim("exp", nil), "none": {"alg": "none"}, "shared secret": {"alg": "HS256"},
		"unpublished key": {"unpublished": true}, "unknown key": {"kid": "who"},
		"expired 61s ago": claim("exp", at(-61*time.Second)), "issued in 63s": claim("iat", at(63*time.Second)), "not before in 63s": claim("nbf", at(63*time.Second)),
		"other person in userinfo": {"claims": harness.Body{"name": nil}, "userinfo": harness.Body{"sub": "somebody-else"}},
		"no tokens":                {"broken": []string{"token"}, "status": 400},
	} {
		a.at.Behave(t, does)
		v := a.Begin(t, a.provider, nil)
		back := v.Back(t, a.at.SignIn(t, v.Address, "ana"))
		if back.Get("error") != "login_failed" || back.Get("flow") != v.Flow || back.Get("result") != "" {
			t.Errorf("%s: %v", name, back)
		}
		v.Finish(t, "anything").Refused(t, "flow_expired")
	}
	for name, does := range map[string]harness.Misbehave{
		"expired 50s ago": claim("exp", at(-50*time.Second)), "issued in 50s": claim("iat", at(50*time.Second)), "not before in 50s": claim("nbf", at(50*time.Second)),
		"we among others": {"claims": harness.Body{"aud": []string{"bothy", "other"}, "azp": "bothy"}},
		"no userinfo":     {"claims": harness.Body{"name": nil}, "broken": []string{"userinfo"}, "status": 403},
	} {
		a.at.Behave(t, does)
		v := a.Begin(t, a.provider, nil)
		if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("result") == "" {
			t.Errorf("%s: %v", name, back)
		}
	}
	a.at.Behave(t, nil)
	a.set(t, harness.Body{"max_auth_age_ms": 600_000})
	v := a.Begin(t, a.provider, nil)
	if !strings.Contains(v.Address, "max_age=600") {
		t.Errorf("the provider is not asked for a recent login: %s", v.Address)
	}
	a.at.Behave(t, claim("auth_time", at(-time.Hour)))
	if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("error") != "login_failed" {
		t.Errorf("asked an hour ago: %v", back)
	}
}

func TestKeysOfProvidersChange(t *testing.T) {
	a := goAbroad(t)
	ana := a.in(t, "ana")
	looks := a.at.Fetched(t, "keys")
	a.in(t, "ana")
	if now := a.at.Fetched(t, "keys"); now != looks {
		t.Errorf("keys are fetched for every login: %d, then %d", looks, now)
	}
	a.at.Rotate(t)
	a.Clock.Advance(61 * time.Second)
	a.at.Behave(t, nil)
	if a.in(t, "ana").ID != ana.ID {
		t.Error("after a rotation somebody else comes in")
	}
	looks = a.at.Fetched(t, "keys")
	a.at.Behave(t, harness.Misbehave{"kid": "who"})
	for range 10 {
		v := a.Begin(t, a.provider, nil)
		if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("error") != "login_failed" {
			t.Errorf("an unknown key: %v", back)
		}
	}
	if now := a.at.Fetched(t, "keys"); now != looks {
		t.Errorf("a flood of unknown keys reaches the provider: %d looks", now-looks)
	}
	// A provider that is away is believed for a day, then nobody comes in by it.
	a.at.Behave(t, harness.Misbehave{"broken": []string{"discovery", "keys"}, "status": 503})
	a.Clock.Advance(2 * time.Hour)
	a.at.Behave(t, harness.Misbehave{"broken": []string{"discovery", "keys"}, "status": 503})
	a.in(t, "ana")
	a.Clock.Advance(23 * time.Hour)
	a.at.Behave(t, harness.Misbehave{"broken": []string{"discovery", "keys"}, "status": 503})
	c := &harness.Client{Server: a.Server, DeviceKey: ana.DeviceKey}
	c.Call(t, "beginLogin", harness.Body{
		"driver": "oidc", "provider_id": a.provider, "device": harness.Body{"name": "x", "platform": "linux", "client": "app", "client_version": "1"},
	}).Refused(t, "unavailable", "provider_unavailable")
	a.at.Behave(t, nil)
	a.Clock.Advance(61 * time.Second)
	a.at.Behave(t, nil)
	if a.in(t, "ana").ID != ana.ID {
		t.Error("the provider is back and somebody else comes in")
	}
}

func TestProvidersFailInTheMiddle(t *testing.T) {
	a := goAbroad(t)
	ana := a.in(t, "ana")
	for name, does := range map[string]harness.Misbehave{
		"down":          {"broken": []string{"token"}, "status": 503},
		"slow":          {"slow": []string{"token"}, "hang_ms": 10_000},
		"endless":       {"large": []string{"token"}},
		"redirect":      {"moved": []string{"token"}},
		"no userinfo":   {"claims": harness.Body{"name": nil}, "broken": []string{"userinfo"}, "status": 503},
		"slow userinfo": {"claims": harness.Body{"name": nil}, "slow": []string{"userinfo"}, "hang_ms": 10_000},
	} {
		a.at.Behave(t, does)
		v := a.Begin(t, a.provider, nil)
		if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("error") != "provider_unavailable" {
			t.Errorf("%s: %v", name, back)
		}
	}
	ana.Call(t, "getSelf").OK(t)
	ana.Renew(t).OK(t)
}

func TestStatesBelongToOneBrowserOnce(t *testing.T) {
	a := goAbroad(t)
	v := a.Begin(t, a.provider, nil)
	q := a.at.SignIn(t, v.Address, "ana")
	lost := func(name string, v *harness.Visit, q harness.Query) {
		t.Helper()
		if back := v.Back(t, q); back.Get("error") != "login_failed" || back.Get("flow") != "" || back.Get("result") != "" {
			t.Errorf("%s: %v", name, back)
		}
	}
	other := a.Begin(t, a.provider, nil)
	lost("no cookie", &harness.Visit{Client: v.Client}, q)
	lost("cookie of another browser", &harness.Visit{Client: v.Client, Cookie: other.Cookie}, q)
	lost("unknown state", v, harness.Query{"state": "abc", "code": q["code"]})
	lost("state of the right form", v, harness.Query{"state": strings.Repeat("A", 43), "code": q["code"], "iss": q["iss"]})
	lost("no state", v, harness.Query{"code": q["code"]})
	q["session_state"] = "what a provider adds"
	back := v.Back(t, q)
	if back.Get("result") == "" {
		t.Fatalf("comes back with %v", back)
	}
	lost("used state", v, q)
	late := a.Begin(t, a.provider, nil)
	lateQuery := a.at.SignIn(t, late.Address, "ana")
	replayed := a.Begin(t, a.provider, nil)
	replayedQuery := a.at.SignIn(t, replayed.Address, "bo")
	replayedQuery["code"] = q["code"]
	if back := replayed.Back(t, replayedQuery); back.Get("error") != "login_failed" {
		t.Errorf("a code that was used: %v", back)
	}
	stolen, from := a.Begin(t, a.provider, nil), a.Begin(t, a.provider, nil)
	stolenQuery := a.at.SignIn(t, stolen.Address, "bo")
	stolenQuery["code"] = a.at.SignIn(t, from.Address, "ana")["code"]
	if back := stolen.Back(t, stolenQuery); back.Get("error") != "login_failed" {
		t.Errorf("a code of another login: %v", back)
	}
	v.Finish(t, "wrong").Refused(t, "unauthenticated", "login_failed")
	thief := &harness.Visit{Client: &harness.Client{Server: a.Server, DeviceKey: other.Client.DeviceKey}, Flow: v.Flow}
	thief.Finish(t, back.Get("result")).Refused(t, "unauthenticated", "login_failed")
	v.Client.Call(t, "completeLogin", v.Flow, harness.Body{}).Refused(t, "validation_failed")
	answers := together(2, func(int) *harness.Response {
		return v.Client.Call(t, "completeLogin", v.Flow, harness.Body{"result_code": back.Get("result")})
	})
	if codes := answers[0].Code() + answers[1].Code(); codes != "flow_expired" {
		t.Errorf("two completions answer %q", codes)
	}
	old, result := a.visit(t, "bo")
	a.Clock.Advance(61 * time.Second)
	old.Finish(t, result).Refused(t, "flow_expired")
	a.Clock.Advance(10 * time.Minute)
	lost("expired", late, lateQuery)
}

func TestProvidersAreNotMixedUp(t *testing.T) {
	evil := harness.StartProvider(t, "a-client-secret")
	a := goAbroad(t, harness.WithKeys(map[string]string{}))
	for name, iss := range map[string]string{"another issuer": evil.Issuer, "no issuer": "-"} {
		a.at.Behave(t, harness.Misbehave{"iss": iss})
		v := a.Begin(t, a.provider, nil)
		if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("error") != "login_failed" || back.Get("flow") != "" {
			t.Errorf("%s: %v", name, back)
		}
		v.Finish(t, "anything").Refused(t, "flow_expired")
	}
	a.at.Behave(t, harness.Misbehave{"error": "access_denied"})
	v := a.Begin(t, a.provider, nil)
	if back := v.Back(t, a.at.SignIn(t, v.Address, "ana")); back.Get("error") != "provider_denied" || back.Get("flow") != v.Flow {
		t.Errorf("a person who says no: %v", back)
	}
	// The code of one provider is worth nothing at another.
	a.at.Behave(t, nil)
	v = a.Begin(t, a.provider, nil)
	foreign := evil.SignIn(t, strings.Replace(v.Address, a.at.Issuer, evil.Issuer, 1), "ana")
	if back := v.Back(t, foreign); back.Get("error") != "login_failed" || back.Get("result") != "" {
		t.Errorf("an answer of another provider: %v", back)
	}
	v = a.Begin(t, a.provider, nil)
	foreign = evil.SignIn(t, strings.Replace(v.Address, a.at.Issuer, evil.Issuer, 1), "ana")
	foreign["iss"] = a.at.Issuer
	if back := v.Back(t, foreign); back.Get("error") != "login_failed" || back.Get("result") != "" {
		t.Errorf("a code of another provider: %v", back)
	}
}

func TestDevicesOfProvidersWait(t *testing.T) {
	a := goAbroad(t, harness.WithSetting("auth.device_approval", `"password"`))
	ana := a.in(t, "ana")
	v, result := a.visit(t, "ana")
	v.Finish(t, result).Is(t, http.StatusAccepted)
	a.set(t, harness.Body{"trust_mfa": true})
	a.at.Behave(t, harness.Misbehave{"claims": harness.Body{"amr": []string{"pwd", "mfa"}}})
	if a.in(t, "ana").ID != ana.ID {
		t.Error("a second factor at the provider is not believed")
	}
}

func TestIdentitiesAreLinked(t *testing.T) {
	a := goAbroad(t)
	owner, lima := a.Owner(t), a.Person(t, "lima")
	tired := lima.Login(t)
	tire(t, tired)
	v := lima.BeginLink(t, a.provider)
	back := v.Back(t, a.at.SignIn(t, v.Address, "ana"))
	code := harness.Body{"result_code": back.Get("result")}
	eve := a.Person(t, "eve")
	refuse(t,
		refusal{"without presence", tired, "beginIdentityLink", with(harness.Body{"provider_id": a.provider, "return_to": "/"}), "step_up_required", ""},
		refusal{"elsewhere", lima, "beginIdentityLink", with(harness.Body{"provider_id": a.provider, "return_to": "//evil.example"}), "validation_failed", ""},
		refusal{"unknown", lima, "beginIdentityLink", with(harness.Body{"provider_id": harness.NewID(), "return_to": "/"}), "validation_failed", ""},
		refusal{"without presence", tired, "completeIdentityLink", with(v.Flow, code), "step_up_required", ""},
		refusal{"somebody else", eve, "completeIdentityLink", with(v.Flow, code), "flow_expired", ""},
		refusal{"wrong code", lima, "completeIdentityLink", with(v.Flow, harness.Body{"result_code": "wrong"}), "flow_expired", ""},
		refusal{"missing", lima, "completeIdentityLink", with(harness.NewID(), code), "flow_expired", ""},
	)
	lima.Call(t, "completeLogin", v.Flow, code).Refused(t, "flow_expired")
	linked := lima.Call(t, "completeIdentityLink", v.Flow, code).Is(t, http.StatusCreated)
	if linked.Str("label") != "ana@example.org" || linked.Str("provider_name") != "Acme" {
		t.Errorf("linked: %s", linked.Body)
	}
	if a.in(t, "ana").ID != lima.ID {
		t.Error("the identity does not lead to its person")
	}
	second := eve.BeginLink(t, a.provider)
	taken := second.Back(t, a.at.SignIn(t, second.Address, "ana"))
	eve.Call(t, "completeIdentityLink", second.Flow, harness.Body{"result_code": taken.Get("result")}).Refused(t, "conflict", "identity_in_use")
	id := linked.Str("id")
	if list := lima.Call(t, "listIdentities").OK(t); list.Str("items.0.id") != id {
		t.Errorf("the own list: %s", list.Body)
	}
	if list := owner.Call(t, "listUserIdentities", lima.ID).OK(t); list.Str("items.0.last_login_at") == "" {
		t.Errorf("the list for owners: %s", list.Body)
	}
	now := owner.Call(t, "getIdentityProvider", a.provider).OK(t)
	owner.StepUp(t)
	refuse(t,
		refusal{"of another", eve, "listUserIdentities", with(lima.ID), "not_found", ""},
		refusal{"missing", owner, "listUserIdentities", with(harness.NewID()), "not_found", ""},
		refusal{"linked", owner, "deleteIdentityProvider", with(a.provider, now.Version(t)), "conflict", "in_use"},
		refusal{"linked", owner, "updateIdentityProvider", with(a.provider, now.Version(t), harness.Body{"issuer": "https://id.example.org"}), "conflict", "in_use"},
		refusal{"without presence", tired, "unlinkIdentity", with(id), "step_up_required", ""},
		refusal{"missing", lima, "unlinkIdentity", with(harness.NewID()), "not_found", ""},
		refusal{"of another", eve, "unlinkIdentity", with(id), "not_found", ""},
		refusal{"of another", eve, "unlinkUserIdentity", with(lima.ID, id), "not_found", ""},
		refusal{"missing", owner, "unlinkUserIdentity", with(lima.ID, harness.NewID()), "not_found", ""},
	)
	lima.Call(t, "unlinkIdentity", id).Is(t, http.StatusNoContent)
	lima.Call(t, "getSelf").OK(t)
}

func TestNobodyLosesTheLastWayIn(t *testing.T) {
	a := goAbroad(t)
	owner, lima := a.Owner(t), a.Person(t, "lima")
	link := func(c *harness.Client, person string) string {
		t.Helper()
		c.StepUp(t)
		v := c.BeginLink(t, a.provider)
		back := v.Back(t, a.at.SignIn(t, v.Address, person))
		return c.Call(t, "completeIdentityLink", v.Flow, harness.Body{"result_code": back.Get("result")}).OK(t).Str("id")
	}
	id := link(lima, "ana")
	lima.Call(t, "removePassword").Is(t, http.StatusNoContent)
	lima.Call(t, "unlinkIdentity", id).Refused(t, "conflict", "no_login_left")
	tired := owner.Login(t)
	tire(t, tired)
	tired.Call(t, "unlinkUserIdentity", lima.ID, id).Refused(t, "step_up_required")
	own := link(owner, "bo")
	owner.StepUp(t)
	owner.Call(t, "unlinkUserIdentity", lima.ID, id).Is(t, http.StatusNoContent)
	owner.Call(t, "removePassword").Is(t, http.StatusNoContent)
	now := owner.Call(t, "getIdentityProvider", a.provider).OK(t)
	refuse(t,
		refusal{"the only door of an owner", owner, "updateIdentityProvider", with(a.provider, now.Version(t), harness.Body{"enabled": false}), "conflict", "no_login_left"},
		refusal{"own last way", owner, "unlinkIdentity", with(own), "conflict", "no_login_left"},
		refusal{"last way of an owner", owner, "unlinkUserIdentity", with(owner.ID, own), "conflict", "no_login_left"},
	)
}
