// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

const (
	// providerFresh is how long metadata and keys are used without another look.
	providerFresh = time.Hour
	// providerRetry is the shortest time between two looks, whatever asks for them.
	providerRetry = time.Minute
	// providerStale is how long a provider that is away is believed from memory.
	providerStale = 24 * time.Hour
	// providersRemembered bounds the memory; there are at most maxProviders at a time.
	providersRemembered = 2 * maxProviders
)

// providerMemory remembers metadata and keys of providers. A token with an unknown key leads
// to one look per minute and provider, so a flood of them stays here; a provider that cannot
// be reached is served from memory for a day.
type providerMemory struct {
	clock clock.Clock
	from  OpenID

	mu      sync.Mutex
	entries map[string]*rememberedProvider
}

type rememberedProvider struct {
	mu       sync.Mutex
	metadata domain.ProviderMetadata
	keys     []domain.ProviderKey
	read     time.Time
	tried    time.Time
}

func newProviderMemory(clk clock.Clock, from OpenID) *providerMemory {
	return &providerMemory{clock: clk, from: from, entries: map[string]*rememberedProvider{}}
}

func (m *providerMemory) entry(issuer string) *rememberedProvider {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[issuer] == nil {
		if len(m.entries) >= providersRemembered {
			clear(m.entries)
		}
		m.entries[issuer] = &rememberedProvider{}
	}
	return m.entries[issuer]
}

// metadataOf gives the metadata of a provider, or unavailable.
func (m *providerMemory) metadataOf(ctx context.Context, issuer string) (domain.ProviderMetadata, error) {
	e := m.entry(issuer)
	e.mu.Lock()
	defer e.mu.Unlock()
	err := m.refresh(ctx, e, issuer, m.clock.Now().Sub(e.read) >= providerFresh)
	return e.metadata, err
}

// verify checks the signature of an ID token and gives its payload. A key that is not known
// is looked for once before the token is refused.
func (m *providerMemory) verify(ctx context.Context, issuer, token string) ([]byte, error) {
	e := m.entry(issuer)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := m.refresh(ctx, e, issuer, m.clock.Now().Sub(e.read) >= providerFresh); err != nil {
		return nil, err
	}
	payload, err := domain.VerifyIDToken(token, e.keys)
	if domain.FaultOf(err) != domain.TokenUnknownKey {
		return payload, err
	}
	if err := m.refresh(ctx, e, issuer, true); err != nil {
		return nil, err
	}
	return domain.VerifyIDToken(token, e.keys)
}

// refresh looks at the provider when asked to and when the last look is long enough ago.
// What the provider said about itself a day ago is not believed any more.
func (m *providerMemory) refresh(ctx context.Context, e *rememberedProvider, issuer string, wanted bool) error {
	now := m.clock.Now()
	if wanted && now.Sub(e.tried) >= providerRetry {
		e.tried = now
		if metadata, keys, err := m.look(ctx, issuer); err == nil {
			e.metadata, e.keys, e.read = metadata, keys, now
		}
	}
	if e.read.IsZero() || now.Sub(e.read) > providerStale {
		return errProviderUnavailable()
	}
	return nil
}

func (m *providerMemory) look(ctx context.Context, issuer string) (domain.ProviderMetadata, []domain.ProviderKey, error) {
	metadata, err := m.from.Metadata(ctx, issuer)
	if err != nil {
		return metadata, nil, err
	}
	keys, err := m.from.Keys(ctx, metadata.JWKSURI)
	return metadata, keys, err
}

// remember takes over what a test of the provider has read.
func (m *providerMemory) remember(issuer string, metadata domain.ProviderMetadata, keys []domain.ProviderKey) {
	e := m.entry(issuer)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := m.clock.Now()
	e.metadata, e.keys, e.read, e.tried = metadata, keys, now, now
}

func errProviderUnavailable() error {
	return errs.New(errs.CodeUnavailable, "The identity provider cannot be reached. Try again shortly, or sign in another way.").
		WithReason("provider_unavailable")
}
