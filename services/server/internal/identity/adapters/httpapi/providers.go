// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
)

// ListIdentityProviders implements rest.StrictServerInterface.
func (h *Handlers) ListIdentityProviders(ctx context.Context, _ rest.ListIdentityProvidersRequestObject) (rest.ListIdentityProvidersResponseObject, error) {
	list, err := h.service.ListProviders(ctx)
	if err != nil {
		return nil, err
	}
	out := rest.ListIdentityProviders200JSONResponse{Items: make([]rest.IdentityProvider, len(list))}
	for i, p := range list {
		out.Items[i] = h.provider(p)
	}
	return out, nil
}

// CreateIdentityProvider implements rest.StrictServerInterface.
func (h *Handlers) CreateIdentityProvider(ctx context.Context, r rest.CreateIdentityProviderRequestObject) (rest.CreateIdentityProviderResponseObject, error) {
	b := r.Body
	patch := providerPatch(rest.UpdateIdentityProviderRequest{
		Key: &b.Key, DisplayName: &b.DisplayName, Issuer: &b.Issuer, ClientID: &b.ClientID, ClientAuth: &b.ClientAuth,
		Icon: b.Icon, Enabled: b.Enabled, ClientSecretRef: b.ClientSecretRef, Scopes: b.Scopes, Claims: b.Claims, Provisioning: b.Provisioning,
		LinkByEmail: b.LinkByEmail, TrustMfa: b.TrustMfa, RequireEmail: b.RequireEmail, RequiredAcr: b.RequiredAcr, AllowedDomains: b.AllowedDomains,
		ClaimTTLMs: b.ClaimTTLMs, MaxAuthAgeMs: b.MaxAuthAgeMs,
	})
	p, err := h.service.CreateProvider(ctx, patch)
	if err != nil {
		return nil, err
	}
	return rest.CreateIdentityProvider201JSONResponse{
		Body: h.provider(p), Headers: rest.CreateIdentityProvider201ResponseHeaders{ETag: etag(p.Version)},
	}, nil
}

// GetIdentityProvider implements rest.StrictServerInterface.
func (h *Handlers) GetIdentityProvider(ctx context.Context, r rest.GetIdentityProviderRequestObject) (rest.GetIdentityProviderResponseObject, error) {
	p, err := h.service.Provider(ctx, r.ProviderID)
	if err != nil {
		return nil, err
	}
	return rest.GetIdentityProvider200JSONResponse{
		Body: h.provider(p), Headers: rest.GetIdentityProvider200ResponseHeaders{ETag: etag(p.Version)},
	}, nil
}

// UpdateIdentityProvider implements rest.StrictServerInterface.
func (h *Handlers) UpdateIdentityProvider(ctx context.Context, r rest.UpdateIdentityProviderRequestObject) (rest.UpdateIdentityProviderResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	p, err := h.service.UpdateProvider(ctx, r.ProviderID, version, providerPatch(*r.Body))
	if err != nil {
		return nil, err
	}
	return rest.UpdateIdentityProvider200JSONResponse{
		Body: h.provider(p), Headers: rest.UpdateIdentityProvider200ResponseHeaders{ETag: etag(p.Version)},
	}, nil
}

// DeleteIdentityProvider implements rest.StrictServerInterface.
func (h *Handlers) DeleteIdentityProvider(ctx context.Context, r rest.DeleteIdentityProviderRequestObject) (rest.DeleteIdentityProviderResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := h.service.DeleteProvider(ctx, r.ProviderID, version); err != nil {
		return nil, err
	}
	return rest.DeleteIdentityProvider204Response{}, nil
}

// TestIdentityProvider implements rest.StrictServerInterface.
func (h *Handlers) TestIdentityProvider(ctx context.Context, r rest.TestIdentityProviderRequestObject) (rest.TestIdentityProviderResponseObject, error) {
	probe, err := h.service.TestProvider(ctx, r.ProviderID)
	if err != nil {
		return nil, err
	}
	return rest.TestIdentityProvider200JSONResponse(providerTest(probe)), nil
}

