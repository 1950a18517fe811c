// SPDX-License-Identifier: Apache-2.0

// Package oidc speaks with OpenID providers over HTTP: discovery, keys, the token endpoint
// and userinfo. It fetches and reads; what a token must say, how long keys are kept and what
// follows are rules of domain and app. Every request leaves through platform/egress.
package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/platform/egress"
)

// Bounds of what a provider may answer.
const (
	maxDocument = 256 << 10
	maxTokens   = 64 << 10
)

const discoveryPath = "/.well-known/openid-configuration"

// Requester sends requests to other hosts; *egress.Client is the one.
type Requester interface {
	Check(address string) error
	Do(ctx context.Context, r egress.Request) (egress.Response, error)
}

// Client implements app.OpenID. It is safe for concurrent use and remembers nothing.
type Client struct{ http Requester }

var _ app.OpenID = (*Client)(nil)

// New makes the client.
func New(requests Requester) *Client { return &Client{requests} }

// Permitted implements app.OpenID.
func (c *Client) Permitted(address string) error {
	if err := c.http.Check(address); err != nil {
		return problem(err)
	}
	return nil
}

// Metadata implements app.OpenID.
func (c *Client) Metadata(ctx context.Context, issuer string) (domain.ProviderMetadata, error) {
	raw, err := c.get(ctx, strings.TrimSuffix(issuer, "/")+discoveryPath, nil)
	if err != nil {
		return domain.ProviderMetadata{}, err
	}
	m, err := domain.ParseMetadata(raw, issuer)
	if errors.Is(err, domain.ErrIssuerMismatch) {
		return m, &app.ProviderError{Code: "issuer_mismatch", Cause: err}
	}
	return m, malformed(err)
}

// Keys implements app.OpenID.
func (c *Client) Keys(ctx context.Context, address string) ([]domain.ProviderKey, error) {
	raw, err := c.get(ctx, address, nil)
	if err != nil {
		return nil, err
	}
	keys, err := domain.ParseKeySet(raw)
	return keys, malformed(err)
}

// UserInfo implements app.OpenID. Only the plain form is read; a signed one is malformed.
func (c *Client) UserInfo(ctx context.Context, address, accessToken string) (domain.ClaimValues, error) {
	raw, err := c.get(ctx, address, http.Header{"Authorization": {"Bearer " + accessToken}})
	if err != nil {
		return nil, err
	}
	claims, err := domain.ParseClaims(raw)
	return claims, malformed(err)
}

func (c *Client) get(ctx context.Context, address string, header http.Header) ([]byte, error) {
	if header == nil {
		header = http.Header{}
	}
	header.Set("Accept", "application/json")
	r, err := c.http.Do(ctx, egress.Request{Method: http.MethodGet, URL: address, Header: header, MaxBytes: maxDocument})
	if err != nil {
		return nil, problem(err)
	}
	if r.Status != http.StatusOK {
		return nil, refused(r.Status)
	}
	return r.Body, nil
}

// Exchange implements app.OpenID.
func (c *Client) Exchange(ctx context.Context, e app.CodeExchange) (app.ProviderTokens, error) {
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {e.Code}, "redirect_uri": {e.RedirectURI}, "code_verifier": {e.Verifier},
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	switch e.ClientAuth {
	case domain.ClientSecretBasic:
		// RFC 6749, section 2.3.1: both parts are encoded as in a form first.
		pair := url.QueryEscape(e.ClientID) + ":" + url.QueryEscape(e.Secret)
		header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	case domain.ClientSecretPost:
		form.Set("client_id", e.ClientID)
		form.Set("client_secret", e.Secret)
	default:
		form.Set("client_id", e.ClientID)
	}
	r, err := c.http.Do(ctx, egress.Request{
		Method: http.MethodPost, URL: e.Endpoint, Header: header, Body: []byte(form.Encode()), MaxBytes: maxTokens,
	})
	if err != nil {
		return app.ProviderTokens{}, problem(err)
	}
	if r.Status != http.StatusOK {
		return app.ProviderTokens{}, refused(r.Status)
	}
	return parseTokens(r.Header.Get("Content-Type"), r.Body)
}

// parseTokens reads the answer of the token endpoint.
func parseTokens(contentType string, raw []byte) (app.ProviderTokens, error) {
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return app.ProviderTokens{}, &app.ProviderError{Code: "malformed"}
	}
	var answer struct {
		IDToken     string `json:"id_token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || answer.IDToken == "" {
		return app.ProviderTokens{}, &app.ProviderError{Code: "malformed", Cause: err}
	}
	return app.ProviderTokens{IDToken: answer.IDToken, AccessToken: answer.AccessToken}, nil
}

// refused tells a provider that does not want to from one that cannot.
func refused(status int) error {
	return &app.ProviderError{Code: "http_status", Refused: status >= 400 && status < 500 && status != http.StatusTooManyRequests}
}

func malformed(err error) error {
	if err == nil {
		return nil
	}
	return &app.ProviderError{Code: "malformed", Cause: err}
}

// problem translates a failure of the way out.
func problem(err error) error {
	code := string(egress.CodeOf(err))
	if code == "" {
		code = string(egress.CodeConnect)
	}
	return &app.ProviderError{Code: code, Cause: err}
}
