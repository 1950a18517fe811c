// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const (
	tokensMax        = 50
	cidrsMax         = 20
	overlapMax       = 7 * 24 * time.Hour
	expiresSoonAhead = 14 * 24 * time.Hour
)

// CreateTokenInput describes a token to be made.
type CreateTokenInput struct {
	// PrincipalID is an agent or app; zero for the caller.
	PrincipalID ids.ID
	Name        string
	Scopes      []string
	// ExpiresAt is required for people.
	ExpiresAt *time.Time
	Networks  []string
	// Replaces ends another token of the same principal when the overlap is over.
	Replaces ids.ID
	Overlap  time.Duration
}

// ExpiresSoon reports whether the end of the token is near enough to be shown.
func (t APIToken) ExpiresSoon(now time.Time) bool {
	return t.ExpiresAt != nil && t.ExpiresAt.Sub(now) < expiresSoonAhead
}

// CreateToken makes an API token. The secret is shown once and stored nowhere.
func (s *Service) CreateToken(ctx context.Context, in CreateTokenInput) (APIToken, string, error) {
	var token APIToken
	var secret string
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		holder, err := s.tokenHolder(ctx, in.PrincipalID, authorize.ActionTokenCreate)
		if err != nil {
			return err
		}
		networks, err := s.checkToken(ctx, holder, in)
		if err != nil {
			return err
		}
		if token, secret, err = s.insertToken(ctx, holder, in, networks); err != nil {
			return err
		}
		if err := s.replaceToken(ctx, holder.ID, in); err != nil {
			return err
		}
		return s.auditToken(ctx, holder, token)
	})
	if err != nil {
		return APIToken{}, "", err
	}
	if !in.Replaces.IsZero() && in.Overlap == 0 {
		s.tokensEnded(ctx, token.PrincipalID)
	}
	idempotency.ShowsSecret(ctx, token.ID)
	return token, secret, nil
}

// tokenHolder is whose tokens are meant: the caller's, or those of an agent or app. The
// row is locked, so that limits hold and nobody is disabled meanwhile.
func (s *Service) tokenHolder(ctx context.Context, id ids.ID, action authorize.Action) (Account, error) {
	caller := actor.From(ctx).ID
	if id.IsZero() {
		id = caller
	}
	found, err := s.Store.LockPrincipal(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if !found {
		return Account{}, errs.NotFound()
	}
	if err := s.Authorizer.Authorize(ctx, action, onPrincipal(id)); err != nil {
		return Account{}, hidden(err)
	}
	holder, err := s.account(ctx, id)
	if err != nil {
		return Account{}, err
	}
	// Not even an owner acts with a token of another person.
	if holder.Person != nil && id != caller {
		return Account{}, errs.NotFound()
	}
	if !holder.Principal().Active() {
		return Account{}, errs.Conflict("principal_disabled", "Enable the member first.")
	}
	return holder, nil
}

// checkToken collects every fault of the input.
func (s *Service) checkToken(ctx context.Context, holder Account, in CreateTokenInput) ([]netip.Prefix, error) {
	now := s.now(ctx)
	var v errs.Validation
	addFault(&v, "/name", domain.CheckName(in.Name, domain.TokenNameMax))
	if len(in.Scopes) == 0 {
		v.Add("/scopes", "required", "Choose at least one scope.")
	}
	for _, scope := range unusableScopes(holder.Kind, in.Scopes) {
		v.Addf("/scopes", "unknown", "%q is no scope this member can use.", scope)
	}
	switch {
	case in.ExpiresAt == nil && holder.Kind == actor.KindPerson:
		v.Add("/expires_at", "required", "Tokens of people need an end.")
	case in.ExpiresAt != nil && !in.ExpiresAt.After(now):
		v.Add("/expires_at", "in_the_past", "The end must lie ahead.")
	case in.ExpiresAt != nil && holder.Kind == actor.KindPerson && in.ExpiresAt.Sub(now) > s.cfg.PATMaxTTL:
		v.Addf("/expires_at", "too_far", "The end may lie at most %s ahead.", s.cfg.PATMaxTTL)
	}
	if in.Overlap < 0 || in.Overlap > overlapMax || in.Overlap > 0 && in.Replaces.IsZero() {
		v.Add("/overlap_ms", "out_of_range", "An overlap goes with a replaced token and lasts at most seven days.")
	}
	networks := parseNetworks(&v, in.Networks)
	return networks, v.Err()
}

func parseNetworks(v *errs.Validation, texts []string) []netip.Prefix {
	if len(texts) > cidrsMax {
		v.Addf("/allowed_cidrs", "too_many", "At most %d networks.", cidrsMax)
		return nil
	}
	networks := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Addr().Zone() != "" {
			v.Addf("/allowed_cidrs", "invalid_format", "%q is no network such as 192.0.2.0/24.", text)
			continue
		}
		networks = append(networks, prefix.Masked())
	}
	return networks
}