func (h *Handlers) provider(p app.Provider) rest.IdentityProvider {
	return rest.IdentityProvider{
		ID: p.ID, Kind: rest.IdentityProviderKind(p.Kind), Key: p.Key, DisplayName: p.DisplayName, Icon: p.Icon, Enabled: p.Enabled,
		Issuer: p.Issuer, ClientID: p.ClientID, ClientAuth: rest.ClientAuth(p.ClientAuth), ClientSecretRef: p.SecretRef, Scopes: p.Scopes,
		Claims: rest.ClaimNames{
			Subject: &p.Claims.Subject, Email: &p.Claims.Email, EmailVerified: &p.Claims.EmailVerified, Name: &p.Claims.Name,
			Handle: &p.Claims.Handle, Groups: &p.Claims.Groups, Locale: &p.Claims.Locale, Mfa: &p.Claims.MFA,
		},
		Provisioning: rest.Provisioning(p.Provisioning), LinkByEmail: p.LinkByEmail, TrustMfa: p.TrustMFA, RequiredAcr: p.RequiredACR,
		AllowedDomains: p.AllowedDomains, RequireEmail: p.RequireEmail, ClaimTTLMs: p.ClaimTTL.Milliseconds(),
		MaxAuthAgeMs: p.MaxAuthAge.Milliseconds(), RedirectURI: h.service.RedirectURI(), Version: p.Version,
		CreatedAt: jsontype.At(p.CreatedAt), UpdatedAt: jsontype.At(p.UpdatedAt),
	}
}

func providerPatch(b rest.UpdateIdentityProviderRequest) app.ProviderPatch {
	in := app.ProviderPatch{
		Key: changed(b.Key), DisplayName: changed(b.DisplayName), Icon: changed(b.Icon), Enabled: setTo(b.Enabled), Issuer: changed(b.Issuer),
		ClientID: changed(b.ClientID), ClientAuth: changed((*string)(b.ClientAuth)), SecretRef: changed(b.ClientSecretRef),
		Scopes: app.Change[[]string]{Set: b.Scopes != nil, Value: b.Scopes}, Provisioning: changed((*string)(b.Provisioning)),
		LinkByEmail: setTo(b.LinkByEmail), TrustMFA: setTo(b.TrustMfa), RequireEmail: setTo(b.RequireEmail), RequiredACR: changed(b.RequiredAcr),
		AllowedDomains: app.Change[[]string]{Set: b.AllowedDomains != nil, Value: b.AllowedDomains},
		ClaimTTL:       duration(b.ClaimTTLMs), MaxAuthAge: duration(b.MaxAuthAgeMs),
	}
	if c := b.Claims; c != nil {
		in.Claims = app.Change[domain.ClaimNames]{Set: true, Value: claimNames(*c)}
	}
	return in
}

func setTo[T any](p *T) app.Change[T] { return app.Change[T]{Set: p != nil, Value: deref(p)} }

func duration(ms *int64) app.Change[time.Duration] {
	return app.Change[time.Duration]{Set: ms != nil, Value: time.Duration(deref(ms)) * time.Millisecond}
}

// claimNames reads the mapping; a member that is left out keeps its usual name.
func claimNames(c rest.ClaimNames) domain.ClaimNames {
	names := domain.StandardClaims()
	for _, one := range []struct {
		given *string
		to    *string
	}{
		{c.Subject, &names.Subject}, {c.Email, &names.Email}, {c.EmailVerified, &names.EmailVerified}, {c.Name, &names.Name},
		{c.Handle, &names.Handle}, {c.Groups, &names.Groups}, {c.Locale, &names.Locale}, {c.Mfa, &names.MFA},
	} {
		if one.given != nil {
			*one.to = *one.given
		}
	}
	return names
}

func providerTest(probe app.Probe) rest.IdentityProviderTest {
	out := rest.IdentityProviderTest{Keys: []rest.ProviderKey{}, Problems: []rest.ProviderProblem{}}
	if m := probe.Metadata; m != nil {
		claims := m.ClaimsSupported
		if claims == nil {
			claims = []string{}
		}
		out.Discovery = &rest.ProviderDiscovery{
			Issuer: m.Issuer, AuthorizationEndpoint: m.AuthorizationEndpoint, TokenEndpoint: m.TokenEndpoint,
			UserinfoEndpoint: m.UserInfoEndpoint, JWKSURI: m.JWKSURI, ClaimsSupported: claims,
		}
	}
	for _, k := range probe.Keys {
		out.Keys = append(out.Keys, rest.ProviderKey{Kid: k.ID, Alg: k.AlgorithmName()})
	}
	for _, p := range probe.Problems {
		out.Problems = append(out.Problems, rest.ProviderProblem{Code: p.Code, Detail: p.Detail})
	}
	return out
}
