// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/subtle"
	"net/url"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// DriverOIDC signs people in by an OpenID provider.
const DriverOIDC = "oidc"

const (
	purposeLink = "link"
	// flowExternal is the state of a flow whose provider has spoken.
	flowExternal = "external_done"
)

// ExternalFlow is what a flow by a provider remembers between its steps.
type ExternalFlow struct {
	ProviderID ids.ID
	// Hashes of what was handed out: to the provider, to the browser, to the client.
	StateHash, NonceHash, BrowserHash, ResultHash []byte
	// Verifier is wrapped.
	Verifier []byte
	ReturnTo domain.ReturnTo
	// Person is what the provider said, until the flow is consumed.
	Person *domain.External
}

// ExternalRequest is how a browser goes to a provider.
type ExternalRequest struct {
	URL string
	// Browser is what the browser has to show when it comes back; empty for native clients,
	// which are bound by their key alone.
	Browser string
}

// enabledProvider reads a provider that people may use now.
func (s *Service) enabledProvider(ctx context.Context, id ids.ID) (Provider, error) {
	p, found, err := s.Store.ProviderByID(ctx, id)
	if err == nil && (!found || !p.Enabled || p.Kind != KindOIDC) {
		err = errs.Invalid("/provider_id", "unknown", "Use one of the login options of the discovery document.")
	}
	return p, err
}

// goToProvider fills a flow with the secrets of one visit to a provider. known is what the
// browser already shows from an earlier attempt; it stays, so that two attempts at a time do
// not take each other's place.
func (s *Service) goToProvider(ctx context.Context, p Provider, returnTo domain.ReturnTo, known string, flow *Flow) (ExternalRequest, error) {
	metadata, err := s.providers.metadataOf(ctx, p.Issuer)
	if err != nil {
		return ExternalRequest{}, err
	}
	request := domain.AuthorizationRequest{
		Endpoint: metadata.AuthorizationEndpoint, ClientID: p.ClientID, RedirectURI: s.RedirectURI(), Scopes: p.Scopes,
		State: domain.NewFlowSecret(), Nonce: domain.NewFlowSecret(), Verifier: domain.NewFlowSecret(), ACR: p.RequiredACR, MaxAuthAge: p.MaxAuthAge,
	}
	to := ExternalRequest{}
	if to.URL, err = request.URL(); err != nil {
		return ExternalRequest{}, errProviderUnavailable()
	}
	flow.By = ExternalFlow{
		ProviderID: p.ID, StateHash: domain.HashText(request.State), NonceHash: domain.HashText(request.Nonce), ReturnTo: returnTo,
	}
	if returnTo.Own() {
		if to.Browser = known; !domain.IsFlowSecret(known) {
			to.Browser = domain.NewFlowSecret()
		}
		flow.By.BrowserHash = domain.HashText(to.Browser)
	}
	flow.By.Verifier, err = domain.Wrap(s.flowKey, flow.ID[:], request.Verifier)
	return to, err
}

// returnTarget reads where a browser goes in the end; empty means the client itself.
func returnTarget(text string, v *errs.Validation) domain.ReturnTo {
	if text == "" {
		text = "/"
	}
	to, fault := domain.ParseReturnTo(text)
	if fault != domain.FaultNone {
		v.Add("/return_to", string(fault), "Use a path of this origin, bothy://auth, or http://127.0.0.1:PORT/.")
	}
	return to
}

// beginOIDC sends the browser of a login to its provider.
func (s *Service) beginOIDC(ctx context.Context, in BeginLoginInput, begun *BegunLogin) error {
	var v errs.Validation
	returnTo := returnTarget(in.ReturnTo, &v)
	if err := v.Err(); err != nil {
		return err
	}
	p, err := s.enabledProvider(ctx, in.ProviderID)
	if err != nil {
		return err
	}
	begun.External, err = s.goToProvider(ctx, p, returnTo, in.Browser, &begun.Flow)
	return err
}

// provenExternally reports whether the result code belongs to the flow. Every wrong one
// counts as an attempt.
func (s *Service) provenExternally(ctx context.Context, flow Flow, code string) (bool, error) {
	fits := flow.State == flowExternal && flow.By.Person != nil &&
		subtle.ConstantTimeCompare(domain.HashText(code), flow.By.ResultHash) == 1
	if fits {
		return true, nil
	}
	return false, s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.CountAttempt(ctx, flow.ID, maxAttempts) })
}

// completeOIDC ends a login whose provider has spoken.
func (s *Service) completeOIDC(ctx context.Context, flow Flow, proof domain.Proof, code string) (LoginResult, error) {
	if code == "" {
		return LoginResult{}, errs.Invalid("/result_code", "required", "Send what the browser came back with.")
	}
	fits, err := s.provenExternally(ctx, flow, code)
	if err != nil {
		return LoginResult{}, err
	}
	p, found, err := s.Store.ProviderByID(ctx, flow.By.ProviderID)
	if err != nil {
		return LoginResult{}, err
	}
	if !fits || !found || !p.Enabled {
		return LoginResult{}, s.refuseLogin(ctx, authorize.ActionAuthLoginComplete, ids.ID{}, flow.Driver)
	}
	key, err := jwkOf(proof)
	if err != nil {
		return LoginResult{}, err
	}
	return s.admitExternal(ctx, flow, p, key)
}

// The errors with which a browser comes back, instead of a result.
const (
	callbackDenied      = "provider_denied"
	callbackUnavailable = "provider_unavailable"
	callbackFailed      = "login_failed"
)

// signInPage is where a browser ends that no login waits for. It says nothing more.
const signInPage = domain.ReturnTo("/")

// returnWith is where the browser of a flow goes.
func returnWith(flow Flow, member, value string) string {
	return flow.By.ReturnTo.With(url.Values{"flow": {flow.ID.String()}, member: {value}})
}