func (s *Service) insertToken(ctx context.Context, holder Account, in CreateTokenInput, networks []netip.Prefix) (APIToken, string, error) {
	now := s.now(ctx)
	live, err := s.Store.CountTokens(ctx, holder.ID, now)
	if err != nil {
		return APIToken{}, "", err
	}
	if live >= tokensMax {
		return APIToken{}, "", errs.Conflict("token_limit", "There are too many tokens. Revoke one that is no longer used.")
	}
	kind, prefix := tokenKind(holder.Kind)
	secret := domain.NewSecret(prefix)
	scopes := slices.Clone(in.Scopes)
	slices.Sort(scopes)
	token := APIToken{
		ID: ids.NewAt(now), PrincipalID: holder.ID, Kind: kind, Name: in.Name, Hint: domain.Hint(secret),
		Scopes: slices.Compact(scopes), AllowedCIDRs: networks, ExpiresAt: in.ExpiresAt, CreatedBy: actor.From(ctx).ID, CreatedAt: now,
	}
	return token, secret, s.Store.InsertToken(ctx, token, domain.HashSecret(secret))
}

func (s *Service) replaceToken(ctx context.Context, holder ids.ID, in CreateTokenInput) error {
	if in.Replaces.IsZero() {
		return nil
	}
	old, found, err := s.Store.TokenByID(ctx, in.Replaces)
	if err != nil {
		return err
	}
	if !found || old.PrincipalID != holder || old.Revoked {
		return errs.Invalid("/replaces", "unknown", "This is no living token of the same member.")
	}
	s.Memory.Forget(holder)
	return s.Store.ShortenToken(ctx, old.ID, s.now(ctx).Add(in.Overlap))
}

func (s *Service) auditToken(ctx context.Context, holder Account, t APIToken) error {
	details := map[string]any{"token_id": t.ID, "hint": auditCode(t.Hint), "scopes": t.Scopes, "principal_kind": string(holder.Kind)}
	if t.ExpiresAt != nil {
		details["expires_at"] = *t.ExpiresAt
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionTokenCreate), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: holder.ID, Details: details,
	})
}

// auditCode writes the hint of a secret as a code: details hold lower case alone.
func auditCode(hint string) string {
	b := []byte(hint)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// ListTokens gives living tokens, newest first, older than before.
func (s *Service) ListTokens(ctx context.Context, principal, before ids.ID, limit int) ([]APIToken, error) {
	caller := actor.From(ctx).ID
	if principal.IsZero() {
		principal = caller
	}
	holder, err := s.account(ctx, principal)
	if err != nil {
		return nil, hidden(authorize.Absent(ctx, s.Authorizer, err, authorize.ActionTokenList, onPrincipal(principal)))
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionTokenList, onPrincipal(principal)); err != nil {
		return nil, hidden(err)
	}
	if holder.Person != nil && principal != caller {
		return nil, errs.NotFound()
	}
	return s.Store.ListTokens(ctx, principal, before, s.now(ctx), limit)
}

// RevokeToken ends a token at once. A token may end itself.
func (s *Service) RevokeToken(ctx context.Context, id ids.ID) error {
	var holder ids.ID
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		token, found, err := s.Store.TokenByID(ctx, id)
		if err != nil {
			return err
		}
		if !found {
			return errs.NotFound()
		}
		holder = token.PrincipalID
		if err := s.Authorizer.Authorize(ctx, authorize.ActionTokenRevoke, onPrincipal(holder)); err != nil {
			return hidden(err)
		}
		s.Memory.Forget(holder)
		ended, err := s.Store.RevokeToken(ctx, id, "revoked", s.now(ctx))
		if err != nil || !ended {
			return err
		}
		return s.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionTokenRevoke), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: holder,
			Details: map[string]any{"token_id": token.ID, "hint": auditCode(token.Hint)},
		})
	}, txn.WithWriteInMaintenance())
	if err == nil {
		s.tokensEnded(ctx, holder)
	}
	return err
}

// CreateFirst implements identity.Tokens: the token an agent or app begins with. The
// calling use case has authorized.
func (s *Service) CreateFirst(ctx context.Context, principal ids.ID, name string, scopes []string, expiresAt *time.Time) (ids.ID, string, error) {
	holder, err := s.account(ctx, principal)
	if err != nil {
		return ids.ID{}, "", err
	}
	if bad := unusableScopes(holder.Kind, scopes); holder.Person != nil || len(scopes) == 0 || len(bad) > 0 {
		return ids.ID{}, "", errs.Invalid("/scopes", "unknown", "These are no scopes this member can use.")
	}
	if expiresAt != nil && !expiresAt.After(s.now(ctx)) {
		return ids.ID{}, "", errs.Invalid("/token/expires_at", "in_the_past", "The end must lie ahead.")
	}
	token, secret, err := s.insertToken(ctx, holder, CreateTokenInput{Name: name, Scopes: scopes, ExpiresAt: expiresAt}, nil)
	if err != nil {
		return ids.ID{}, "", err
	}
	return token.ID, secret, s.auditToken(ctx, holder, token)
}
