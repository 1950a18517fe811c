// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// KindOIDC is the kind of a provider that speaks OpenID Connect.
const KindOIDC = "oidc"

const (
	// maxProviders bounds the providers of an instance: each is a button on the sign-in page.
	maxProviders = 20
	// callbackPath is where providers send browsers back to.
	callbackPath = "/api/v1/auth/oidc/callback"
)

// Provider is an identity provider that the instance believes.
type Provider struct {
	ID                     ids.ID
	Kind, Key, DisplayName string
	// Icon is empty for none, as are SecretRef and RequiredACR.
	Icon                         string
	Enabled                      bool
	Issuer, ClientID, ClientAuth string
	// SecretRef says where the client secret lies.
	SecretRef             string
	Scopes                []string
	Claims                domain.ClaimNames
	Provisioning          string
	LinkByEmail, TrustMFA bool
	RequiredACR           string
	AllowedDomains        []string
	RequireEmail          bool
	ClaimTTL              time.Duration
	// MaxAuthAge is zero for no limit.
	MaxAuthAge           time.Duration
	Version              int64
	CreatedAt, UpdatedAt time.Time
}

// rules are the settings that decide who comes in.
func (p Provider) rules() domain.AdmissionRules {
	return domain.AdmissionRules{
		RequiredACR: p.RequiredACR, RequireEmail: p.RequireEmail, LinkByEmail: p.LinkByEmail, Provisioning: p.Provisioning,
		AllowedDomains: p.AllowedDomains,
	}
}

// ProviderPatch is a provider as an owner writes it: what is not set keeps its value, or the
// default of a new provider.
type ProviderPatch struct {
	Key, DisplayName, Icon                  Change[string]
	Enabled                                 Change[bool]
	Issuer, ClientID, ClientAuth, SecretRef Change[string]
	Scopes                                  Change[[]string]
	Claims                                  Change[domain.ClaimNames]
	Provisioning                            Change[string]
	LinkByEmail, TrustMFA, RequireEmail     Change[bool]
	RequiredACR                             Change[string]
	AllowedDomains                          Change[[]string]
	ClaimTTL, MaxAuthAge                    Change[time.Duration]
}

func newProvider() Provider {
	return Provider{
		Kind: KindOIDC, Enabled: true, Scopes: []string{"openid", "profile", "email"}, Claims: domain.StandardClaims(),
		Provisioning: domain.ProvisionNone, AllowedDomains: []string{}, ClaimTTL: 720 * time.Hour, Version: 1,
	}
}

// apply writes the patch and names what it set, for the audit log.
func (in ProviderPatch) apply(p *Provider) (changed []string) {
	note := func(set bool, member string) {
		if set {
			changed = append(changed, member)
		}
	}
	text := func(c Change[string], to *string, member string) { c.apply(to); note(c.Set, member) }
	flag := func(c Change[bool], to *bool, member string) { c.apply(to); note(c.Set, member) }
	text(in.Key, &p.Key, "key")
	text(in.DisplayName, &p.DisplayName, "display_name")
	text(in.Icon, &p.Icon, "icon")
	flag(in.Enabled, &p.Enabled, "enabled")
	text(in.Issuer, &p.Issuer, "issuer")
	text(in.ClientID, &p.ClientID, "client_id")
	text(in.ClientAuth, &p.ClientAuth, "client_auth")
	text(in.SecretRef, &p.SecretRef, "client_secret_ref")
	text(in.Provisioning, &p.Provisioning, "provisioning")
	flag(in.LinkByEmail, &p.LinkByEmail, "link_by_email")
	flag(in.TrustMFA, &p.TrustMFA, "trust_mfa")
	flag(in.RequireEmail, &p.RequireEmail, "require_email")
	text(in.RequiredACR, &p.RequiredACR, "required_acr")
	in.Scopes.apply(&p.Scopes)
	note(in.Scopes.Set, "scopes")
	in.Claims.apply(&p.Claims)
	note(in.Claims.Set, "claims")
	in.AllowedDomains.apply(&p.AllowedDomains)
	note(in.AllowedDomains.Set, "allowed_domains")
	in.ClaimTTL.apply(&p.ClaimTTL)
	note(in.ClaimTTL.Set, "claim_ttl_ms")
	in.MaxAuthAge.apply(&p.MaxAuthAge)
	note(in.MaxAuthAge.Set, "max_auth_age_ms")
	p.Scopes = domain.WithOpenID(p.Scopes)
	for i, name := range p.AllowedDomains {
		p.AllowedDomains[i] = strings.ToLower(name)
	}
	return changed
}

