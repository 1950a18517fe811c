// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/netip"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Deps are what the use cases work with. Every field but CredentialEnded is needed.
type Deps struct {
	Units      txn.UnitOfWork
	Clock      clock.Clock
	Log        *slog.Logger
	Authorizer authorize.Authorizer
	Audit      auditing.Recorder
	Events     eventlog.Appender
	Keys       instance.Keys
	Instance   instance.Instance
	Settings   instance.Settings
	Grants     authz.Grants
	Groups     authz.Groups
	// ClaimGroups keeps the memberships that providers decide.
	ClaimGroups authz.ClaimGroups
	Store       Store
	Hasher      Hasher
	Ceremonies  PasskeyCeremonies
	Throttle    Throttle
	OpenID      OpenID
	Secrets     Secrets
	// Proofs and Memory are shared with the Authenticator.
	Proofs *Proofs
	Memory *Memory
	// CredentialEnded is told, behind the unit, that API tokens of a principal ended, so
	// that its connections are checked anew at once and not at the next interval. Ended
	// sessions are told by the event session.revoked instead. It must not block; nil for
	// none.
	CredentialEnded func(principal ids.ID)
}

// Service has the use cases. It is safe for concurrent use.
type Service struct {
	Deps
	cfg        Config
	networkKey []byte
	nameKey    []byte
	// userCodeKey makes the hashes of codes that people type.
	userCodeKey []byte
	guesses     *guesses
	// relyingParty is the scope of passkeys.
	relyingParty string
	// flowKey wraps what a flow keeps of its secrets.
	flowKey   []byte
	providers *providerMemory
}

// Interfaces the service offers to other modules.
var (
	_ identity.Directory          = (*Service)(nil)
	_ identity.PrincipalWrites    = (*Service)(nil)
	_ identity.Tokens             = (*Service)(nil)
	_ identity.StepUps            = (*Service)(nil)
	_ instance.LoginOptionsSource = (*Service)(nil)
)

// New makes the service; the configuration must be valid.
func New(cfg Config, d Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	networkKey, err := domain.DeriveKey(cfg.CodeHMACKey, "network")
	if err != nil {
		return nil, err
	}
	nameKey, err := domain.DeriveKey(cfg.CodeHMACKey, "login-name")
	if err != nil {
		return nil, err
	}
	relyingParty, err := domain.RelyingPartyID(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	userCodeKey, err := domain.DeriveKey(cfg.CodeHMACKey, "user-code")
	if err != nil {
		return nil, err
	}
	flowKey, err := domain.DeriveKey(cfg.CodeHMACKey, "login-flow")
	if err != nil {
		return nil, err
	}
	return &Service{
		Deps: d, cfg: cfg, networkKey: networkKey, nameKey: nameKey, userCodeKey: userCodeKey, guesses: newGuesses(d.Clock),
		relyingParty: relyingParty, flowKey: flowKey, providers: newProviderMemory(d.Clock, d.OpenID),
	}, nil
}

// now is the time of the running unit, or the clock's outside one.
func (s *Service) now(ctx context.Context) time.Time { return timeOf(ctx, s.Clock) }

func timeOf(ctx context.Context, c clock.Clock) time.Time {
	if u := txn.Current(ctx); u != nil {
		return u.Now()
	}
	return c.Now()
}

// self checks an action on the caller's own account and gives the caller.
func (s *Service) self(ctx context.Context, action authorize.Action) (actor.Actor, error) {
	a := actor.From(ctx)
	return a, s.Authorizer.Authorize(ctx, action, authorize.Self(a.ID))
}

// onPrincipal describes a principal as the thing of a check.
func onPrincipal(id ids.ID) authorize.Resource {
	return authorize.Resource{Kind: authorize.ResourcePrincipal, ID: id, OwnerID: id}
}

// needStepUp refuses without a fresh proof. Actions whose step-up depends on the thing ask
// it here; where it is always needed, the authorizer has asked already.
func (s *Service) needStepUp(ctx context.Context) error {
	if a := actor.From(ctx); a.IsSession() && s.now(ctx).Before(a.StepUpUntil) {
		return nil
	}
	return errStepUpRequired()
}

func errStepUpRequired() error {
	return errs.New(errs.CodeStepUpRequired, "Confirm that it is you, then try again.")
}

// network is the pseudonym of the client's address, so that lists can tell "here" from
// "elsewhere" without an address being stored. IPv6 counts by its network.
func (s *Service) network(ctx context.Context) string {
	return networkPseudonym(s.networkKey, reqmeta.From(ctx).ClientIP)
}

func networkPseudonym(key []byte, ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return keyed(key, ip.String())
}

// keyed is a short keyed hash in base64url.
func keyed(key []byte, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12])
}

// account reads one account; not_found when there is none.
func (s *Service) account(ctx context.Context, id ids.ID) (Account, error) {
	list, err := s.Store.AccountsByID(ctx, []ids.ID{id})
	if err != nil {
		return Account{}, err
	}
	if len(list) == 0 {
		return Account{}, errs.NotFound()
	}
	return list[0], nil
}

// person reads one person; agents and apps are not_found.
func (s *Service) person(ctx context.Context, id ids.ID) (Account, error) {
	a, err := s.account(ctx, id)
	if err == nil && a.Person == nil {
		return Account{}, errs.NotFound()
	}
	return a, err
}

// lockedPerson locks and reads a person inside a unit.
func (s *Service) lockedPerson(ctx context.Context, id ids.ID) (Account, error) {
	found, err := s.Store.LockPrincipal(ctx, id)
	if err != nil {
		return Account{}, err
	}
	if !found {
		return Account{}, errs.NotFound()
	}
	return s.person(ctx, id)
}

// checkVersion compares with If-Match.
func checkVersion(have, want int64) error {
	if have != want {
		return errs.New(errs.CodeVersionConflict, "This was changed meanwhile. Load it again and repeat your change.").With("version", have)
	}
	return nil
}

// hidden turns a refusal into absence: whose sessions and tokens there are is known to
// their holders and to owners alone.
func hidden(err error) error {
	if errs.Is(err, errs.CodeForbidden) {
		return errs.NotFound()
	}
	return err
}

// tokensEnded tells whoever holds connections of the principal, once the running unit is
// committed: looking earlier they would find the credential alive.
func (s *Service) tokensEnded(ctx context.Context, principal ids.ID) {
	if s.CredentialEnded != nil && !principal.IsZero() {
		txn.AfterCommit(ctx, func() { s.CredentialEnded(principal) })
	}
}
