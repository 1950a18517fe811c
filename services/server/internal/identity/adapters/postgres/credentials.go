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
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// LoginCandidate implements app.Credentials.
func (s *Store) LoginCandidate(ctx context.Context, login string, key domain.Thumbprint) (app.Candidate, error) {
	r, err := s.read(ctx).LoginCandidate(ctx, key[:], login)
	if found, err := absent(err, "find who signs in"); err != nil || !found {
		return app.Candidate{}, err
	}
	c := app.Candidate{
		PrincipalID: r.ID, Active: r.Status == string(identity.StatusActive), PasswordHash: textOr(r.PasswordHash), KnownDevice: r.KnownDevice,
	}
	if r.FailedCount != nil {
		c.Failures = domain.Failures{Count: int(*r.FailedCount), Since: timeOr(r.FailedSince), Last: timeOr(r.FailedLastAt)}
	}
	c.MustChange = r.MustChange != nil && *r.MustChange
	return c, nil
}

// PasswordHash implements app.Credentials.
func (s *Store) PasswordHash(ctx context.Context, principal ids.ID) (string, domain.Failures, error) {
	r, err := s.read(ctx).LocalCredentialByPrincipal(ctx, principal)
	if found, err := absent(err, "read a password"); err != nil || !found {
		return "", domain.Failures{}, err
	}
	return r.PasswordHash, domain.Failures{Count: int(r.FailedCount), Since: timeOr(r.FailedSince), Last: timeOr(r.FailedLastAt)}, nil
}

// SetPassword implements app.Credentials.
func (s *Store) SetPassword(ctx context.Context, principal ids.ID, hash string, at time.Time) error {
	return write(ctx).LocalCredentialSet(ctx, principal, hash, at)
}

// Rehash implements app.Credentials.
func (s *Store) Rehash(ctx context.Context, principal ids.ID, oldHash, newHash string) error {
	return write(ctx).LocalCredentialRehash(ctx, newHash, principal, oldHash)
}

// SetFailures implements app.Credentials.
func (s *Store) SetFailures(ctx context.Context, principal ids.ID, f domain.Failures) error {
	return write(ctx).LocalCredentialFailures(ctx, sqlcgen.LocalCredentialFailuresParams{
		PrincipalID: principal, FailedCount: int32(f.Count), FailedSince: timePtr(f.Since), FailedLastAt: timePtr(f.Last),
	})
}

// DeletePassword implements app.Credentials.
func (s *Store) DeletePassword(ctx context.Context, principal ids.ID) error {
	return write(ctx).LocalCredentialDelete(ctx, principal)
}

// CodeByHash implements app.Credentials.
func (s *Store) CodeByHash(ctx context.Context, hash [32]byte) (app.Code, bool, error) {
	r, err := s.read(ctx).EnrollmentCodeByHash(ctx, hash[:])
	found, err := absent(err, "find an enrollment code")
	return code(sqlcgen.EnrollmentCodeByIDRow(r)), found, err
}

// CodeByID implements app.Credentials.
func (s *Store) CodeByID(ctx context.Context, id ids.ID) (app.Code, bool, error) {
	r, err := s.read(ctx).EnrollmentCodeByID(ctx, id)
	found, err := absent(err, "read an enrollment code")
	return code(r), found, err
}

func code(r sqlcgen.EnrollmentCodeByIDRow) app.Code {
	c := app.Code{
		ID: r.ID, PrincipalID: r.PrincipalID, Status: identity.Status(r.Status), Handle: r.Handle, DisplayName: r.DisplayName, Email: r.Email,
	}
	c.EnrollmentCode = domain.EnrollmentCode{
		Purpose: domain.CodePurpose(r.Purpose), ExpiresAt: r.ExpiresAt, Redeemed: r.RedeemedAt != nil, Revoked: r.RevokedAt != nil,
	}
	return c
}

// InsertCode implements app.Credentials.
func (s *Store) InsertCode(ctx context.Context, c app.Code, hash [32]byte, by ids.ID, at time.Time) error {
	return write(ctx).EnrollmentCodeInsert(ctx, sqlcgen.EnrollmentCodeInsertParams{
		ID: c.ID, PrincipalID: c.PrincipalID, Purpose: string(c.Purpose), CodeHash: hash[:], ExpiresAt: c.ExpiresAt,
		IssuedBy: by.Ptr(), IssuedAt: at,
	})
}

// RevokeCodes implements app.Credentials.
func (s *Store) RevokeCodes(ctx context.Context, principal ids.ID, at time.Time) error {
	return write(ctx).EnrollmentCodesRevoke(ctx, at, principal)
}

// RevokeCodesFor implements app.Credentials.
func (s *Store) RevokeCodesFor(ctx context.Context, purpose domain.CodePurpose, at time.Time) error {
	return write(ctx).EnrollmentCodesRevokePurpose(ctx, at, string(purpose))
}

