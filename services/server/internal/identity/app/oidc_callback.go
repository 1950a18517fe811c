// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/url"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// resultTTL is how long a result code lives: the way from a redirect to a request.
const resultTTL = time.Minute

// CallbackInput is a browser that comes from a provider.
type CallbackInput struct {
	State, Code, Issuer, Error string
	// Browser is what the browser shows from the beginning.
	Browser string
}

// Callback takes a browser back from a provider and gives the address where it goes on. What
// belongs to no login of this browser ends at the sign-in page, without a detail; so does
// whoever guesses. It fails only when the server itself does.
func (s *Service) Callback(ctx context.Context, in CallbackInput) (string, error) {
	if err := s.Authorizer.Authorize(ctx, authorize.ActionAuthLoginComplete, authorize.Resource{Kind: authorize.ResourceNone}); err != nil {
		return "", err
	}
	flow, ours, err := s.returned(ctx, in)
	if err != nil {
		return "", err
	}
	if !ours {
		return signInPage.With(url.Values{"error": {callbackFailed}}), nil
	}
	p, found, err := s.Store.ProviderByID(ctx, flow.By.ProviderID)
	if err != nil {
		return "", err
	}
	if !found || !p.Enabled {
		return s.failedVisit(ctx, flow, p, callbackFailed, "provider_disabled")
	}
	return s.finishVisit(ctx, flow, p, in)
}

// returned finds the flow of a state and uses the state up. ours is false for a state that
// is unknown, used, over, or from another browser.
func (s *Service) returned(ctx context.Context, in CallbackInput) (flow Flow, ours bool, err error) {
	if !domain.IsFlowSecret(in.State) {
		return Flow{}, false, nil
	}
	flow, found, err := s.Store.FlowByState(ctx, domain.HashText(in.State))
	if err != nil || !found || flow.State != flowOpen || !s.now(ctx).Before(flow.ExpiresAt) {
		return Flow{}, false, err
	}
	if flow.By.BrowserHash != nil && subtle.ConstantTimeCompare(domain.HashText(in.Browser), flow.By.BrowserHash) != 1 {
		s.auditVisit(ctx, flow, "", "other_browser")
		return Flow{}, false, nil
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		ours, err = s.Store.ClaimState(ctx, flow.ID)
		return err
	})
	return flow, ours, err
}

// finishVisit turns the callback into a verified person, outside any unit.
func (s *Service) finishVisit(ctx context.Context, flow Flow, p Provider, in CallbackInput) (string, error) {
	metadata, err := s.providers.metadataOf(ctx, p.Issuer)
	switch {
	case err != nil:
		return s.failedVisit(ctx, flow, p, callbackUnavailable, callbackUnavailable)
	case !metadata.IssuerFits(in.Issuer):
		if _, err := s.failedVisit(ctx, flow, p, callbackFailed, "issuer_mixed_up"); err != nil {
			return "", err
		}
		return signInPage.With(url.Values{"error": {callbackFailed}}), nil
	case in.Error != "":
		return s.failedVisit(ctx, flow, p, callbackDenied, callbackDenied)
	case in.Code == "":
		return s.failedVisit(ctx, flow, p, callbackFailed, "code_missing")
	}
	person, err := s.fetchPerson(ctx, flow, p, metadata, in.Code)
	if err != nil {
		shown, reason, err := visitFailure(err)
		if err != nil {
			return "", err
		}
		return s.failedVisit(ctx, flow, p, shown, reason)
	}
	return s.storeVisit(ctx, flow, person)
}

// visitFailure tells what the browser is told and what the audit log keeps. An error that is
// none of the provider's comes back.
func visitFailure(err error) (shown, reason string, _ error) {
	var provider *ProviderError
	switch fault := domain.FaultOf(err); {
	case fault != "":
		return callbackFailed, string(fault), nil
	case errors.As(err, &provider) && provider.Refused:
		return callbackFailed, "code_refused", nil
	case errors.As(err, &provider):
		return callbackUnavailable, provider.Code, nil
	case errs.Is(err, errs.CodeUnavailable):
		return callbackUnavailable, callbackUnavailable, nil
	default:
		return "", "", err
	}
}

