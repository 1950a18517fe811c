// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
)

// seenInterval is how often a use of a credential is written at most.
const seenInterval = 5 * time.Minute

// Authenticator verifies what requests present. An access token with its proof costs two
// signature checks and one statement, an API token a hash and at most one statement.
type Authenticator struct {
	cfg    Config
	clock  clock.Clock
	store  Store
	keys   instance.Keys
	proofs *Proofs
	memory *Memory
	seen   *Seen
	// actingFor is bound after the start of the module that knows orders.
	actingFor atomic.Pointer[identity.ActingForSource]
}

var _ actor.Authenticator = (*Authenticator)(nil)

// NewAuthenticator makes one. Without BindActingFor every invocation token is refused.
func NewAuthenticator(cfg Config, clk clock.Clock, store Store, keys instance.Keys, proofs *Proofs, memory *Memory, seen *Seen) *Authenticator {
	return &Authenticator{cfg: cfg, clock: clk, store: store, keys: keys, proofs: proofs, memory: memory, seen: seen}
}

// BindActingFor sets who verifies invocation tokens.
func (a *Authenticator) BindActingFor(source identity.ActingForSource) { a.actingFor.Store(&source) }

// Authenticate implements actor.Authenticator.
func (a *Authenticator) Authenticate(ctx context.Context, c actor.Credentials) (actor.Actor, error) {
	if !c.Present() {
		return actor.Anonymous(), nil
	}
	scheme, credential, err := domain.ParseAuthorization(c.Authorization)
	if err != nil {
		return actor.Actor{}, errUnauthenticated("", err)
	}
	var who actor.Actor
	if scheme == domain.SchemeDPoP {
		who, err = a.session(ctx, credential, c)
	} else {
		who, err = a.token(ctx, credential)
	}
	if err != nil || c.InvocationToken == "" {
		return who, err
	}
	return a.withOrder(ctx, who, c.InvocationToken)
}

// session verifies an access token and the proof that it is in the right hands.
func (a *Authenticator) session(ctx context.Context, token string, c actor.Credentials) (actor.Actor, error) {
	proof, err := a.proofs.Verify(c.Proof, domain.ProofRequest{Method: c.Method, URL: c.URL, AccessToken: token})
	if err != nil {
		return actor.Actor{}, err
	}
	payload, err := a.keys.Verify(ctx, instance.PurposeAccess, token)
	if err != nil {
		return actor.Actor{}, err
	}
	now := a.clock.Now()
	claims, err := domain.ReadAccessClaims(payload, a.cfg.origin(), now)
	switch {
	case errors.Is(err, domain.ErrAccessTokenExpired), errors.Is(err, domain.ErrAccessTokenAddress):
		return actor.Actor{}, errTokenExpired()
	case err != nil:
		return actor.Actor{}, errUnauthenticated("", err)
	case claims.JKT != proof.JKT:
		return actor.Actor{}, errInvalidProof(errors.New("the proof was made with another key than the token's"))
	}
	return a.liveSession(ctx, claims, now)
}

func (a *Authenticator) liveSession(ctx context.Context, claims domain.AccessClaims, now time.Time) (actor.Actor, error) {
	s, found, err := a.store.SessionForAuthentication(ctx, claims.SessionID)
	if err != nil {
		return actor.Actor{}, unavailable(err)
	}
	if !found || s.Session.PrincipalID != claims.PrincipalID || s.Session.JKT != claims.JKT {
		return actor.Actor{}, errUnauthenticated("session_ended", nil)
	}
	if err := s.check(now); err != nil {
		return actor.Actor{}, err
	}
	if claims.Epoch < s.Session.Epoch {
		return actor.Actor{}, errTokenExpired()
	}
	if now.Sub(s.LastSeenAt) >= seenInterval {
		a.seen.note(ctx, Use{SessionID: s.Session.ID, DeviceID: s.Session.DeviceID, At: now})
	}
	who := s.actor(a.cfg.StepUpTTL)
	who.CredentialExpiresAt = claims.ExpiresAt
	return who, nil
}

// token verifies an API token.
func (a *Authenticator) token(ctx context.Context, secret string) (actor.Actor, error) {
	_, hash, err := domain.ParseSecret(secret, domain.SecretPAT, domain.SecretAgent, domain.SecretApp)
	if err != nil {
		return actor.Actor{}, errUnauthenticated("", err)
	}
	now := a.clock.Now()
	t, remembered := a.memory.get(hash)
	if !remembered {
		var found bool
		if t, found, err = a.store.TokenForAuthentication(ctx, hash); err != nil {
			return actor.Actor{}, unavailable(err)
		}
		if !found {
			return actor.Actor{}, errUnauthenticated("", nil)
		}
	}
	if err := t.check(now, reqmeta.From(ctx).ClientIP); err != nil {
		return actor.Actor{}, err
	}
	if !remembered {
		if now.Sub(t.LastUsedAt) >= seenInterval {
			a.seen.note(ctx, Use{TokenID: t.ID, At: now})
		}
		a.memory.put(hash, t, now)
	}
	return t.actor(), nil
}

