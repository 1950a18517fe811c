// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

const secretRef = "file:<secrets.dir>/oidc_acme"

// acme describes a provider that the test process runs.
func acme(p *harness.Provider, key string) harness.Body {
	return harness.Body{
		"kind": "oidc", "key": key, "display_name": "Acme", "issuer": p.Issuer, "client_id": "bothy", "client_auth": "client_secret_basic",
		"client_secret_ref": secretRef,
	}
}

// merged joins bodies; the later one wins.
func merged(bodies ...harness.Body) harness.Body {
	out := harness.Body{}
	for _, b := range bodies {
		for k, v := range b {
			out[k] = v
		}
	}
	return out
}

func TestProvidersAreManaged(t *testing.T) {
	p := harness.StartProvider(t, "a-client-secret")
	s := harness.Start(t, harness.ReachProviders(t, p), harness.WithSecret(t, "oidc_acme", p.Secret))
	owner, ana := s.Owner(t), s.Person(t, "ana")
	tired := owner.Login(t)
	tire(t, tired)
	owner.StepUp(t)
	if list := owner.Call(t, "listIdentityProviders").OK(t); list.Str("items.0.id") != "" {
		t.Errorf("a new instance has a provider: %s", list.Body)
	}
	body := acme(p, "acme")
	made := owner.Call(t, "createIdentityProvider", body).Is(t, http.StatusCreated)
	id := made.Str("id")
	if made.Str("redirect_uri") != s.URL+"/api/v1/auth/oidc/callback" {
		t.Errorf("what to register: %s", made.Str("redirect_uri"))
	}
	refuse(t,
		refusal{"key", owner, "createIdentityProvider", with(merged(body, harness.Body{"client_id": "other"})), "conflict", "key_taken"},
		refusal{"issuer", owner, "createIdentityProvider", with(merged(body, harness.Body{"key": "other"})), "conflict", "issuer_taken"},
		refusal{"member", ana, "createIdentityProvider", with(body), "forbidden", ""},
		refusal{"without presence", tired, "createIdentityProvider", with(body), "step_up_required", ""},
		refusal{"no address", owner, "createIdentityProvider", with(merged(body, harness.Body{"key": "x1", "issuer": "acme"})), "validation_failed", ""},
		refusal{"out of bounds", owner, "createIdentityProvider", with(merged(body, harness.Body{"key": "x1", "issuer": "http://10.0.0.1"})), "validation_failed", ""},
		refusal{"foreign secret", owner, "createIdentityProvider", with(merged(body, harness.Body{"key": "x1", "client_secret_ref": "file:<secrets.dir>/database_owner_password"})), "validation_failed", ""},
		refusal{"no secret", owner, "createIdentityProvider", with(merged(body, harness.Body{"key": "x1", "client_secret_ref": ""})), "validation_failed", ""},
		refusal{"member", ana, "listIdentityProviders", nil, "forbidden", ""},
		refusal{"missing", owner, "getIdentityProvider", with(harness.NewID()), "not_found", ""},
		refusal{"missing", owner, "testIdentityProvider", with(harness.NewID()), "not_found", ""},
		refusal{"without presence", tired, "testIdentityProvider", with(id), "step_up_required", ""},
		refusal{"missing", owner, "updateIdentityProvider", with(harness.NewID(), stale, harness.Body{}), "not_found", ""},
		refusal{"old version", owner, "updateIdentityProvider", with(id, stale, harness.Body{"enabled": false}), "version_conflict", ""},
		refusal{"no version", owner, "updateIdentityProvider", with(id, harness.Body{"enabled": false}), "precondition_required", ""},
		refusal{"without presence", tired, "updateIdentityProvider", with(id, made.Version(t), harness.Body{"enabled": false}), "step_up_required", ""},
		refusal{"bad claims", owner, "updateIdentityProvider", with(id, made.Version(t), harness.Body{"claims": harness.Body{"subject": "a\u202eb"}}), "validation_failed", ""},
		refusal{"missing", owner, "deleteIdentityProvider", with(harness.NewID(), stale), "not_found", ""},
		refusal{"old version", owner, "deleteIdentityProvider", with(id, stale), "version_conflict", ""},
		refusal{"no version", owner, "deleteIdentityProvider", with(id), "precondition_required", ""},
		refusal{"without presence", tired, "deleteIdentityProvider", with(id, made.Version(t)), "step_up_required", ""},
	)
	offered := s.Anonymous().Call(t, "getDiscovery").OK(t)
	if offered.Str("login_options.2.provider_id") != id || offered.Str("login_options.2.label") != "Acme" {
		t.Errorf("the sign-in page is not told: %s", offered.Body)
	}
	changed := owner.Call(t, "updateIdentityProvider", id, made.Version(t), harness.Body{
		"display_name": "Acme Inc", "enabled": false, "scopes": []string{"email", "openid"}, "allowed_domains": []string{"Example.ORG"},
		"claims": harness.Body{"groups": "groups"}, "max_auth_age_ms": 3_600_000,
	}).OK(t)
	if changed.Str("scopes.0") != "openid" || changed.Str("allowed_domains.0") != "example.org" || changed.Str("claims.email") != "email" {
		t.Errorf("after the change: %s", changed.Body)
	}
	if offered := s.Anonymous().Call(t, "getDiscovery").OK(t); offered.Str("login_options.2.driver") != "" {
		t.Errorf("a disabled provider is offered: %s", offered.Body)
	}
	token := owner.Token(t, "identity.admin")
	if read := token.Call(t, "getIdentityProvider", id).OK(t); read.Version(t) != changed.Version(t) {
		t.Errorf("read: %s", read.Body)
	}
	token.Call(t, "listIdentityProviders").OK(t)
	owner.Call(t, "deleteIdentityProvider", id, changed.Version(t)).Is(t, http.StatusNoContent)
	owner.Call(t, "getIdentityProvider", id).Refused(t, "not_found")
}