// checkProvider gives every fault of a provider as it would be stored.
func (s *Service) checkProvider(p Provider) error {
	var v errs.Validation
	addFault(&v, "/key", domain.CheckProviderKey(p.Key))
	addFault(&v, "/display_name", domain.CheckName(p.DisplayName, domain.ProviderNameMax))
	addFault(&v, "/icon", domain.CheckProviderIcon(p.Icon))
	addFault(&v, "/client_id", domain.CheckName(p.ClientID, 256))
	addFault(&v, "/provisioning", domain.CheckProvisioning(p.Provisioning))
	if fault := domain.CheckIssuer(p.Issuer); fault != domain.FaultNone {
		addFault(&v, "/issuer", fault)
	} else if s.OpenID.Permitted(p.Issuer) != nil {
		v.Add("/issuer", "url_not_allowed", "The configuration of the server does not let it go there. See egress.allowed_hosts.")
	}
	if member, fault := domain.CheckClientAuth(p.ClientAuth, p.SecretRef); fault != domain.FaultNone {
		v.Add("/"+member, string(fault), "Name a file oidc_NAME in the folder of secrets, and none without a client secret.")
	}
	if member, fault := p.Claims.Check(); fault != domain.FaultNone {
		addFault(&v, "/claims/"+member, fault)
	}
	if slices.ContainsFunc(p.Scopes, func(one string) bool { return domain.CheckScope(one) != domain.FaultNone }) {
		addFault(&v, "/scopes", domain.FaultFormat)
	}
	if slices.ContainsFunc(p.AllowedDomains, func(one string) bool { return domain.CheckDomain(one) != domain.FaultNone }) {
		addFault(&v, "/allowed_domains", domain.FaultFormat)
	}
	return v.Err()
}

// ListProviders gives all providers, by key.
func (s *Service) ListProviders(ctx context.Context) ([]Provider, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionIdentityProviderRead, authorize.Instance()); err != nil {
		return nil, err
	}
	return s.Store.ListProviders(ctx, maxProviders)
}

// Provider gives one.
func (s *Service) Provider(ctx context.Context, id ids.ID) (Provider, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionIdentityProviderRead, onProvider(id)); err != nil {
		return Provider{}, err
	}
	return found(s.Store.ProviderByID(ctx, id))
}

// found turns absence into not_found.
func found[T any](v T, ok bool, err error) (T, error) {
	if err == nil && !ok {
		err = errs.NotFound()
	}
	return v, err
}

// CreateProvider connects a provider. Nothing leaves the server yet.
func (s *Service) CreateProvider(ctx context.Context, in ProviderPatch) (Provider, error) {
	if err := s.mayManageProvider(ctx, ids.ID{}); err != nil {
		return Provider{}, err
	}
	p := newProvider()
	in.apply(&p)
	if err := s.checkProvider(p); err != nil {
		return Provider{}, err
	}
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.mayManageProvider(ctx, ids.ID{}); err != nil {
			return err
		}
		p.CreatedAt = s.now(ctx)
		p.ID, p.UpdatedAt = ids.NewAt(p.CreatedAt), p.CreatedAt
		if err := s.Store.LockProviders(ctx); err != nil {
			return err
		}
		others, err := s.Store.ListProviders(ctx, maxProviders)
		if err != nil {
			return err
		}
		if len(others) == maxProviders {
			return errs.Conflict("provider_limit", "There are too many providers. Remove one that nobody uses.")
		}
		if err := s.Store.InsertProvider(ctx, p); err != nil {
			return err
		}
		return s.auditProvider(ctx, p, "created", nil)
	})
	return p, err
}

// mayManageProvider checks the action on a provider; on the zero ID for one to be made.
func (s *Service) mayManageProvider(ctx context.Context, id ids.ID) error {
	return s.Authorizer.Authorize(ctx, authorize.ActionIdentityProviderManage, onProvider(id))
}

