// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"time"

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
	// OwnersOnlyBy reports whether an active owner has no other way in through the drivers.
	OwnersOnlyBy(ctx context.Context, id ids.ID, d domain.Drivers) (bool, error)
	IdentityStore
	VisitStore
}

// IdentityStore keeps who people are at providers.
type IdentityStore interface {
	// IdentityBySubject gives ID and principal alone.
	IdentityBySubject(ctx context.Context, provider ids.ID, issuer, subject string) (i Identity, found bool, err error)
	// ListIdentities is oldest first.
	ListIdentities(ctx context.Context, principal ids.ID, limit int) ([]Identity, error)
	// InsertIdentity fails with conflict (identity_in_use) when the subject is linked.
	InsertIdentity(ctx context.Context, i Identity) error
	UseIdentity(ctx context.Context, id ids.ID, at time.Time) error
	DeleteIdentity(ctx context.Context, principal, id ids.ID) error
	// PersonByEmail finds the person with the verified address.
	PersonByEmail(ctx context.Context, provider ids.ID, email string) (PersonMatch, error)
	// EmailHolder is who has the address, verified or not.
	EmailHolder(ctx context.Context, email string) (id ids.ID, found bool, err error)
	SetVerifiedEmail(ctx context.Context, principal ids.ID, email string, verified bool) error
}

// PersonMatch is the person with a verified address.
type PersonMatch struct {
	PrincipalID ids.ID
	domain.EmailMatch
}

// VisitStore keeps flows while their browser is at a provider.
type VisitStore interface {
	FlowByState(ctx context.Context, hash []byte) (f Flow, found bool, err error)
	// ClaimState uses the state of a flow up; false when somebody was faster.
	ClaimState(ctx context.Context, id ids.ID) (bool, error)
	// KeepPerson keeps what the provider said until the client fetches it; false when the
	// flow is over.
	KeepPerson(ctx context.Context, id ids.ID, person domain.External, result []byte, expires time.Time) (bool, error)
	FailFlow(ctx context.Context, id ids.ID) error
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
