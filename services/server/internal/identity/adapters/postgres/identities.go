// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// IdentityBySubject implements app.ProviderStore.
func (s *Store) IdentityBySubject(ctx context.Context, provider ids.ID, issuer, subject string) (app.Identity, bool, error) {
	r, err := s.read(ctx).IdentityBySubject(ctx, provider, issuer, subject)
	found, err := absent(err, "find who a subject is")
	return app.Identity{ID: r.ID, PrincipalID: r.PrincipalID}, found, err
}

// ListIdentities implements app.ProviderStore.
func (s *Store) ListIdentities(ctx context.Context, principal ids.ID, limit int) ([]app.Identity, error) {
	rows, err := s.read(ctx).IdentitiesOfPrincipal(ctx, principal, int32(limit))
	if err != nil {
		return nil, fmt.Errorf("list identities: %w", err)
	}
	out := make([]app.Identity, len(rows))
	for i, r := range rows {
		out[i] = app.Identity{
			ID: r.ID, PrincipalID: r.PrincipalID, ProviderID: r.ProviderID, ProviderKey: r.ProviderKey, ProviderName: r.ProviderName,
			Enabled: r.Enabled, Label: r.Label, LinkedAt: r.LinkedAt, LastLoginAt: r.LastLoginAt,
		}
	}
	return out, nil
}

// InsertIdentity implements app.ProviderStore.
func (s *Store) InsertIdentity(ctx context.Context, i app.Identity) error {
	return write(ctx, pg.MapError(identityViolated)).IdentityInsert(ctx, sqlcgen.IdentityInsertParams{
		ID: i.ID, PrincipalID: i.PrincipalID, ProviderID: i.ProviderID, Issuer: i.Issuer, Subject: i.Subject, Label: i.Label,
		LinkedAt: i.LinkedAt, LinkedBy: i.PrincipalID, LastLoginAt: i.LastLoginAt,
	})
}

// identityViolated translates what two links at a time run into.
func identityViolated(err error) error {
	if pg.Constraint(err) == "user_identities_subject_key" {
		return errs.Conflict("identity_in_use", "This identity is linked already, with you or with somebody else.").WithCause(err)
	}
	return err
}

// UseIdentity implements app.ProviderStore.
func (s *Store) UseIdentity(ctx context.Context, id ids.ID, at time.Time) error {
	return write(ctx, expectOne("note a login by an identity")).IdentityUsed(ctx, at, id)
}

// DeleteIdentity implements app.ProviderStore.
func (s *Store) DeleteIdentity(ctx context.Context, principal, id ids.ID) error {
	return write(ctx, expectOne("unlink an identity")).IdentityDelete(ctx, id, principal)
}

// PersonByEmail implements app.ProviderStore.
func (s *Store) PersonByEmail(ctx context.Context, provider ids.ID, email string) (app.PersonMatch, error) {
	r, err := s.read(ctx).PersonByVerifiedEmail(ctx, provider, email)
	if found, err := absent(err, "find a person by her address"); err != nil || !found {
		return app.PersonMatch{}, err
	}
	return app.PersonMatch{PrincipalID: r.PrincipalID, EmailMatch: domain.EmailMatch{
		Found: true, Active: r.Status == string(identity.StatusActive), Owner: r.Owner, LinkedHere: r.LinkedHere,
	}}, nil
}

// EmailHolder implements app.ProviderStore.
func (s *Store) EmailHolder(ctx context.Context, email string) (ids.ID, bool, error) {
	id, err := s.read(ctx).EmailHolder(ctx, email)
	found, err := absent(err, "find who has an address")
	return id, found, err
}

// SetVerifiedEmail implements app.ProviderStore.
func (s *Store) SetVerifiedEmail(ctx context.Context, principal ids.ID, email string, verified bool) error {
	return write(ctx, pg.MapError(violated)).UserSetVerifiedEmail(ctx, textPtr(email), verified, principal)
}

// FlowByState implements app.ProviderStore.
func (s *Store) FlowByState(ctx context.Context, hash []byte) (app.Flow, bool, error) {
	r, err := s.read(ctx).FlowByState(ctx, hash)
	if found, err := absent(err, "find the login of a browser"); err != nil || !found {
		return app.Flow{}, false, err
	}
	f, err := flow(sqlcgen.FlowByIDRow(r))
	return f, err == nil, err
}

// ClaimState implements app.ProviderStore.
func (s *Store) ClaimState(ctx context.Context, id ids.ID) (bool, error) {
	n, err := s.read(ctx).FlowClaimState(ctx, id)
	return n == 1, failed(err, "take a browser back")
}

// KeepPerson implements app.ProviderStore.
func (s *Store) KeepPerson(ctx context.Context, id ids.ID, person domain.External, result []byte, expires time.Time) (bool, error) {
	raw, err := json.Marshal(person)
	if err != nil {
		return false, fmt.Errorf("encode an external person: %w", err)
	}
	n, err := s.read(ctx).FlowExternalDone(ctx, sqlcgen.FlowExternalDoneParams{ID: id, External: raw, ResultHash: result, ExpiresAt: expires})
	return n == 1, failed(err, "keep what a provider said")
}

// FailFlow implements app.ProviderStore.
func (s *Store) FailFlow(ctx context.Context, id ids.ID) error { return write(ctx).FlowFail(ctx, id) }

// externalFlow is the part of a flow that a provider has.
func externalFlow(r sqlcgen.FlowByIDRow) (app.ExternalFlow, error) {
	by := app.ExternalFlow{
		ProviderID: ids.Deref(r.ProviderID), NonceHash: r.NonceHash, BrowserHash: r.BrowserHash, ResultHash: r.ResultHash,
		Verifier: r.PkceWrapped, ReturnTo: domain.ReturnTo(textOr(r.ReturnTo)),
	}
	if r.External == nil {
		return by, nil
	}
	by.Person = &domain.External{}
	if err := json.Unmarshal(r.External, by.Person); err != nil {
		return by, fmt.Errorf("read an external person: %w", err)
	}
	return by, nil
}
