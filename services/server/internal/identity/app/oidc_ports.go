// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ProviderStore keeps identity providers and who is who at them.
type ProviderStore interface {
	// ListProviders is ordered by key.
	ListProviders(ctx context.Context, limit int) ([]Provider, error)
	ProviderByID(ctx context.Context, id ids.ID) (p Provider, found bool, err error)
	// LockProvider keeps the row until the unit ends.
	LockProvider(ctx context.Context, id ids.ID) (p Provider, found bool, err error)
	// LockProviders makes decisions about how many there are serial.
	LockProviders(ctx context.Context) error
	InsertProvider(ctx context.Context, p Provider) error
	UpdateProvider(ctx context.Context, p Provider) error
	DeleteProvider(ctx context.Context, id ids.ID) error
	// ProviderInUse reports whether anybody is linked with it.
	ProviderInUse(ctx context.Context, id ids.ID) (bool, error)
	// OwnersOnlyBy reports whether an active owner has no other way in.
	OwnersOnlyBy(ctx context.Context, id ids.ID) (bool, error)
}

// OpenID speaks with identity providers; the adapter oidc implements it. Its calls leave the
// server, so none is made inside a unit of work. They fail with *ProviderError.
type OpenID interface {
	// Permitted tells whether the server may reach an address at all, without trying.
	Permitted(address string) error
	// Metadata fetches the discovery document of an issuer.
	Metadata(ctx context.Context, issuer string) (domain.ProviderMetadata, error)
	// Keys fetches the keys with which a provider signs.
	Keys(ctx context.Context, address string) ([]domain.ProviderKey, error)
	// Exchange trades the code of a callback for tokens.
	Exchange(ctx context.Context, e CodeExchange) (ProviderTokens, error)
	// UserInfo asks for the claims that the ID token left out.
	UserInfo(ctx context.Context, address, accessToken string) (domain.ClaimValues, error)
}

// CodeExchange is a request to the token endpoint.
type CodeExchange struct {
	Endpoint             string
	ClientID, ClientAuth string
	// Secret is empty for a public client.
	Secret                      string
	Code, Verifier, RedirectURI string
}

// ProviderTokens are what a provider gives for a code.
type ProviderTokens struct{ IDToken, AccessToken string }

// Secrets reads a secret by its reference; platform/secrets implements it.
type Secrets interface {
	Secret(ref string) (string, error)
}

// ProviderError is a failed conversation with a provider.
type ProviderError struct {
	// Code is one of the problems of testIdentityProvider.
	Code string
	// Refused says that the provider answered and did not want to, so asking again is of no
	// use; otherwise it could not be reached or made no sense.
	Refused bool
	Cause   error
}

// Error implements error.
func (e *ProviderError) Error() string { return "identity provider: " + e.Code }

// Unwrap gives the cause.
func (e *ProviderError) Unwrap() error { return e.Cause }

// problemOf is the code of a failed conversation.
func problemOf(err error) string {
	var e *ProviderError
	if errors.As(err, &e) {
		return e.Code
	}
	return "malformed"
}
