// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

const listHolders = "holders"

// ExplainAccess implements the operation of this name.
func (h Handlers) ExplainAccess(ctx context.Context, req rest.ExplainAccessRequestObject) (rest.ExplainAccessResponseObject, error) {
	q := app.Question{PrincipalID: req.Params.PrincipalID}
	if req.Params.Action != nil {
		q.Action = authorize.Action(*req.Params.Action)
	}
	var err error
	if thread, found := strings.CutPrefix(req.Params.Target, "thread:"); found {
		if q.ThreadID, err = ids.Parse(thread); err != nil {
			return nil, errs.Invalid("query:target", "malformed", "A thread is written thread:<id>.")
		}
	} else if q.Target, err = parseTarget("query:target", req.Params.Target); err != nil {
		return nil, err
	}
	x, err := h.Authz.Explain(ctx, q)
	if err != nil {
		return nil, err
	}
	return rest.ExplainAccess200JSONResponse(toExplanation(x)), nil
}

func toExplanation(x app.Explanation) rest.AccessExplanation {
	held := toHeld(x.Held)
	out := rest.AccessExplanation{
		PrincipalID: x.PrincipalID, Target: toTarget(x.Target), Decision: "allow", Level: held.Level, Capabilities: held.Capabilities,
		Summary: x.Summary, Steps: toSteps(x.Steps),
	}
	if x.Action != "" {
		action := string(x.Action)
		out.Action = &action
	}
	if x.Denied == "" {
		return out
	}
	out.Decision, out.Reason, out.Ask = "deny", &x.Denied, append([]ids.ID{}, x.Ask...)
	for _, n := range x.Needed {
		var need rest.AccessNeed
		if n.Owner {
			need.Owner = &n.Owner
		}
		if n.Level != domain.None {
			level := rest.Level(n.Level.String())
			need.Level = &level
		}
		if n.Capability != "" {
			c := rest.Capability(n.Capability)
			need.Capability = &c
		}
		out.Needed = append(out.Needed, need)
	}
	return out
}

func toHeld(h domain.Held) rest.AccessHeld {
	out := rest.AccessHeld{Capabilities: toCapabilities(h.Caps)}
	if h.Level != domain.None {
		level := rest.Level(h.Level.String())
		out.Level = &level
	}
	return out
}

func toSteps(list []app.Reason) []rest.AccessStep {
	out := make([]rest.AccessStep, len(list))
	for i, r := range list {
		out[i] = rest.AccessStep{Code: string(r.Code), Text: r.Text, Contributes: toHeld(r.Contributes), Counted: r.Counted}
		if !r.Counted {
			reason := string(r.Code)
			out[i].NotCountedReason = &reason
		}
		if r.Source == nil {
			continue
		}
		target := toTarget(r.Source.Target)
		out[i].Target, out[i].GroupID = &target, r.Source.GroupID.Ptr()
		if r.GrantShown {
			out[i].GrantID = r.Source.GrantID.Ptr()
		}
		if !r.Source.ExpiresAt.IsZero() {
			t := jsontype.At(r.Source.ExpiresAt)
			out[i].ExpiresAt = &t
		}
	}
	return out
}

// ListAccessHolders implements the operation of this name.
func (h Handlers) ListAccessHolders(ctx context.Context, req rest.ListAccessHoldersRequestObject) (rest.ListAccessHoldersResponseObject, error) {
	after, err := cursor[ids.ID](listHolders, req.Params.Cursor)
	if err != nil {
		return nil, err
	}
	q := app.HolderQuery{After: after, Limit: paging.Limit(req.Params.Limit)}
	if q.Target, err = parseTarget("query:target", req.Params.Target); err != nil {
		return nil, err
	}
	if req.Params.MinLevel != nil {
		q.MinLevel, _ = domain.ParseLevel(string(*req.Params.MinLevel))
	}
	list, more, err := h.Authz.Holders(ctx, q)
	if err != nil {
		return nil, err
	}
	out := rest.ListAccessHolders200JSONResponse{Items: make([]rest.AccessHolder, len(list))}
	for i, x := range list {
		out.Items[i] = rest.AccessHolder{
			PrincipalID: x.PrincipalID, Kind: rest.PrincipalKind(x.Kind), Level: rest.Level(x.Held.Level.String()),
			Capabilities: toCapabilities(x.Held.Caps), Sources: toSteps(x.Reasons),
		}
		if !x.ExpiresAt.IsZero() {
			t := jsontype.At(x.ExpiresAt)
			out.Items[i].ExpiresAt = &t
		}
	}
	if more {
		out.NextCursor, err = next(listHolders, list[len(list)-1].PrincipalID)
	}
	return out, err
}