// fetchPerson trades the code, verifies the ID token and maps its claims. Userinfo is asked
// when a mapped claim is missing.
func (s *Service) fetchPerson(ctx context.Context, flow Flow, p Provider, m domain.ProviderMetadata, code string) (domain.External, error) {
	tokens, err := s.tradeCode(ctx, flow, p, m, code)
	if err != nil {
		return domain.External{}, err
	}
	payload, err := s.providers.verify(ctx, p.Issuer, tokens.IDToken)
	if err != nil {
		return domain.External{}, err
	}
	claims, err := domain.CheckIDToken(payload, domain.IDTokenRules{
		Issuer: p.Issuer, ClientID: p.ClientID, NonceHash: flow.By.NonceHash, MaxAuthAge: p.MaxAuthAge, Skew: s.cfg.ClockSkew,
	}, s.Clock.Now())
	if err != nil {
		return domain.External{}, err
	}
	if claims.MissesClaim(p.Claims) && m.UserInfoEndpoint != "" && tokens.AccessToken != "" {
		if claims, err = s.askForMore(ctx, m, tokens, claims); err != nil {
			return domain.External{}, err
		}
	}
	return domain.ReadPerson(p.Issuer, claims, p.Claims)
}

func (s *Service) tradeCode(ctx context.Context, flow Flow, p Provider, m domain.ProviderMetadata, code string) (ProviderTokens, error) {
	verifier, err := domain.Unwrap(s.flowKey, flow.ID[:], flow.By.Verifier)
	if err != nil {
		return ProviderTokens{}, err
	}
	e := CodeExchange{
		Endpoint: m.TokenEndpoint, ClientID: p.ClientID, ClientAuth: p.ClientAuth, Code: code, Verifier: verifier, RedirectURI: s.RedirectURI(),
	}
	if p.SecretRef != "" {
		if e.Secret, err = s.Secrets.Secret(p.SecretRef); err != nil {
			return ProviderTokens{}, &ProviderError{Code: "secret_missing", Cause: err}
		}
	}
	return s.OpenID.Exchange(ctx, e)
}

// askForMore adds userinfo. A provider that does not want to answer leaves it at the token;
// one that cannot fails the visit, so that nobody is taken for a person without an address
// or groups because of a bad moment.
func (s *Service) askForMore(ctx context.Context, m domain.ProviderMetadata, tokens ProviderTokens, claims domain.ClaimValues) (domain.ClaimValues, error) {
	more, err := s.OpenID.UserInfo(ctx, m.UserInfoEndpoint, tokens.AccessToken)
	var provider *ProviderError
	if errors.As(err, &provider) && (provider.Refused || provider.Code == "malformed") {
		return claims, nil
	}
	if err != nil {
		return nil, err
	}
	return claims.Complete(more)
}

// storeVisit keeps the person for the client that began, under a code that only the browser
// gets.
func (s *Service) storeVisit(ctx context.Context, flow Flow, person domain.External) (string, error) {
	code := domain.NewFlowSecret()
	var kept bool
	err := s.Units.Do(ctx, func(ctx context.Context) (err error) {
		kept, err = s.Store.KeepPerson(ctx, flow.ID, person, domain.HashText(code), s.now(ctx).Add(resultTTL))
		return err
	})
	if err != nil {
		return "", err
	}
	if !kept {
		return signInPage.With(url.Values{"error": {callbackFailed}}), nil
	}
	return returnWith(flow, "result", code), nil
}

// failedVisit ends the flow. reason stands in the audit log alone.
func (s *Service) failedVisit(ctx context.Context, flow Flow, p Provider, shown, reason string) (string, error) {
	err := s.Units.Do(ctx, func(ctx context.Context) error { return s.Store.FailFlow(ctx, flow.ID) })
	if err != nil {
		return "", err
	}
	s.auditVisit(ctx, flow, p.Key, reason)
	return returnWith(flow, "error", shown), nil
}

func (s *Service) auditVisit(ctx context.Context, flow Flow, key, reason string) {
	e := auditing.Entry{
		Action: string(authorize.ActionAuthLoginComplete), Reason: reason, Details: map[string]any{"driver": flow.Driver},
	}
	if key != "" {
		e.Details["provider"] = key
	}
	if !flow.PrincipalID.IsZero() {
		e.ResourceKind, e.ResourceID = string(authorize.ResourcePrincipal), flow.PrincipalID
	}
	s.Audit.Denied(ctx, e)
}
