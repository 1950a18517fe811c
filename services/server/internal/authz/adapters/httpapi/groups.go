// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

// ListGroups implements the operation of this name.
func (h Handlers) ListGroups(ctx context.Context, req rest.ListGroupsRequestObject) (rest.ListGroupsResponseObject, error) {
	after, err := cursor[string](listGroups, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	q := app.GroupQuery{After: after, Limit: paging.Limit(req.Params.Limit)}
	if req.Params.Query != nil {
		q.Query = strings.ToLower(*req.Params.Query)
	}
	if req.Params.Kind != nil {
		q.Kind = string(*req.Params.Kind)
	}
	list, more, err := h.Authz.Groups(ctx, q)
	if err != nil {
		return nil, err
	}
	out := rest.ListGroups200JSONResponse{Items: make([]rest.Group, 0, len(list))}
	for _, g := range list {
		out.Items = append(out.Items, toGroup(g))
	}
	if more {
		out.NextCursor, err = next(listGroups, list[len(list)-1].Handle)
	}
	return out, err
}

// CreateGroup implements the operation of this name.
func (h Handlers) CreateGroup(ctx context.Context, req rest.CreateGroupRequestObject) (rest.CreateGroupResponseObject, error) {
	b := req.Body
	in := app.NewGroup{Name: b.Name, Handle: b.Handle, Mentionable: b.Mentionable == nil || *b.Mentionable}
	if b.Description != nil {
		in.Description = *b.Description
	}
	if b.Claim != nil {
		in.ProviderID, in.ClaimValue = b.Claim.ProviderID, b.Claim.Value
	}
	g, err := h.Authz.CreateGroup(ctx, in)
	if err != nil {
		return nil, err
	}
	return rest.CreateGroup201JSONResponse{Body: toGroup(g), Headers: rest.CreateGroup201ResponseHeaders{ETag: etag(g.Version)}}, nil
}

// GetGroup implements the operation of this name.
func (h Handlers) GetGroup(ctx context.Context, req rest.GetGroupRequestObject) (rest.GetGroupResponseObject, error) {
	d, err := h.Authz.Group(ctx, req.GroupID)
	if err != nil {
		return nil, err
	}
	g := toGroup(d.GroupRow)
	return rest.GetGroup200JSONResponse{
		Body: rest.GroupDetail{
			ID: g.ID, Name: g.Name, Handle: g.Handle, Description: g.Description, Kind: g.Kind, Claim: g.Claim, Mentionable: g.Mentionable,
			Version: g.Version, MyRole: g.MyRole, MemberCount: d.Members, GrantsCount: d.Grants,
		},
		Headers: rest.GetGroup200ResponseHeaders{ETag: etag(g.Version)},
	}, nil
}

// UpdateGroup implements the operation of this name.
func (h Handlers) UpdateGroup(ctx context.Context, req rest.UpdateGroupRequestObject) (rest.UpdateGroupResponseObject, error) {
	b := req.Body
	g, err := h.Authz.UpdateGroup(ctx, req.GroupID, app.GroupChange{
		Version: ifMatch(req.Params.IfMatch), Name: b.Name, Handle: b.Handle, Description: b.Description, Mentionable: b.Mentionable,
	})
	if err != nil {
		return nil, err
	}
	return rest.UpdateGroup200JSONResponse{Body: toGroup(g), Headers: rest.UpdateGroup200ResponseHeaders{ETag: etag(g.Version)}}, nil
}

// DeleteGroup implements the operation of this name.
func (h Handlers) DeleteGroup(ctx context.Context, req rest.DeleteGroupRequestObject) (rest.DeleteGroupResponseObject, error) {
	if err := h.Authz.DeleteGroup(ctx, req.GroupID, ifMatch(req.Params.IfMatch)); err != nil {
		return nil, err
	}
	return rest.DeleteGroup204Response{}, nil
}

// ListGroupMembers implements the operation of this name.
func (h Handlers) ListGroupMembers(ctx context.Context, req rest.ListGroupMembersRequestObject) (rest.ListGroupMembersResponseObject, error) {
	after, err := cursor[ids.ID](listMembers, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	list, more, err := h.Authz.Members(ctx, req.GroupID, after, paging.Limit(req.Params.Limit))
	if err != nil {
		return nil, err
	}
	out := rest.ListGroupMembers200JSONResponse{Items: make([]rest.GroupMember, 0, len(list))}
	for _, m := range list {
		out.Items = append(out.Items, toMember(m))
	}
	if more {
		out.NextCursor, err = next(listMembers, list[len(list)-1].PrincipalID)
	}
	return out, err
}

// PutGroupMember implements the operation of this name.
func (h Handlers) PutGroupMember(ctx context.Context, req rest.PutGroupMemberRequestObject) (rest.PutGroupMemberResponseObject, error) {
	var in app.NewMember
	if req.Body.Role != nil {
		in.Role = string(*req.Body.Role)
	}
	if req.Body.ExpiresAt != nil {
		in.ExpiresAt = req.Body.ExpiresAt.Time
	}
	ctx = authz.WithResolution(ctx, req.Body.ResolveI1.Choice())
	m, added, err := h.Authz.PutMember(ctx, req.GroupID, req.PrincipalID, in)
	switch {
	case err != nil:
		return nil, err
	case added:
		return rest.PutGroupMember201JSONResponse(toMember(m)), nil
	default:
		return rest.PutGroupMember200JSONResponse(toMember(m)), nil
	}
}

// RemoveGroupMember implements the operation of this name.
func (h Handlers) RemoveGroupMember(ctx context.Context, req rest.RemoveGroupMemberRequestObject) (rest.RemoveGroupMemberResponseObject, error) {
	if err := h.Authz.RemoveMember(ctx, req.GroupID, req.PrincipalID); err != nil {
		return nil, err
	}
	return rest.RemoveGroupMember204Response{}, nil
}

func toGroup(g app.GroupRow) rest.Group {
	out := rest.Group{
		ID: g.ID, Name: g.Name, Handle: g.Handle, Description: g.Description, Kind: rest.GroupKind(g.Kind),
		Mentionable: g.Mentionable, Version: g.Version,
	}
	if !g.ProviderID.IsZero() {
		out.Claim = &rest.GroupClaim{ProviderID: g.ProviderID, Value: g.ClaimValue}
	}
	if g.MyRole != "" {
		role := rest.GroupRole(g.MyRole)
		out.MyRole = &role
	}
	return out
}

func toMember(m app.MemberRow) rest.GroupMember {
	source := rest.MembershipSource(m.Source)
	out := rest.GroupMember{PrincipalID: m.PrincipalID, Role: rest.GroupRole(m.Role), Source: &source}
	if !m.ExpiresAt.IsZero() {
		t := jsontype.At(m.ExpiresAt)
		out.ExpiresAt = &t
	}
	return out
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// ifMatch reads the version of the header. Anything but one of our tags is a version that
// nothing has, so who may not change the thing hears of that first.
func ifMatch(header string) int64 {
	version, err := strconv.ParseInt(strings.Trim(header, `"`), 10, 64)
	if err != nil {
		return -1
	}
	return version
}