// RedeemCode implements app.Credentials.
func (s *Store) RedeemCode(ctx context.Context, id ids.ID, at time.Time) (bool, error) {
	n, err := s.read(ctx).EnrollmentCodeRedeem(ctx, at, id)
	return n == 1, failed(err, "redeem an enrollment code")
}

// InsertFlow implements app.Flows.
func (s *Store) InsertFlow(ctx context.Context, f app.Flow) error {
	device, err := json.Marshal(f.Device)
	if err != nil {
		return fmt.Errorf("encode a device: %w", err)
	}
	return write(ctx).FlowInsert(ctx, sqlcgen.FlowInsertParams{
		ID: f.ID, Driver: f.Driver, Purpose: f.Purpose, PrincipalID: f.PrincipalID.Ptr(), SessionID: f.SessionID.Ptr(), Jkt: f.JKT[:],
		EnrollmentCodeID: f.EnrollmentCodeID.Ptr(), Device: device, CreatedAt: f.CreatedAt, ExpiresAt: f.ExpiresAt,
		ProviderID: f.By.ProviderID.Ptr(), StateHash: f.By.StateHash, NonceHash: f.By.NonceHash, PkceWrapped: f.By.Verifier,
		BrowserHash: f.By.BrowserHash, ReturnTo: textPtr(string(f.By.ReturnTo)),
	})
}

// FlowByID implements app.Flows.
func (s *Store) FlowByID(ctx context.Context, id ids.ID) (app.Flow, bool, error) {
	r, err := s.read(ctx).FlowByID(ctx, id)
	if found, err := absent(err, "read a login"); err != nil || !found {
		return app.Flow{}, false, err
	}
	f, err := flow(r)
	return f, err == nil, err
}

func flow(r sqlcgen.FlowByIDRow) (app.Flow, error) {
	jkt, err := thumbprint(r.Jkt)
	if err != nil {
		return app.Flow{}, err
	}
	f := app.Flow{
		ID: r.ID, Driver: r.Driver, Purpose: r.Purpose, PrincipalID: ids.Deref(r.PrincipalID), SessionID: ids.Deref(r.SessionID),
		EnrollmentCodeID: ids.Deref(r.EnrollmentCodeID), DeviceID: ids.Deref(r.DeviceID), AMR: r.Amr, ProvedAt: timeOr(r.ProvedAt),
		JKT: jkt, State: r.State, Attempts: int(r.Attempts), ExpiresAt: r.ExpiresAt,
	}
	if err := json.Unmarshal(r.Device, &f.Device); err != nil {
		return app.Flow{}, fmt.Errorf("read the device of a login: %w", err)
	}
	f.By, err = externalFlow(r)
	return f, err
}

// ConsumeFlow implements app.Flows.
func (s *Store) ConsumeFlow(ctx context.Context, id ids.ID) (bool, error) {
	n, err := s.read(ctx).FlowConsume(ctx, id)
	return n == 1, failed(err, "complete a login")
}

// HoldFlow implements app.Flows.
func (s *Store) HoldFlow(ctx context.Context, f app.Flow) error {
	return write(ctx, expectOne("keep a login for its device")).FlowHold(ctx, sqlcgen.FlowHoldParams{
		ID: f.ID, PrincipalID: f.PrincipalID.Ptr(), DeviceID: f.DeviceID.Ptr(), Amr: f.AMR, ProvedAt: timePtr(f.ProvedAt), ExpiresAt: f.ExpiresAt,
	})
}

// ExtendFlow implements app.Flows.
func (s *Store) ExtendFlow(ctx context.Context, id ids.ID, expires time.Time) error {
	return write(ctx, expectOne("extend a login")).FlowExtend(ctx, expires, id)
}

// CollectFlow implements app.Flows.
func (s *Store) CollectFlow(ctx context.Context, id ids.ID) (bool, error) {
	n, err := s.read(ctx).FlowCollect(ctx, id)
	return n == 1, failed(err, "complete a login")
}

// CountAttempt implements app.Flows.
func (s *Store) CountAttempt(ctx context.Context, id ids.ID, maxAttempts int) error {
	return write(ctx).FlowAttempt(ctx, int32(maxAttempts), id)
}

// DeleteExpiredFlows implements app.Flows.
func (s *Store) DeleteExpiredFlows(ctx context.Context, before time.Time, batch int) (int, error) {
	n, err := s.read(ctx).FlowsDeleteExpired(ctx, before, int32(batch))
	return int(n), failed(err, "delete logins")
}

