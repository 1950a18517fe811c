// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

const (
	listSessions = "sessions"
	listTokens   = "tokens"
)

// ListSessions implements rest.StrictServerInterface.
func (h *Handlers) ListSessions(ctx context.Context, r rest.ListSessionsRequestObject) (rest.ListSessionsResponseObject, error) {
	page, err := sessionPage(r.Params.Cursor, r.Params.Limit, func(before ids.ID, limit int) ([]app.SessionView, error) {
		return h.service.ListSessions(ctx, before, limit)
	})
	return rest.ListSessions200JSONResponse(page), err
}

// ListUserSessions implements rest.StrictServerInterface.
func (h *Handlers) ListUserSessions(ctx context.Context, r rest.ListUserSessionsRequestObject) (rest.ListUserSessionsResponseObject, error) {
	page, err := sessionPage(r.Params.Cursor, r.Params.Limit, func(before ids.ID, limit int) ([]app.SessionView, error) {
		return h.service.ListUserSessions(ctx, r.UserID, before, limit)
	})
	return rest.ListUserSessions200JSONResponse(page), err
}

func sessionPage(c *rest.Cursor, size *rest.Limit, list func(before ids.ID, limit int) ([]app.SessionView, error)) (rest.SessionList, error) {
	before, err := position[ids.ID](listSessions, c)
	if err != nil {
		return rest.SessionList{}, err
	}
	limit := paging.Limit(size)
	views, err := list(before, limit+1)
	if err != nil {
		return rest.SessionList{}, err
	}
	out := rest.SessionList{Items: []rest.Session{}}
	for _, v := range views[:min(limit, len(views))] {
		out.Items = append(out.Items, session(v))
	}
	if len(views) > limit {
		out.NextCursor, err = cursor(listSessions, views[limit-1].ID)
	}
	return out, err
}

// RevokeSession implements rest.StrictServerInterface.
func (h *Handlers) RevokeSession(ctx context.Context, r rest.RevokeSessionRequestObject) (rest.RevokeSessionResponseObject, error) {
	if err := h.service.RevokeSession(ctx, r.SessionID); err != nil {
		return nil, err
	}
	return rest.RevokeSession204Response{}, nil
}

// RevokeOtherSessions implements rest.StrictServerInterface.
func (h *Handlers) RevokeOtherSessions(ctx context.Context, _ rest.RevokeOtherSessionsRequestObject) (rest.RevokeOtherSessionsResponseObject, error) {
	ended, err := h.service.RevokeOtherSessions(ctx)
	return rest.RevokeOtherSessions200JSONResponse{Ended: ended}, err
}

// RevokeUserSessions implements rest.StrictServerInterface.
func (h *Handlers) RevokeUserSessions(ctx context.Context, r rest.RevokeUserSessionsRequestObject) (rest.RevokeUserSessionsResponseObject, error) {
	ended, err := h.service.RevokeUserSessions(ctx, r.UserID)
	return rest.RevokeUserSessions200JSONResponse{Ended: ended}, err
}

// ListTokens implements rest.StrictServerInterface.
func (h *Handlers) ListTokens(ctx context.Context, r rest.ListTokensRequestObject) (rest.ListTokensResponseObject, error) {
	before, err := position[ids.ID](listTokens, r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	limit := paging.Limit(r.Params.Limit)
	list, err := h.service.ListTokens(ctx, ids.Deref(r.Params.PrincipalID), before, limit+1)
	if err != nil {
		return nil, err
	}
	out := rest.ListTokens200JSONResponse{Items: []rest.Token{}}
	for _, t := range list[:min(limit, len(list))] {
		out.Items = append(out.Items, h.token(t))
	}
	if len(list) > limit {
		out.NextCursor, err = cursor(listTokens, list[limit-1].ID)
	}
	return out, err
}

// CreateToken implements rest.StrictServerInterface.
func (h *Handlers) CreateToken(ctx context.Context, r rest.CreateTokenRequestObject) (rest.CreateTokenResponseObject, error) {
	b := r.Body
	in := app.CreateTokenInput{
		PrincipalID: ids.Deref(b.PrincipalID), Name: b.Name, Scopes: b.Scopes, Networks: b.AllowedCidrs, Replaces: ids.Deref(b.Replaces),
		Overlap: time.Duration(deref(b.OverlapMs)) * time.Millisecond,
	}
	if at := b.ExpiresAt.Ptr(); at != nil {
		in.ExpiresAt = &at.Time
	}
	token, secret, err := h.service.CreateToken(ctx, in)
	if err != nil {
		return nil, err
	}
	return rest.CreateToken201JSONResponse{Token: h.token(token), Secret: secret}, nil
}

// RevokeToken implements rest.StrictServerInterface.
func (h *Handlers) RevokeToken(ctx context.Context, r rest.RevokeTokenRequestObject) (rest.RevokeTokenResponseObject, error) {
	if err := h.service.RevokeToken(ctx, r.TokenID); err != nil {
		return nil, err
	}
	return rest.RevokeToken204Response{}, nil
}
