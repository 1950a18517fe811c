// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// providerViolated translates the constraints of identity providers.
func providerViolated(err error) error {
	switch pg.Constraint(err) {
	case "identity_providers_key_key":
		return errs.Conflict("key_taken", "Another provider has this key.").WithCause(err)
	case "identity_providers_issuer_key":
		return errs.Conflict("issuer_taken", "This client of the issuer is connected already.").WithCause(err)
	case "user_identities_provider_id_fkey":
		return errs.Conflict("in_use", "People are linked with this provider. Disable it instead, or unlink them first.").WithCause(err)
	default:
		return err
	}
}

// ListProviders implements app.ProviderStore.
func (s *Store) ListProviders(ctx context.Context, limit int) ([]app.Provider, error) {
	rows, err := s.read(ctx).IdentityProviders(ctx, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list identity providers: %w", err)
	}
	out := make([]app.Provider, len(rows))
	for i, r := range rows {
		if out[i], err = provider(sqlcgen.IdentityProviderByIDRow(r)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ProviderByID implements app.ProviderStore.
func (s *Store) ProviderByID(ctx context.Context, id ids.ID) (app.Provider, bool, error) {
	r, err := s.read(ctx).IdentityProviderByID(ctx, id)
	if found, err := absent(err, "read an identity provider"); err != nil || !found {
		return app.Provider{}, false, err
	}
	p, err := provider(r)
	return p, err == nil, err
}

// LockProvider implements app.ProviderStore.
func (s *Store) LockProvider(ctx context.Context, id ids.ID) (app.Provider, bool, error) {
	r, err := s.read(ctx).IdentityProviderLock(ctx, id)
	if found, err := absent(err, "lock an identity provider"); err != nil || !found {
		return app.Provider{}, false, err
	}
	p, err := provider(sqlcgen.IdentityProviderByIDRow(r))
	return p, err == nil, err
}

// LockProviders implements app.ProviderStore.
func (s *Store) LockProviders(ctx context.Context) error {
	return write(ctx).IdentityProvidersLockAll(ctx)
}

// InsertProvider implements app.ProviderStore.
func (s *Store) InsertProvider(ctx context.Context, p app.Provider) error {
	claims, err := json.Marshal(p.Claims)
	if err != nil {
		return fmt.Errorf("encode the claims of a provider: %w", err)
	}
	return write(ctx, pg.MapError(providerViolated)).IdentityProviderInsert(ctx, sqlcgen.IdentityProviderInsertParams{
		ID: p.ID, Kind: p.Kind, Key: p.Key, DisplayName: p.DisplayName, Icon: textPtr(p.Icon), Enabled: p.Enabled, Issuer: textPtr(p.Issuer),
		ClientID: textPtr(p.ClientID), ClientAuth: textPtr(p.ClientAuth), ClientSecretRef: textPtr(p.SecretRef), Scopes: p.Scopes, Claims: claims,
		Provisioning: p.Provisioning, LinkByEmail: p.LinkByEmail, TrustMfa: p.TrustMFA, RequiredAcr: textPtr(p.RequiredACR),
		AllowedDomains: p.AllowedDomains, RequireEmail: p.RequireEmail, ClaimTtlMs: p.ClaimTTL.Milliseconds(),
		MaxAuthAgeMs: millisPtr(p.MaxAuthAge), CreatedAt: p.CreatedAt,
	})
}

// UpdateProvider implements app.ProviderStore.
func (s *Store) UpdateProvider(ctx context.Context, p app.Provider) error {
	claims, err := json.Marshal(p.Claims)
	if err != nil {
		return fmt.Errorf("encode the claims of a provider: %w", err)
	}
	return write(ctx, pg.MapError(providerViolated), expectOne("change an identity provider")).IdentityProviderUpdate(ctx, sqlcgen.IdentityProviderUpdateParams{
		ID: p.ID, Key: p.Key, DisplayName: p.DisplayName, Icon: textPtr(p.Icon), Enabled: p.Enabled, Issuer: textPtr(p.Issuer),
		ClientID: textPtr(p.ClientID), ClientAuth: textPtr(p.ClientAuth), ClientSecretRef: textPtr(p.SecretRef), Scopes: p.Scopes, Claims: claims,
		Provisioning: p.Provisioning, LinkByEmail: p.LinkByEmail, TrustMfa: p.TrustMFA, RequiredAcr: textPtr(p.RequiredACR),
		AllowedDomains: p.AllowedDomains, RequireEmail: p.RequireEmail, ClaimTtlMs: p.ClaimTTL.Milliseconds(),
		MaxAuthAgeMs: millisPtr(p.MaxAuthAge), UpdatedAt: p.UpdatedAt,
	})
}

// DeleteProvider implements app.ProviderStore.
func (s *Store) DeleteProvider(ctx context.Context, id ids.ID) error {
	return write(ctx, pg.MapError(providerViolated), expectOne("delete an identity provider")).IdentityProviderDelete(ctx, id)
}

// ProviderInUse implements app.ProviderStore.
func (s *Store) ProviderInUse(ctx context.Context, id ids.ID) (bool, error) {
	used, err := s.read(ctx).IdentityProviderInUse(ctx, id)
	return used, failed(err, "look for links with an identity provider")
}

// OwnersOnlyBy implements app.ProviderStore.
func (s *Store) OwnersOnlyBy(ctx context.Context, id ids.ID, d domain.Drivers) (bool, error) {
	stranded, err := s.read(ctx).OwnersOnlyBy(ctx, id, d.Local, d.Passkey)
	return stranded, failed(err, "look for owners with no other way in")
}

func provider(r sqlcgen.IdentityProviderByIDRow) (app.Provider, error) {
	p := app.Provider{
		ID: r.ID, Kind: r.Kind, Key: r.Key, DisplayName: r.DisplayName, Icon: textOr(r.Icon), Enabled: r.Enabled, Issuer: textOr(r.Issuer),
		ClientID: textOr(r.ClientID), ClientAuth: textOr(r.ClientAuth), SecretRef: textOr(r.ClientSecretRef), Scopes: r.Scopes,
		Provisioning: r.Provisioning, LinkByEmail: r.LinkByEmail, TrustMFA: r.TrustMfa, RequiredACR: textOr(r.RequiredAcr),
		AllowedDomains: r.AllowedDomains, RequireEmail: r.RequireEmail, ClaimTTL: time.Duration(r.ClaimTtlMs) * time.Millisecond,
		Version: r.Version, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.MaxAuthAgeMs != nil {
		p.MaxAuthAge = time.Duration(*r.MaxAuthAgeMs) * time.Millisecond
	}
	if err := json.Unmarshal(r.Claims, &p.Claims); err != nil {
		return app.Provider{}, fmt.Errorf("read the claims of a provider: %w", err)
	}
	return p, nil
}

func millisPtr(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
