// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves the REST operations of authz.
package httpapi

import (
	"context"
	"strings"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

// Handlers has the operations of authz; internal/wire embeds it.
type Handlers struct{ Authz *app.Service }

// The names of the lists in their cursors.
const (
	listGroups  = "groups"
	listMembers = "members"
	listGrants  = "grants"
)

// ListGrants implements the operation of this name.
func (h Handlers) ListGrants(ctx context.Context, req rest.ListGrantsRequestObject) (rest.ListGrantsResponseObject, error) {
	after, err := cursor[ids.ID](listGrants, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	q := app.GrantQuery{SubjectID: ids.Deref(req.Params.SubjectID), After: after, Limit: paging.Limit(req.Params.Limit)}
	q.Inherited = req.Params.IncludeInherited != nil && *req.Params.IncludeInherited
	if req.Params.Target != nil {
		t, err := parseTarget("query:target", *req.Params.Target)
		if err != nil {
			return nil, err
		}
		q.Target = &t
	}
	list, more, err := h.Authz.Grants(ctx, q)
	if err != nil {
		return nil, err
	}
	out := rest.ListGrants200JSONResponse{Items: make([]rest.Grant, 0, len(list))}
	for _, g := range list {
		item := toGrant(g)
		if q.Target != nil && g.Target != *q.Target {
			from := item.Target
			item.InheritedFrom = &from
		}
		out.Items = append(out.Items, item)
	}
	if more {
		out.NextCursor, err = next(listGrants, list[len(list)-1].ID)
	}
	return out, err
}

// CreateGrant implements the operation of this name.
func (h Handlers) CreateGrant(ctx context.Context, req rest.CreateGrantRequestObject) (rest.CreateGrantResponseObject, error) {
	b := req.Body
	in := app.NewGrant{
		SubjectKind: string(b.Subject.Kind), SubjectID: b.Subject.ID, Level: string(b.Level),
		Target:   domain.Target{Kind: domain.TargetKind(b.Target.Kind), ID: ids.Deref(b.Target.ID)},
		Replaces: ids.Deref(b.Replaces),
	}
	for _, c := range b.Capabilities {
		in.Capabilities = append(in.Capabilities, string(c))
	}
	if b.ExpiresAt != nil {
		in.ExpiresAt = b.ExpiresAt.Time
	}
	if b.Note != nil {
		in.Note = *b.Note
	}
	g, version, err := h.Authz.CreateGrant(authz.WithResolution(ctx, b.ResolveI1.Choice()), in)
	if err != nil {
		return nil, err
	}
	return rest.CreateGrant201JSONResponse{Grant: toGrant(g), PermissionVersion: version}, nil
}

// GetGrant implements the operation of this name.
func (h Handlers) GetGrant(ctx context.Context, req rest.GetGrantRequestObject) (rest.GetGrantResponseObject, error) {
	g, err := h.Authz.Grant(ctx, req.GrantID)
	if err != nil {
		return nil, err
	}
	return rest.GetGrant200JSONResponse(toGrant(g)), nil
}

// RevokeGrant implements the operation of this name.
func (h Handlers) RevokeGrant(ctx context.Context, req rest.RevokeGrantRequestObject) (rest.RevokeGrantResponseObject, error) {
	if err := h.Authz.RevokeGrant(ctx, req.GrantID); err != nil {
		return nil, err
	}
	return rest.RevokeGrant204Response{}, nil
}

// GetAccessHints implements the operation of this name.
func (h Handlers) GetAccessHints(ctx context.Context, req rest.GetAccessHintsRequestObject) (rest.GetAccessHintsResponseObject, error) {
	targets := make([]domain.Target, 0, len(req.Params.Targets))
	for _, text := range req.Params.Targets {
		t, err := parseTarget("query:targets", text)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	hints, version, err := h.Authz.Hints(ctx, targets)
	if err != nil {
		return nil, err
	}
	out := rest.GetAccessHints200JSONResponse{PermissionVersion: version, Items: make([]rest.AccessHint, 0, len(hints))}
	for _, hint := range hints {
		item := rest.AccessHint{Target: toTarget(hint.Target), Capabilities: toCapabilities(hint.Caps)}
		if hint.Level != domain.None {
			level := rest.Level(hint.Level.String())
			item.Level = &level
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

func toGrant(g app.GrantRow) rest.Grant {
	out := rest.Grant{
		ID: g.ID, Subject: rest.Subject{Kind: rest.SubjectKind(g.SubjectKind), ID: g.SubjectID}, Target: toTarget(g.Target),
		Level: rest.Level(g.Level.String()), Capabilities: toCapabilities(g.Caps), Note: g.Note,
		CreatedBy: g.CreatedBy.Ptr(), CreatedAt: jsontype.At(g.CreatedAt),
	}
	if !g.ExpiresAt.IsZero() {
		t := jsontype.At(g.ExpiresAt)
		out.ExpiresAt = &t
	}
	return out
}

func toTarget(t domain.Target) rest.Target {
	return rest.Target{Kind: rest.TargetKind(t.Kind), ID: t.ID.Ptr()}
}

func toCapabilities(c domain.Caps) []rest.Capability {
	names := c.Names()
	out := make([]rest.Capability, len(names))
	for i, n := range names {
		out[i] = rest.Capability(n)
	}
	return out
}

// parseTarget reads instance, space:<id> or channel:<id>.
func parseTarget(pointer, text string) (domain.Target, error) {
	kind, rest, found := strings.Cut(text, ":")
	if !found && kind == string(domain.TargetInstance) {
		return domain.Target{Kind: domain.TargetInstance}, nil
	}
	id, err := ids.Parse(rest)
	switch domain.TargetKind(kind) {
	case domain.TargetSpace, domain.TargetChannel, domain.TargetHost:
		if err == nil {
			return domain.Target{Kind: domain.TargetKind(kind), ID: id}, nil
		}
	}
	return domain.Target{}, errs.Invalid(pointer, "malformed", "A target is written instance, space:<id> or channel:<id>.")
}

func cursor[T any](list string, c *string) (T, error) {
	if c == nil {
		var none T
		return none, nil
	}
	at, err := paging.Decode[T](list, *c)
	if err != nil {
		return at, errs.New(errs.CodeCursorInvalid, "The cursor does not belong to this list. Begin again without one.")
	}
	return at, nil
}

func next[T any](list string, at T) (*string, error) {
	c, err := paging.Encode(list, at)
	if err != nil {
		return nil, err
	}
	return &c, nil
}
