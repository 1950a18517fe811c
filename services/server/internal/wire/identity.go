// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/argon2"
	identityhttp "github.com/OWNER/bothy/services/server/internal/identity/adapters/httpapi"
	identityjobs "github.com/OWNER/bothy/services/server/internal/identity/adapters/jobs"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/oidc"
	identitypg "github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/webauthn"
	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

type identityModule struct {
	service       *identityapp.Service
	authenticator *identityapp.Authenticator
	proofs        *identityapp.Proofs
	seen          *identityapp.Seen
	sources       *identityapp.Sources
	http          *identityhttp.Handlers
}

func (p *process) buildIdentity(context.Context) error {
	config := p.config.Modules.Identity
	key, err := p.secrets.Resolve("auth.code_hmac_key_ref", config.CodeHMACKeyRef)
	if err != nil {
		return fmt.Errorf("resolve the key of codes and nonces: %w", err)
	}
	config.CodeHMACKey, config.PublicURL = []byte(key.Reveal()), p.config.HTTP.PublicURL
	config.SingleNode = p.config.Lifecycle.Role == "all"
	store := identitypg.New(p.db)
	m := &identityModule{sources: identityapp.NewSources(store, p.clock)}
	hasher, err := argon2.New(p.config.Modules.Argon2, p.clock)
	if err != nil {
		return err
	}
	ceremonies, err := webauthn.New(config.PublicURL, config.PasskeyExtraOrigins)
	if err != nil {
		return err
	}
	if m.proofs, err = identityapp.NewProofs(config, p.clock); err != nil {
		return err
	}
	if m.seen, err = identityapp.NewSeen(config, p.units, store, p.log); err != nil {
		return err
	}
	memory := identityapp.NewMemory(p.clock)
	m.authenticator = identityapp.NewAuthenticator(config, p.clock, store, p.instance.service, m.proofs, memory, m.seen)
	m.service, err = identityapp.New(config, identityapp.Deps{
		Units: p.units, Clock: p.clock, Log: p.log, Authorizer: p.authz.service, Audit: p.audit.recorder, Events: p.sync.appender,
		Keys: p.instance.service, Instance: p.instance.service, Settings: p.instance.service, Grants: p.authz.service,
		Groups: p.authz.service, Store: store, Hasher: hasher, Ceremonies: ceremonies, OpenID: oidc.New(p.egress), ClaimGroups: p.authz.service,
		Secrets: providerSecrets{p.secrets}, Throttle: p.limiter, Proofs: m.proofs, Memory: memory,
		CredentialEnded: p.credentialEnded,
	})
	if err != nil {
		return err
	}
	m.http = identityhttp.New(m.service, p.clock)
	identityjobs.Register(p.jobs, m.service, config.CleanupInterval)
	p.identity = m
	p.authz.service.SetSources(app.Sources{Principals: m.sources, Credentials: m.sources, Handles: m.sources, PrincipalNames: m.service, Views: m.service})
	p.instance.service.SetPeers(instanceapp.Peers{
		Authorizer: p.authz.service, Audit: p.audit.recorder, Events: p.sync.appender, Login: m.service,
		FlagUsers: m.service, FlagGroups: p.authz.service,
	})
	return nil
}

// credentialEnded tells the gateway that a credential of a principal was taken away.
func (p *process) credentialEnded(principal ids.ID) {
	if p.gateway != nil {
		p.gateway.gateway.CredentialEnded(principal)
	}
}

// providerSecrets reads the client secrets of identity providers, whose references stand in
// the database and not in the configuration.
type providerSecrets struct{ secrets *secrets.Provider }

// Secret gives the secret behind a reference.
func (p providerSecrets) Secret(ref string) (string, error) {
	v, err := p.secrets.Resolve("identity_provider.client_secret_ref", ref)
	return v.Reveal(), err
}
