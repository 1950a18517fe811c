// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Problem is something that keeps people from signing in by a provider.
type Problem struct{ Code, Detail string }

// Probe is what a look at a provider found.
type Probe struct {
	// Metadata is nil when it could not be read.
	Metadata *domain.ProviderMetadata
	Keys     []domain.ProviderKey
	Problems []Problem
}

// TestProvider looks at a provider as a login would, without signing anybody in. What it
// reads replaces what logins remembered.
func (s *Service) TestProvider(ctx context.Context, id ids.ID) (Probe, error) {
	if err := s.mayManageProvider(ctx, id); err != nil {
		return Probe{}, err
	}
	p, err := found(s.Store.ProviderByID(ctx, id))
	if err != nil {
		return Probe{}, err
	}
	probe := s.probe(ctx, p)
	err = s.Units.Do(ctx, func(ctx context.Context) error { return s.auditProvider(ctx, p, "tested", nil) })
	return probe, err
}

func (s *Service) probe(ctx context.Context, p Provider) Probe {
	var probe Probe
	add := func(code string) { probe.Problems = append(probe.Problems, Problem{code, problemText(code)}) }
	if p.SecretRef != "" {
		if _, err := s.Secrets.Secret(p.SecretRef); err != nil {
			add("secret_missing")
		}
	}
	metadata, err := s.OpenID.Metadata(ctx, p.Issuer)
	if err != nil {
		add(problemOf(err))
		return probe
	}
	probe.Metadata = &metadata
	for _, code := range metadata.Unsupported(p.ClientAuth) {
		add(code)
	}
	for _, address := range []string{metadata.TokenEndpoint, metadata.UserInfoEndpoint} {
		if address != "" && s.OpenID.Permitted(address) != nil {
			add("url_not_allowed")
			break
		}
	}
	if probe.Keys, err = s.OpenID.Keys(ctx, metadata.JWKSURI); err != nil {
		add(problemOf(err))
		return probe
	}
	if len(probe.Keys) == 0 {
		add("no_usable_key")
	}
	s.providers.remember(p.Issuer, metadata, probe.Keys)
	return probe
}

var problemTexts = map[string]string{
	"url_not_allowed":         "The configuration of the server does not let it go there. See egress.allowed_hosts.",
	"dns":                     "The name of the provider has no address.",
	"address_blocked":         "The name of the provider leads to a private address. See egress.allowed_hosts.",
	"connect":                 "The provider cannot be connected to.",
	"tls":                     "The certificate of the provider is not trusted. See egress.ca_file.",
	"timeout":                 "The provider did not answer in time.",
	"response_too_large":      "The answer of the provider is longer than any such answer should be.",
	"redirect":                "The provider sends the server elsewhere. Enter the issuer exactly as the provider names it.",
	"busy":                    "The provider already has as many requests of this server as egress.max_per_host allows.",
	"http_status":             "The provider answered with an error. Check the issuer.",
	"malformed":               "The answer of the provider is no OpenID Connect document.",
	"issuer_mismatch":         "The provider calls itself something else. Enter the issuer exactly as the provider names it.",
	"no_usable_key":           "The provider publishes no key of the algorithms RS256, PS256, ES256 or EdDSA.",
	"pkce_unsupported":        "The provider does not offer PKCE with S256.",
	"client_auth_unsupported": "The provider does not take the chosen way of client authentication.",
	"secret_missing":          "The file of the client secret cannot be read.",
}

func problemText(code string) string { return problemTexts[code] }
