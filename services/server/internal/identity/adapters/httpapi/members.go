// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

const (
	listUsers       = "users"
	directoryMax    = 50
	directoryNormal = 20
)

// GetSelf implements rest.StrictServerInterface.
func (h *Handlers) GetSelf(ctx context.Context, _ rest.GetSelfRequestObject) (rest.GetSelfResponseObject, error) {
	view, err := h.service.Self(ctx)
	if err != nil {
		return nil, err
	}
	body := self(view)
	if who := actor.From(ctx); !who.ViewedBy.IsZero() {
		body.ViewAs = &who.ID
	}
	return rest.GetSelf200JSONResponse{Body: body, Headers: rest.GetSelf200ResponseHeaders{ETag: etag(view.Account.Version)}}, nil
}

// UpdateSelf implements rest.StrictServerInterface.
func (h *Handlers) UpdateSelf(ctx context.Context, r rest.UpdateSelfRequestObject) (rest.UpdateSelfResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	b := r.Body
	view, err := h.service.UpdateSelf(ctx, app.UpdateSelfInput{
		Version: version, DisplayName: changed(b.DisplayName), Handle: changed(b.Handle), Locale: changed(b.Locale),
		TimeZone: changed(b.TimeZone), Title: patched(b.Title), Pronouns: patched(b.Pronouns), Bio: patched(b.Bio),
		Status: app.Change[*app.CustomStatus]{Set: b.CustomStatus.Set, Value: customStatusInput(b.CustomStatus.Ptr())},
	})
	if err != nil {
		return nil, err
	}
	return rest.UpdateSelf200JSONResponse{Body: self(view), Headers: rest.UpdateSelf200ResponseHeaders{ETag: etag(view.Account.Version)}}, nil
}

// SearchDirectory implements rest.StrictServerInterface.
func (h *Handlers) SearchDirectory(ctx context.Context, r rest.SearchDirectoryRequestObject) (rest.SearchDirectoryResponseObject, error) {
	limit := directoryNormal
	if r.Params.Limit != nil {
		limit = min(max(*r.Params.Limit, 1), directoryMax)
	}
	kinds := make([]actor.Kind, len(r.Params.Kinds))
	for i, k := range r.Params.Kinds {
		kinds[i] = actor.Kind(k)
	}
	list, err := h.service.SearchDirectory(ctx, r.Params.Query, kinds, limit)
	if err != nil {
		return nil, err
	}
	out := rest.SearchDirectory200JSONResponse{Items: make([]rest.DirectoryEntry, len(list))}
	for i, s := range list {
		out.Items[i] = directoryEntry(s)
	}
	return out, nil
}

// GetPrincipal implements rest.StrictServerInterface.
func (h *Handlers) GetPrincipal(ctx context.Context, r rest.GetPrincipalRequestObject) (rest.GetPrincipalResponseObject, error) {
	s, err := h.service.Member(ctx, r.PrincipalID)
	if err != nil {
		return nil, err
	}
	return rest.GetPrincipal200JSONResponse{Body: directoryEntry(s), Headers: rest.GetPrincipal200ResponseHeaders{ETag: etag(s.Version)}}, nil
}

// GetUser implements rest.StrictServerInterface.
func (h *Handlers) GetUser(ctx context.Context, r rest.GetUserRequestObject) (rest.GetUserResponseObject, error) {
	s, err := h.service.User(ctx, r.UserID)
	if err != nil {
		return nil, err
	}
	return rest.GetUser200JSONResponse{Body: directoryEntry(s), Headers: rest.GetUser200ResponseHeaders{ETag: etag(s.Version)}}, nil
}

// ListUsers implements rest.StrictServerInterface.
func (h *Handlers) ListUsers(ctx context.Context, r rest.ListUsersRequestObject) (rest.ListUsersResponseObject, error) {
	p := r.Params
	after, err := position[string](listUsers, p.Cursor)
	if err != nil {
		return nil, err
	}
	in := app.ListUsersInput{Owner: p.Owner, Guest: p.Guest, Query: deref(p.Query), After: after, Limit: paging.Limit(p.Limit)}
	if p.Status != nil {
		in.Status = identity.Status(*p.Status)
	}
	list, next, err := h.service.ListUsers(ctx, in)
	if err != nil {
		return nil, err
	}
	out := rest.ListUsers200JSONResponse{Items: make([]rest.UserListItem, len(list))}
	for i, s := range list {
		out.Items[i] = userListItem(s)
	}
	if next != "" {
		out.NextCursor, err = cursor(listUsers, next)
	}
	return out, err
}

// CreateUser implements rest.StrictServerInterface.
func (h *Handlers) CreateUser(ctx context.Context, r rest.CreateUserRequestObject) (rest.CreateUserResponseObject, error) {
	b := r.Body
	s, code, err := h.service.CreateUser(authz.WithResolution(ctx, b.ResolveI1.Choice()), app.CreateUserInput{
		Handle: b.Handle, DisplayName: b.DisplayName, Email: deref(b.Email.Ptr()), Guest: deref(b.Guest), IssueCode: deref(b.IssueCode),
		Locale: deref(b.Locale), TimeZone: deref(b.TimeZone),
	})
	if err != nil {
		return nil, err
	}
	return rest.CreateUser201JSONResponse{Body: userCreated(s, code), Headers: rest.CreateUser201ResponseHeaders{ETag: etag(s.Version)}}, nil
}

// DisableUser implements rest.StrictServerInterface.
func (h *Handlers) DisableUser(ctx context.Context, r rest.DisableUserRequestObject) (rest.DisableUserResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	reason := ""
	if r.Body != nil {
		reason = deref(r.Body.Reason)
	}
	s, err := h.service.DisableUser(ctx, r.UserID, version, reason)
	if err != nil {
		return nil, err
	}
	return rest.DisableUser200JSONResponse{Body: user(s), Headers: rest.DisableUser200ResponseHeaders{ETag: etag(s.Version)}}, nil
}

// EnableUser implements rest.StrictServerInterface.
func (h *Handlers) EnableUser(ctx context.Context, r rest.EnableUserRequestObject) (rest.EnableUserResponseObject, error) {
	version, err := ifMatch(r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		ctx = authz.WithResolution(ctx, r.Body.ResolveI1.Choice())
	}
	s, err := h.service.EnableUser(ctx, r.UserID, version)
	if err != nil {
		return nil, err
	}
	return rest.EnableUser200JSONResponse{Body: user(s), Headers: rest.EnableUser200ResponseHeaders{ETag: etag(s.Version)}}, nil
}

// IssueEnrollmentCode implements rest.StrictServerInterface.
func (h *Handlers) IssueEnrollmentCode(ctx context.Context, r rest.IssueEnrollmentCodeRequestObject) (rest.IssueEnrollmentCodeResponseObject, error) {
	code, err := h.service.IssueEnrollmentCode(ctx, r.UserID)
	if err != nil {
		return nil, err
	}
	return rest.IssueEnrollmentCode201JSONResponse(*enrollment(&code)), nil
}
