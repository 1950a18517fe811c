// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
)

// Hint is what the caller holds on a target.
type Hint struct {
	Target domain.Target
	Level  domain.Level
	Caps   domain.Caps
}

// Hints tells the caller's own rights on targets, in their order, and the version they are
// right for. Targets that the caller cannot see are left out; every operation decides anew.
func (s *Service) Hints(ctx context.Context, targets []domain.Target) ([]Hint, int64, error) {
	a := actor.From(ctx)
	if err := s.Authorize(ctx, authorize.ActionAccessHintsRead, authorize.Resource{Kind: authorize.ResourceTarget, OwnerID: a.ID}); err != nil {
		return nil, 0, err
	}
	version, err := s.version(ctx)
	if err != nil {
		return nil, 0, sourceError(authorize.ActionAccessHintsRead, err)
	}
	e, err := s.entry(ctx, a.ID)
	if err != nil {
		return nil, 0, sourceError(authorize.ActionAccessHintsRead, err)
	}
	st, err := s.structureFor(ctx, version)
	if err != nil {
		return nil, 0, sourceError(authorize.ActionAccessHintsRead, err)
	}
	var out []Hint
	for _, t := range targets {
		h, err := s.hint(ctx, e, st, t)
		if err != nil {
			return nil, 0, sourceError(authorize.ActionAccessHintsRead, err)
		}
		if h.Visible() || t.Kind == domain.TargetInstance {
			out = append(out, Hint{Target: t, Level: h.Level, Caps: h.Caps})
		}
	}
	return out, version, nil
}

func (s *Service) hint(ctx context.Context, e *domain.Entry, st *domain.Structure, t domain.Target) (domain.Held, error) {
	var h domain.Held
	var known bool
	switch t.Kind {
	case domain.TargetInstance:
		return e.Instance(), nil
	case domain.TargetSpace:
		if _, known = st.Space(t.ID); known {
			h = e.Space(t.ID)
		}
	case domain.TargetChannel:
		var c domain.Channel
		if c, known = st.Channel(t.ID); known {
			h = e.Channel(c)
		}
	default:
		return h, nil
	}
	if known && h.Visible() {
		return h, nil
	}
	return s.hintFresh(ctx, e, t)
}

// hintFresh asks the source about what memory does not show, hidden or missing alike.
func (s *Service) hintFresh(ctx context.Context, e *domain.Entry, t domain.Target) (domain.Held, error) {
	p := place{kind: t.Kind, space: domain.Space{ID: t.ID}, channel: domain.Channel{ID: t.ID}}
	p, err := s.confirm(ctx, p)
	return p.held(e), err
}
