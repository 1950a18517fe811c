// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// browserCookie binds a visit to a provider to the browser that began it. It proves nobody:
// sessions use no cookies.
const (
	browserCookie       = "__Host-bothy_flow"
	browserCookieMaxAge = 600
)

type browserKey struct{}

// browser is how an operation sees and marks the browser of its request.
type browser struct {
	shown string
	mark  func(value string)
}

// withBrowser hands the browser to the operations that send it to a provider or take it back.
func withBrowser(ctx context.Context, operation string, w http.ResponseWriter, r *http.Request) context.Context {
	switch strings.ToLower(operation) {
	case "beginlogin", "beginidentitylink", "oidccallback":
	default:
		return ctx
	}
	b := browser{mark: func(value string) {
		http.SetCookie(w, &http.Cookie{
			Name: browserCookie, Value: value, Path: "/", MaxAge: browserCookieMaxAge, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		})
	}}
	if c, err := r.Cookie(browserCookie); err == nil {
		b.shown = c.Value
	}
	return context.WithValue(ctx, browserKey{}, b)
}

func browserOf(ctx context.Context) string {
	b, _ := ctx.Value(browserKey{}).(browser)
	return b.shown
}

// goesTo marks the browser and gives the address of the provider; nil when there is none.
func goesTo(ctx context.Context, to app.ExternalRequest) *string {
	if to.URL == "" {
		return nil
	}
	if b, ok := ctx.Value(browserKey{}).(browser); ok && to.Browser != "" {
		b.mark(to.Browser)
	}
	return &to.URL
}

// OidcCallback implements rest.StrictServerInterface.
func (h *Handlers) OidcCallback(ctx context.Context, r rest.OidcCallbackRequestObject) (rest.OidcCallbackResponseObject, error) {
	p := r.Params
	location, err := h.service.Callback(ctx, app.CallbackInput{
		State: deref(p.State), Code: deref(p.Code), Issuer: deref(p.Iss), Error: deref(p.Error), Browser: browserOf(ctx),
	})
	if err != nil {
		return nil, err
	}
	return rest.OidcCallback303Response{Headers: rest.OidcCallback303ResponseHeaders{Location: location}}, nil
}

// ListIdentities implements rest.StrictServerInterface.
func (h *Handlers) ListIdentities(ctx context.Context, _ rest.ListIdentitiesRequestObject) (rest.ListIdentitiesResponseObject, error) {
	list, err := h.service.ListIdentities(ctx, ids.ID{})
	if err != nil {
		return nil, err
	}
	return rest.ListIdentities200JSONResponse{Items: identities(list)}, nil
}

// ListUserIdentities implements rest.StrictServerInterface.
func (h *Handlers) ListUserIdentities(ctx context.Context, r rest.ListUserIdentitiesRequestObject) (rest.ListUserIdentitiesResponseObject, error) {
	list, err := h.service.ListIdentities(ctx, r.UserID)
	if err != nil {
		return nil, err
	}
	return rest.ListUserIdentities200JSONResponse{Items: identities(list)}, nil
}

// BeginIdentityLink implements rest.StrictServerInterface.
func (h *Handlers) BeginIdentityLink(ctx context.Context, r rest.BeginIdentityLinkRequestObject) (rest.BeginIdentityLinkResponseObject, error) {
	begun, err := h.service.BeginIdentityLink(ctx, r.Body.ProviderID, r.Body.ReturnTo, browserOf(ctx))
	if err != nil {
		return nil, err
	}
	return rest.BeginIdentityLink201JSONResponse{
		FlowID: begun.Flow.ID, AuthorizationURL: *goesTo(ctx, begun.External), ExpiresAt: jsontype.At(begun.Flow.ExpiresAt),
	}, nil
}

// CompleteIdentityLink implements rest.StrictServerInterface.
func (h *Handlers) CompleteIdentityLink(ctx context.Context, r rest.CompleteIdentityLinkRequestObject) (rest.CompleteIdentityLinkResponseObject, error) {
	one, err := h.service.CompleteIdentityLink(ctx, r.FlowID, r.Body.ResultCode)
	if err != nil {
		return nil, err
	}
	return rest.CompleteIdentityLink201JSONResponse(linked(one)), nil
}

// UnlinkIdentity implements rest.StrictServerInterface.
func (h *Handlers) UnlinkIdentity(ctx context.Context, r rest.UnlinkIdentityRequestObject) (rest.UnlinkIdentityResponseObject, error) {
	if err := h.service.UnlinkIdentity(ctx, ids.ID{}, r.IdentityID); err != nil {
		return nil, err
	}
	return rest.UnlinkIdentity204Response{}, nil
}

// UnlinkUserIdentity implements rest.StrictServerInterface.
func (h *Handlers) UnlinkUserIdentity(ctx context.Context, r rest.UnlinkUserIdentityRequestObject) (rest.UnlinkUserIdentityResponseObject, error) {
	if err := h.service.UnlinkIdentity(ctx, r.UserID, r.IdentityID); err != nil {
		return nil, err
	}
	return rest.UnlinkUserIdentity204Response{}, nil
}

func identities(list []app.Identity) []rest.Identity {
	out := make([]rest.Identity, len(list))
	for i, one := range list {
		out[i] = linked(one)
	}
	return out
}

func linked(one app.Identity) rest.Identity {
	return rest.Identity{
		ID: one.ID, ProviderID: one.ProviderID, ProviderName: one.ProviderName, Label: one.Label, LinkedAt: jsontype.At(one.LinkedAt),
		LastLoginAt: jsontype.AtPtr(one.LastLoginAt),
	}
}