// onProvider describes a provider as the thing of a check: a part of the instance.
func onProvider(id ids.ID) authorize.Resource {
	return authorize.Resource{Kind: authorize.ResourceInstance, ID: id}
}

func (s *Service) auditProvider(ctx context.Context, p Provider, change string, changed []string) error {
	e := auditing.Entry{
		Action: string(authorize.ActionIdentityProviderManage), ResourceKind: string(authorize.ResourceInstance),
		Details: map[string]any{"change": change, "key": p.Key},
	}
	if changed != nil {
		e.Details["changed"] = changed
	}
	return s.Audit.Allowed(ctx, e)
}

// UpdateProvider changes a provider. Sessions that came by it go on.
func (s *Service) UpdateProvider(ctx context.Context, id ids.ID, version int64, in ProviderPatch) (Provider, error) {
	var p Provider
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		before, err := s.lockedProvider(ctx, id, version)
		if err != nil {
			return err
		}
		p = before
		changed := in.apply(&p)
		if err := s.checkProvider(p); err != nil {
			return err
		}
		if err := s.mayChange(ctx, before, p); err != nil {
			return err
		}
		p.UpdatedAt, p.Version = s.now(ctx), before.Version+1
		if err := s.Store.UpdateProvider(ctx, p); err != nil {
			return err
		}
		return s.auditProvider(ctx, p, "updated", changed)
	})
	return p, err
}

// mayChange refuses what would cut people off: another issuer makes every link worthless,
// and a provider that is off may be the only door of an owner.
func (s *Service) mayChange(ctx context.Context, before, after Provider) error {
	if before.Issuer != after.Issuer {
		used, err := s.Store.ProviderInUse(ctx, before.ID)
		if err != nil {
			return err
		}
		if used {
			return errProviderInUse()
		}
	}
	if !before.Enabled || after.Enabled {
		return nil
	}
	if _, err := s.Store.LockOwners(ctx); err != nil {
		return err
	}
	on, err := s.drivers(ctx)
	if err != nil {
		return err
	}
	stranded, err := s.Store.OwnersOnlyBy(ctx, before.ID, on)
	if err == nil && stranded {
		err = errNoLoginLeft("An owner signs in by this provider and has no other way. Give her one first.")
	}
	return err
}

func errProviderInUse() error {
	return errs.Conflict("in_use", "People are linked with this provider. Disable it instead, or unlink them first.")
}

func errNoLoginLeft(message string) error { return errs.Conflict("no_login_left", message) }

// DeleteProvider removes a provider that nobody is linked with.
func (s *Service) DeleteProvider(ctx context.Context, id ids.ID, version int64) error {
	return s.Units.Do(ctx, func(ctx context.Context) error {
		p, err := s.lockedProvider(ctx, id, version)
		if err != nil {
			return err
		}
		used, err := s.Store.ProviderInUse(ctx, id)
		if err != nil {
			return err
		}
		if used {
			return errProviderInUse()
		}
		if err := s.Store.DeleteProvider(ctx, id); err != nil {
			return err
		}
		return s.auditProvider(ctx, p, "deleted", nil)
	})
}

func (s *Service) lockedProvider(ctx context.Context, id ids.ID, version int64) (Provider, error) {
	if err := s.mayManageProvider(ctx, id); err != nil {
		return Provider{}, err
	}
	p, err := found(s.Store.LockProvider(ctx, id))
	if err != nil {
		return Provider{}, err
	}
	return p, checkVersion(p.Version, version)
}

// RedirectURI is the address to register at a provider.
func (s *Service) RedirectURI() string { return s.cfg.origin() + callbackPath }

// providerOptions are the enabled providers as the sign-in page offers them.
func (s *Service) providerOptions(ctx context.Context) ([]instance.LoginOption, error) {
	list, err := s.Store.ListProviders(ctx, maxProviders)
	if err != nil {
		return nil, err
	}
	var out []instance.LoginOption
	for _, p := range list {
		if p.Enabled {
			out = append(out, instance.LoginOption{Driver: p.Kind, ProviderID: p.ID, Label: p.DisplayName, Icon: p.Icon})
		}
	}
	return out, nil
}