// PreviewAccess implements the operation of this name.
func (h Handlers) PreviewAccess(ctx context.Context, req rest.PreviewAccessRequestObject) (rest.PreviewAccessResponseObject, error) {
	change, err := previewed(req.Body.Change)
	if err != nil {
		return nil, err
	}
	p, err := h.Authz.Preview(ctx, change)
	if err != nil {
		return nil, err
	}
	i1, err := toI1(p.I1)
	if err != nil {
		return nil, err
	}
	out := rest.PreviewAccess200JSONResponse{I1: i1, Affected: p.Affected, Truncated: p.Truncated, Items: make([]rest.PreviewedAccess, len(p.Lines))}
	for i, l := range p.Lines {
		out.Items[i] = rest.PreviewedAccess{
			PrincipalID: l.PrincipalID, Target: toTarget(l.Target), Before: toHeld(l.Before), After: toHeld(l.After),
		}
	}
	return out, nil
}

// toI1 gives what a refusal would say the form of the contract: its own words are that form.
func toI1(answer *app.I1Answer) (*rest.I1Problem, error) {
	if answer == nil {
		return nil, nil
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("encode the violations: %w", err)
	}
	var out rest.I1Problem
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("read the violations back: %w", err)
	}
	return &out, nil
}

// previewed reads the one change of a request.
func previewed(c rest.PreviewChange) (app.Previewed, error) {
	switch {
	case c.GrantCreate != nil:
		return app.PreviewGrant{NewGrant: previewedGrant(*c.GrantCreate)}, nil
	case c.GrantRevoke != nil:
		return app.PreviewRevoke{GrantID: c.GrantRevoke.GrantID}, nil
	case c.MemberPut != nil:
		return app.PreviewMember{GroupID: c.MemberPut.GroupID, PrincipalID: c.MemberPut.PrincipalID}, nil
	case c.MemberRemove != nil:
		return app.PreviewMember{GroupID: c.MemberRemove.GroupID, PrincipalID: c.MemberRemove.PrincipalID, Removed: true}, nil
	case c.GroupDelete != nil:
		return app.PreviewGroupDelete{GroupID: c.GroupDelete.GroupID}, nil
	case c.OwnerAdd != nil:
		return person(c.OwnerAdd.PrincipalID, func(p *domain.Principal) { p.Owner = true }), nil
	case c.OwnerRemove != nil:
		return person(c.OwnerRemove.PrincipalID, func(p *domain.Principal) { p.Owner = false }), nil
	case c.UserDisable != nil:
		return person(c.UserDisable.PrincipalID, func(p *domain.Principal) { p.Active = false }), nil
	case c.ChannelInherits != nil:
		return channel(c.ChannelInherits.ChannelID, func(x *domain.Channel) { x.Inherits = c.ChannelInherits.Inherits }), nil
	case c.OperatorSet != nil:
		return channel(c.OperatorSet.ChannelID, func(x *domain.Channel) { x.Operator = ids.Deref(c.OperatorSet.AgentID) }), nil
	default:
		return nil, errs.Invalid("/change", "required", "Name one change.")
	}
}

func previewedGrant(g rest.PreviewGrant) app.NewGrant {
	out := app.NewGrant{
		SubjectKind: string(g.Subject.Kind), SubjectID: g.Subject.ID, Level: string(g.Level),
		Target: domain.Target{Kind: domain.TargetKind(g.Target.Kind), ID: ids.Deref(g.Target.ID)},
	}
	for _, c := range g.Capabilities {
		out.Capabilities = append(out.Capabilities, string(c))
	}
	return out
}

func person(id ids.ID, change func(*domain.Principal)) app.PreviewPerson {
	return app.PreviewPerson{PrincipalID: id, Apply: func(p domain.Principal) domain.Principal { change(&p); return p }}
}

func channel(id ids.ID, change func(*domain.Channel)) app.PreviewPlace {
	return app.PreviewPlace{ChannelID: id, Apply: func(c domain.Channel) domain.Channel { change(&c); return c }}
}

// StartViewAs implements the operation of this name.
func (h Handlers) StartViewAs(ctx context.Context, req rest.StartViewAsRequestObject) (rest.StartViewAsResponseObject, error) {
	view, token, err := h.Authz.StartViewAs(ctx, req.Body.PrincipalID)
	if err != nil {
		return nil, err
	}
	return rest.StartViewAs201JSONResponse{AccessToken: token, SessionID: view.SessionID, ExpiresAt: jsontype.At(view.ExpiresAt)}, nil
}
