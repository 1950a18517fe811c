// SPDX-License-Identifier: Apache-2.0

package oidc

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/platform/egress"
)

// answers is the way out with one answer to everything.
type answers struct {
	egress.Response
	err  error
	last egress.Request
}

// Check implements Requester.
func (a *answers) Check(string) error { return a.err }

// Do implements Requester.
func (a *answers) Do(_ context.Context, r egress.Request) (egress.Response, error) {
	a.last = r
	return a.Response, a.err
}

func answer(status int, contentType, body string) *answers {
	return &answers{Response: egress.Response{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: []byte(body)}}
}

func codeOf(err error) (code string, refused bool) {
	var e *app.ProviderError
	if errors.As(err, &e) {
		return e.Code, e.Refused
	}
	return "", false
}

func TestClientsProveThemselves(t *testing.T) {
	exchange := app.CodeExchange{Endpoint: "https://id.example.org/token", ClientID: "bo thy", Secret: "a:b/c", Code: "c", Verifier: "v", RedirectURI: "https://chat.example/cb"}
	for way, want := range map[string]struct{ basic, id, secret string }{
		domain.ClientSecretBasic: {"Basic Ym8rdGh5OmElM0FiJTJGYw==", "", ""}, domain.ClientSecretPost: {"", "bo thy", "a:b/c"}, domain.ClientPublic: {"", "bo thy", ""},
	} {
		exchange.ClientAuth = way
		out := answer(http.StatusOK, "application/json; charset=utf-8", `{"id_token":"t","access_token":"a"}`)
		tokens, err := New(out).Exchange(t.Context(), exchange)
		if err != nil || tokens != (app.ProviderTokens{IDToken: "t", AccessToken: "a"}) {
			t.Errorf("%s: %+v, %v", way, tokens, err)
		}
		form, err := url.ParseQuery(string(out.last.Body))
		if err != nil {
			t.Fatal(err)
		}
		if out.last.Header.Get("Authorization") != want.basic || form.Get("client_id") != want.id || form.Get("client_secret") != want.secret ||
			form.Get("code_verifier") != "v" || form.Get("grant_type") != "authorization_code" || out.last.MaxBytes != maxTokens {
			t.Errorf("%s sends %v %v", way, out.last.Header, form)
		}
	}
}

func TestAnswersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		out     *answers
		code    string
		refused bool
	}{
		"bad code":      {answer(http.StatusBadRequest, "application/json", `{"error":"invalid_grant"}`), "http_status", true},
		"too many":      {answer(http.StatusTooManyRequests, "application/json", ""), "http_status", false},
		"broken":        {answer(http.StatusBadGateway, "text/html", ""), "http_status", false},
		"a page":        {answer(http.StatusOK, "text/html", `{"id_token":"t"}`), "malformed", false},
		"no token":      {answer(http.StatusOK, "application/json", `{"access_token":"a"}`), "malformed", false},
		"no object":     {answer(http.StatusOK, "application/json", `[]`), "malformed", false},
		"not reached":   {&answers{err: &egress.Error{Code: egress.CodeTimeout}}, "timeout", false},
		"other failure": {&answers{err: errors.New("x")}, "connect", false},
	} {
		_, err := New(c.out).Exchange(t.Context(), app.CodeExchange{})
		if code, refused := codeOf(err); code != c.code || refused != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if code, _ := codeOf(New(&answers{err: &egress.Error{Code: egress.CodeURLNotAllowed}}).Permitted("x")); code != "url_not_allowed" {
		t.Errorf("an address out of bounds: %q", code)
	}
	if _, err := New(answer(http.StatusOK, "application/jwt", "a.b.c")).UserInfo(t.Context(), "https://id.example.org/u", "a"); err == nil {
		t.Error("a signed userinfo is read")
	}
}

func TestIssuersKeepTheirPath(t *testing.T) {
	for issuer, want := range map[string]string{
		"https://id.example.org":         "https://id.example.org/.well-known/openid-configuration",
		"https://id.example.org/":        "https://id.example.org/.well-known/openid-configuration",
		"https://id.example.org/realm/x": "https://id.example.org/realm/x/.well-known/openid-configuration",
	} {
		out := answer(http.StatusOK, "application/json", `{"issuer":"https://evil.example"}`)
		_, err := New(out).Metadata(t.Context(), issuer)
		if code, _ := codeOf(err); out.last.URL != want || code != "issuer_mismatch" {
			t.Errorf("%s is asked at %s: %v", issuer, out.last.URL, err)
		}
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add("application/json", []byte(`{"id_token":"a.b.c","access_token":"x"}`))
	f.Add("text/html", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, contentType string, raw []byte) {
		if tokens, err := parseTokens(contentType, raw); err == nil && tokens.IDToken == "" {
			t.Errorf("%q gives nothing: %+v", raw, tokens)
		}
	})
}
