// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// OpenID stands for a provider that answers what the test gave it. The zero value reaches
// nothing. Real providers are met by the integration tests.
type OpenID struct {
	mu       sync.Mutex
	metadata domain.ProviderMetadata
	keys     []domain.ProviderKey
	tokens   app.ProviderTokens
	info     domain.ClaimValues
	failure  error
	asked    map[string]int
}

// Answer sets what is answered from now on, and whether everything fails.
func (o *OpenID) Answer(m domain.ProviderMetadata, keys []domain.ProviderKey, failure error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.metadata, o.keys, o.failure = m, keys, failure
}

// Give sets what the next exchange and userinfo give.
func (o *OpenID) Give(tokens app.ProviderTokens, info domain.ClaimValues) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tokens, o.info = tokens, info
}

// Asked counts the calls of a method by its name in lower case.
func (o *OpenID) Asked(method string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[method]
}

func (o *OpenID) ask(method string) error {
	if o.asked == nil {
		o.asked = map[string]int{}
	}
	o.asked[method]++
	return o.failure
}

// Permitted implements app.OpenID: hosts below "forbidden" are refused.
func (o *OpenID) Permitted(address string) error {
	if strings.Contains(address, "forbidden") {
		return &app.ProviderError{Code: "url_not_allowed"}
	}
	return nil
}

// Metadata implements app.OpenID.
func (o *OpenID) Metadata(context.Context, string) (domain.ProviderMetadata, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.metadata, o.ask("metadata")
}

// Keys implements app.OpenID.
func (o *OpenID) Keys(context.Context, string) ([]domain.ProviderKey, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keys, o.ask("keys")
}

// Exchange implements app.OpenID.
func (o *OpenID) Exchange(context.Context, app.CodeExchange) (app.ProviderTokens, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens, o.ask("exchange")
}

// UserInfo implements app.OpenID.
func (o *OpenID) UserInfo(context.Context, string, string) (domain.ClaimValues, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.info, o.ask("userinfo")
}

// Secrets gives the client secrets of a test; an unknown reference fails.
type Secrets map[string]string

// Secret implements app.Secrets.
func (s Secrets) Secret(ref string) (string, error) {
	if text, ok := s[ref]; ok {
		return text, nil
	}
	return "", errors.New("there is no such secret")
}

// GroupClaims notes what logins said about groups.
type GroupClaims struct {
	mu   sync.Mutex
	Seen []authz.Claims
	// Moved makes the next Sync tell that groups have changed.
	Moved bool
}

// Declare implements authz.ClaimGroups.
func (*GroupClaims) Declare(context.Context, authz.Claims) ([]txn.Option, error) { return nil, nil }

// Sync implements authz.ClaimGroups.
func (c *GroupClaims) Sync(_ context.Context, said authz.Claims) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Moved {
		c.Moved = false
		return authz.ErrClaimsMoved
	}
	c.Seen = append(c.Seen, said)
	return nil
}