// withOrder verifies the invocation token of an agent.
func (a *Authenticator) withOrder(ctx context.Context, who actor.Actor, token string) (actor.Actor, error) {
	source := a.actingFor.Load()
	if who.Kind != actor.KindAgent || source == nil {
		return actor.Actor{}, errUnauthenticated("", errors.New("only agents work under an invocation token"))
	}
	acting, err := (*source).VerifyInvocation(ctx, who.ID, token)
	if err != nil {
		return actor.Actor{}, err
	}
	who.ActingFor = &acting
	return who, nil
}

// Revalidate implements actor.Authenticator.
func (a *Authenticator) Revalidate(ctx context.Context, who actor.Actor) (actor.Actor, error) {
	fresh, err := revalidate(ctx, a.store, a.clock.Now(), a.cfg.StepUpTTL, who)
	if err != nil {
		return actor.Actor{}, err
	}
	fresh.CredentialExpiresAt, fresh.ActingFor = who.CredentialExpiresAt, who.ActingFor
	return fresh, nil
}

// revalidate reads the credential of a verified actor anew, in one statement.
func revalidate(ctx context.Context, store Store, now time.Time, stepUpTTL time.Duration, who actor.Actor) (actor.Actor, error) {
	switch {
	case !who.SessionID.IsZero():
		s, found, err := store.SessionForAuthentication(ctx, who.SessionID)
		if err != nil {
			return actor.Actor{}, unavailable(err)
		}
		if !found || s.Session.PrincipalID != who.ID {
			return actor.Actor{}, errUnauthenticated("session_ended", nil)
		}
		if err := s.check(now); err != nil {
			return actor.Actor{}, err
		}
		return s.actor(stepUpTTL), nil
	case !who.TokenID.IsZero():
		t, found, err := store.TokenForRevalidation(ctx, who.TokenID)
		if err != nil {
			return actor.Actor{}, unavailable(err)
		}
		if !found || t.PrincipalID != who.ID {
			return actor.Actor{}, errUnauthenticated("", nil)
		}
		if err := t.check(now, reqmeta.From(ctx).ClientIP); err != nil {
			return actor.Actor{}, err
		}
		return t.actor(), nil
	default:
		return actor.Actor{}, errUnauthenticated("", errors.New("nothing to check"))
	}
}

// check tells whether session, device and principal are alive. The answer names the
// session alone; what exactly ended is for the audit log.
func (c SessionCredential) check(now time.Time) error {
	switch {
	case !c.Session.Live(now):
		return errUnauthenticated("session_ended", nil)
	case !c.Bound:
		return errUnauthenticated("session_ended", errors.New("parent_ended"))
	case !c.DeviceActive:
		return errUnauthenticated("session_ended", errors.New("device_revoked"))
	case !c.Active:
		return errUnauthenticated("session_ended", errors.New("principal_disabled"))
	default:
		return nil
	}
}

func (c SessionCredential) actor(stepUpTTL time.Duration) actor.Actor {
	who := actor.Actor{
		ID: c.Session.PrincipalID, Kind: c.PrincipalKind, Owner: c.Owner, Guest: c.Guest,
		SessionID: c.Session.ID, DeviceID: c.Session.DeviceID, ViewedBy: c.ViewedBy,
	}
	if !c.Session.StepUpAt.IsZero() {
		who.StepUpUntil = c.Session.StepUpAt.Add(stepUpTTL)
	}
	return who
}

// check tells whether token and principal are alive and the caller's network allowed. All
// refusals look like an unknown token.
func (c TokenCredential) check(now time.Time, ip netip.Addr) error {
	switch {
	case c.Revoked || !c.ExpiresAt.IsZero() && !now.Before(c.ExpiresAt):
		return errUnauthenticated("", errors.New("token revoked or expired"))
	case !c.Active:
		return errUnauthenticated("", errors.New("principal_disabled"))
	case !c.allows(ip):
		return errUnauthenticated("", errors.New("network not allowed"))
	default:
		return nil
	}
}

func (c TokenCredential) allows(ip netip.Addr) bool {
	if len(c.AllowedCIDRs) == 0 {
		return true
	}
	ip = ip.Unmap().WithZone("")
	for _, prefix := range c.AllowedCIDRs {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

func (c TokenCredential) actor() actor.Actor {
	return actor.Actor{
		ID: c.PrincipalID, Kind: c.PrincipalKind, Owner: c.Owner, Guest: c.Guest,
		TokenID: c.ID, Scopes: c.Scopes, CredentialExpiresAt: c.ExpiresAt,
	}
}

// unavailable keeps a failing store from looking like a refusal or a fault of the caller.
func unavailable(err error) error {
	if e := errs.As(err); e.Kind() == errs.KindUnavailable {
		return err
	}
	return errs.Unavailable(err)
}

func errUnauthenticated(reason string, cause error) error {
	e := errs.New(errs.CodeUnauthenticated, "Sign in, or check the token.").WithReason(reason)
	if cause != nil {
		e = e.WithCause(cause)
	}
	return e
}

func errTokenExpired() error {
	return errs.New(errs.CodeTokenExpired, "The access token has ended; exchange the refresh token for a new one.")
}