// TokenForAuthentication implements app.APITokens.
func (s *Store) TokenForAuthentication(ctx context.Context, hash [32]byte) (app.TokenCredential, bool, error) {
	r, err := s.read(ctx).TokenForAuthentication(ctx, hash[:])
	if found, err := absent(err, "read an API token"); err != nil || !found {
		return app.TokenCredential{}, false, err
	}
	c, err := tokenCredential(sqlcgen.TokenForRevalidationRow(r))
	return c, err == nil, err
}

// TokenForRevalidation implements app.APITokens.
func (s *Store) TokenForRevalidation(ctx context.Context, id ids.ID) (app.TokenCredential, bool, error) {
	r, err := s.read(ctx).TokenForRevalidation(ctx, id)
	if found, err := absent(err, "read an API token"); err != nil || !found {
		return app.TokenCredential{}, false, err
	}
	c, err := tokenCredential(r)
	return c, err == nil, err
}

// InsertToken implements app.APITokens.
func (s *Store) InsertToken(ctx context.Context, t app.APIToken, hash [32]byte) error {
	cidrs := make([]string, len(t.AllowedCIDRs))
	for i, p := range t.AllowedCIDRs {
		cidrs[i] = p.String()
	}
	return write(ctx).TokenInsert(ctx, sqlcgen.TokenInsertParams{
		ID: t.ID, PrincipalID: t.PrincipalID, Kind: t.Kind, Name: t.Name, Hint: t.Hint, TokenHash: hash[:], Scopes: t.Scopes,
		Cidrs: cidrs, ExpiresAt: t.ExpiresAt, CreatedBy: t.CreatedBy, CreatedAt: t.CreatedAt,
	})
}

// TokenByID implements app.APITokens.
func (s *Store) TokenByID(ctx context.Context, id ids.ID) (app.APIToken, bool, error) {
	r, err := s.read(ctx).TokenByID(ctx, id)
	if found, err := absent(err, "read an API token"); err != nil || !found {
		return app.APIToken{}, false, err
	}
	t, err := apiToken(r)
	return t, err == nil, err
}

// ListTokens implements app.APITokens.
func (s *Store) ListTokens(ctx context.Context, principal, before ids.ID, at time.Time, limit int) ([]app.APIToken, error) {
	rows, err := s.read(ctx).TokensOfPrincipal(ctx, sqlcgen.TokensOfPrincipalParams{
		PrincipalID: principal, At: at, Before: before.Ptr(), LimitRows: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list API tokens: %w", err)
	}
	out := make([]app.APIToken, len(rows))
	for i, r := range rows {
		if out[i], err = apiToken(sqlcgen.TokenByIDRow(r)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CountTokens implements app.APITokens.
func (s *Store) CountTokens(ctx context.Context, principal ids.ID, at time.Time) (int, error) {
	n, err := s.read(ctx).TokensCountLive(ctx, principal, at)
	return int(n), failed(err, "count API tokens")
}

// ShortenToken implements app.APITokens.
func (s *Store) ShortenToken(ctx context.Context, id ids.ID, expires time.Time) error {
	return write(ctx).TokenShorten(ctx, expires, id)
}

// RevokeToken implements app.APITokens.
func (s *Store) RevokeToken(ctx context.Context, id ids.ID, reason string, at time.Time) (bool, error) {
	n, err := s.read(ctx).TokenRevoke(ctx, at, reason, id)
	return n == 1, failed(err, "revoke an API token")
}

// RevokeTokensOf implements app.APITokens.
func (s *Store) RevokeTokensOf(ctx context.Context, principal ids.ID, reason string, at time.Time) error {
	return write(ctx).TokensRevoke(ctx, at, reason, principal)
}

func tokenCredential(r sqlcgen.TokenForRevalidationRow) (app.TokenCredential, error) {
	cidrs, err := prefixes(r.Cidrs)
	if err != nil {
		return app.TokenCredential{}, err
	}
	return app.TokenCredential{
		ID: r.ID, PrincipalID: r.PrincipalID, Scopes: r.Scopes, AllowedCIDRs: cidrs, ExpiresAt: timeOr(r.ExpiresAt),
		LastUsedAt: timeOr(r.LastUsedAt), Revoked: r.RevokedAt != nil, PrincipalKind: kindOf(r.PrincipalKind),
		Active: r.Status == string(identity.StatusActive), Owner: r.Owner, Guest: r.Guest,
	}, nil
}

func apiToken(r sqlcgen.TokenByIDRow) (app.APIToken, error) {
	cidrs, err := prefixes(r.Cidrs)
	if err != nil {
		return app.APIToken{}, err
	}
	return app.APIToken{
		ID: r.ID, PrincipalID: r.PrincipalID, Kind: r.Kind, Name: r.Name, Hint: r.Hint, Scopes: r.Scopes, AllowedCIDRs: cidrs,
		ExpiresAt: r.ExpiresAt, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, LastUsedAt: r.LastUsedAt, Revoked: r.RevokedAt != nil,
	}, nil
}