func TestProvidersAreTried(t *testing.T) {
	p := harness.StartProvider(t, "a-client-secret")
	s := harness.Start(t, harness.ReachProviders(t, p), harness.WithSecret(t, "oidc_acme", p.Secret))
	owner := s.Owner(t)
	id := owner.Call(t, "createIdentityProvider", acme(p, "acme")).OK(t).Str("id")
	good := owner.Call(t, "testIdentityProvider", id).OK(t)
	if good.Str("discovery.issuer") != p.Issuer || good.Str("keys.0.alg") != "ES256" || good.Str("problems.0.code") != "" {
		t.Errorf("a good provider: %s", good.Body)
	}
	for name, c := range map[string]struct {
		does harness.Misbehave
		want string
	}{
		"down":           {harness.Misbehave{"broken": []string{"discovery"}, "status": 503}, "http_status"},
		"no keys":        {harness.Misbehave{"broken": []string{"keys"}, "status": 404}, "http_status"},
		"redirect":       {harness.Misbehave{"moved": []string{"discovery"}}, "redirect"},
		"endless":        {harness.Misbehave{"large": []string{"discovery"}}, "response_too_large"},
		"other issuer":   {harness.Misbehave{"metadata": harness.Body{"issuer": "https://evil.example"}}, "issuer_mismatch"},
		"no endpoints":   {harness.Misbehave{"metadata": harness.Body{"token_endpoint": nil}}, "malformed"},
		"no PKCE":        {harness.Misbehave{"metadata": harness.Body{"code_challenge_methods_supported": []string{"plain"}}}, "pkce_unsupported"},
		"other client":   {harness.Misbehave{"metadata": harness.Body{"token_endpoint_auth_methods_supported": []string{"private_key_jwt"}}}, "client_auth_unsupported"},
		"keys elsewhere": {harness.Misbehave{"metadata": harness.Body{"jwks_uri": "http://10.1.2.3/keys"}}, "url_not_allowed"},
		"token inside":   {harness.Misbehave{"metadata": harness.Body{"token_endpoint": "http://169.254.169.254/token"}}, "url_not_allowed"},
	} {
		p.Behave(t, c.does)
		if got := owner.Call(t, "testIdentityProvider", id).OK(t); got.Str("problems.0.code") != c.want || got.Str("problems.0.detail") == "" {
			t.Errorf("%s: %s", name, got.Body)
		}
	}
	p.Behave(t, nil)
	lost := merged(acme(p, "lost"), harness.Body{"client_id": "lost", "client_secret_ref": "file:<secrets.dir>/oidc_lost"})
	other := owner.Call(t, "createIdentityProvider", lost).OK(t)
	if got := owner.Call(t, "testIdentityProvider", other.Str("id")).OK(t); got.Str("problems.0.code") != "secret_missing" {
		t.Errorf("no file: %s", got.Body)
	}
}

func TestProvidersAreBounded(t *testing.T) {
	p := harness.StartProvider(t, "a-client-secret")
	s := harness.Start(t, harness.ReachProviders(t, p))
	owner := s.Owner(t)
	owner.StepUp(t)
	for i := range 20 {
		key := "p" + string(rune('a'+i))
		owner.Call(t, "createIdentityProvider", merged(acme(p, key), harness.Body{"client_id": key})).OK(t)
	}
	owner.Call(t, "createIdentityProvider", merged(acme(p, "one-more"), harness.Body{"client_id": "more"})).Refused(t, "conflict", "provider_limit")
	var keys []string
	list := owner.Call(t, "listIdentityProviders").OK(t)
	for i := range 20 {
		keys = append(keys, list.Str("items."+strconv.Itoa(i)+".key"))
	}
	if !slices.IsSorted(keys) || keys[19] != "pt" {
		t.Errorf("the list: %v", keys)
	}
}
