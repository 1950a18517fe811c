// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// maxPreviewed bounds the lines of a preview.
const maxPreviewed = 500

// PreviewLine is how the rights of a principal on a target would differ.
type PreviewLine struct {
	PrincipalID   ids.ID
	Target        domain.Target
	Before, After domain.Held
}

// Preview tells what a change would do.
type Preview struct {
	// Affected counts the principals whose rights would differ.
	Affected  int
	Lines     []PreviewLine
	Truncated bool
	// I1 is what a request would be refused with because of a personal agent; nil for nothing.
	I1 *I1Answer
}

// Previewed is a change of rights that can be evaluated without doing it.
type Previewed interface {
	// plan checks that the caller may do the change and gives what it would do.
	plan(ctx context.Context, s *Service) (plan, error)
}

// plan is a change as an overlay on what is stored.
type plan struct {
	affected []ids.ID
	// person, sources and structure change what is read; nil leaves it as it is.
	person    func(domain.Principal) domain.Principal
	sources   func(domain.Principal, []domain.Source) []domain.Source
	structure func(*domain.Structure) *domain.Structure
	// grant and member are what the change would make.
	grant  *TriggerGrant
	member *domain.MemberKey
}

// overlaid is a principal as the change would leave it.
type overlaid struct {
	domain.Principal
	sources []domain.Source
	entry   *domain.Entry
}

// Preview evaluates a change on a snapshot, with the functions of every decision. It takes no
// lock and changes nothing.
func (s *Service) Preview(ctx context.Context, change Previewed) (Preview, error) {
	var out Preview
	err := s.units.View(ctx, func(ctx context.Context) error {
		if err := s.Authorize(ctx, authorize.ActionAccessPreview, authorize.Instance()); err != nil {
			return err
		}
		p, err := change.plan(ctx, s)
		if err != nil {
			return err
		}
		out, err = s.evaluate(ctx, p)
		return err
	})
	return out, sourceError(authorize.ActionAccessPreview, err)
}

func (s *Service) evaluate(ctx context.Context, p plan) (Preview, error) {
	affected := sortedUnique(slices.Clone(p.affected))
	before, err := s.readStructure(ctx)
	if err != nil {
		return Preview{}, err
	}
	after := before
	if p.structure != nil {
		after = p.structure(before)
	}
	people, err := s.principals.Principals(ctx, affected)
	if err != nil {
		return Preview{}, fmt.Errorf("read the affected: %w", err)
	}
	rows, err := s.store.Sources(ctx, affected, nil)
	if err != nil {
		return Preview{}, err
	}
	now := s.now(ctx)
	var out Preview
	then := make(map[ids.ID]overlaid, len(people))
	for _, found := range people {
		person := toPrincipal(found)
		next, held := person, rows.Of(person)
		if p.person != nil {
			next = p.person(person)
		}
		sources := rows.Of(next)
		if p.sources != nil {
			sources = p.sources(next, sources)
		}
		was := domain.Compile(person, 0, domain.Sources(held), now)
		will := domain.Compile(next, 0, domain.Sources(sources), now)
		then[person.ID] = overlaid{next, sources, will}
		diff := domain.Diff(was, will, before, after)
		if diff.Flags || diff.Size() > 0 {
			out.Affected++
		}
		for _, list := range [][]domain.TargetHeld{diff.Gained, diff.Changed, diff.Lost} {
			for _, t := range list {
				out.add(PreviewLine{
					PrincipalID: person.ID, Target: t.Target, Before: heldAt(was, before, t.Target), After: heldAt(will, after, t.Target),
				})
			}
		}
	}
	slices.SortStableFunc(out.Lines, func(a, b PreviewLine) int { return a.PrincipalID.Compare(b.PrincipalID) })
	out.I1, err = s.previewI1(ctx, p, before, after, then)
	return out, err
}

func (p *Preview) add(l PreviewLine) {
	switch {
	case l.Before == l.After: // Listed only because something above it differs.
	case len(p.Lines) == maxPreviewed:
		p.Truncated = true
	default:
		p.Lines = append(p.Lines, l)
	}
}

// heldAt is what an entry holds on a target of the structure.
func heldAt(e *domain.Entry, st *domain.Structure, t domain.Target) domain.Held {
	switch t.Kind {
	case domain.TargetInstance:
		return e.Instance()
	case domain.TargetSpace:
		if _, ok := st.Space(t.ID); ok {
			return e.Space(t.ID)
		}
	case domain.TargetChannel:
		if c, ok := st.Channel(t.ID); ok {
			return e.Channel(c)
		}
	}
	return domain.Held{}
}

// PreviewGrant is a grant that would be given, in the place of the present one of the same
// subject and target.
type PreviewGrant struct{ NewGrant }

func (c PreviewGrant) plan(ctx context.Context, s *Service) (plan, error) {
	g, err := s.newGrant(ctx, c.NewGrant)
	if err != nil {
		return plan{}, err
	}
	if err := s.mayHandle(ctx, authorize.ActionGrantCreate, g.Grant, targetResource(g.Target)); err != nil {
		return plan{}, err
	}
	if err := s.checkSubject(ctx, g); err != nil {
		return plan{}, err
	}
	affected, err := s.holdersOf(ctx, g.SubjectKind, g.SubjectID)
	if err != nil {
		return plan{}, err
	}
	old, err := s.store.GrantOf(ctx, g.SubjectKind, g.SubjectID, g.Target)
	if err != nil && !errors.Is(err, ErrNoRow) {
		return plan{}, fmt.Errorf("read the present grant: %w", err)
	}
	made := TriggerGrant{ID: ids.NewAt(s.now(ctx)), Grant: g.Grant}
	if g.SubjectKind == SubjectGroup {
		made.GroupID = g.SubjectID
		everyone, err := s.store.Everyone(ctx)
		made.Everyone = err == nil && everyone.ID == g.SubjectID
	}
	given := sourceOf(made)
	return plan{affected: affected, grant: &made, sources: func(_ domain.Principal, list []domain.Source) []domain.Source {
		list, _ = without(list, func(x domain.Source) bool { return x.GrantID == old.ID })
		return append(list, given)
	}}, nil
}

// PreviewRevoke is a grant that would be taken away.
type PreviewRevoke struct{ GrantID ids.ID }

func (c PreviewRevoke) plan(ctx context.Context, s *Service) (plan, error) {
	g, err := s.store.Grant(ctx, c.GrantID)
	if errors.Is(err, ErrNoRow) {
		return plan{}, s.missing(ctx, authorize.ActionGrantRevoke, c.GrantID)
	}
	if err != nil {
		return plan{}, err
	}
	if err := s.mayHandle(ctx, authorize.ActionGrantRevoke, g.Grant, grantResource(g)); err != nil {
		return plan{}, err
	}
	affected, err := s.holdersOf(ctx, g.SubjectKind, g.SubjectID)
	return plan{affected: affected, sources: func(_ domain.Principal, list []domain.Source) []domain.Source {
		list, _ = without(list, func(x domain.Source) bool { return x.GrantID == g.ID })
		return list
	}}, err
}

// PreviewMember is a member that a group would have, or with Removed no longer have.
type PreviewMember struct {
	GroupID, PrincipalID ids.ID
	Removed              bool
}

func (c PreviewMember) plan(ctx context.Context, s *Service) (plan, error) {
	action, own := authorize.ActionGroupMemberAdd, []ids.ID(nil)
	if c.Removed {
		action, own = authorize.ActionGroupMemberRemove, []ids.ID{c.PrincipalID}
	}
	g, err := s.groupFor(ctx, action, c.GroupID, own...)
	if err != nil {
		return plan{}, err
	}
	if err := keptByHand(g); err != nil {
		return plan{}, errs.Invalid("/change", "not_possible", "Nobody puts members into this group or takes them out.")
	}
	if err := s.mayJoin(ctx, g, c.PrincipalID, false); err != nil {
		return plan{}, err
	}
	given, err := s.store.GroupSources(ctx, g.ID, s.now(ctx))
	return plan{affected: []ids.ID{c.PrincipalID}, member: &domain.MemberKey{Group: g.ID, Principal: c.PrincipalID}, sources: func(_ domain.Principal, list []domain.Source) []domain.Source {
		list, _ = without(list, func(x domain.Source) bool { return x.GroupID == g.ID })
		if !c.Removed {
			list = append(list, given...)
		}
		return list
	}}, err
}

// PreviewGroupDelete is a group that would be deleted.
type PreviewGroupDelete struct{ GroupID ids.ID }

func (c PreviewGroupDelete) plan(ctx context.Context, s *Service) (plan, error) {
	g, err := s.groupFor(ctx, authorize.ActionGroupDelete, c.GroupID)
	if err != nil {
		return plan{}, err
	}
	if g.Kind == groupEveryone {
		return plan{}, errs.Invalid("/change", "not_possible", "The group of all members is kept by the server.")
	}
	affected, err := s.holdersOf(ctx, SubjectGroup, g.ID)
	return plan{affected: affected, sources: func(_ domain.Principal, list []domain.Source) []domain.Source {
		list, _ = without(list, func(x domain.Source) bool { return x.GroupID == g.ID })
		return list
	}}, err
}

// PreviewPerson is a person who would become an owner, cease to be one, or be disabled.
type PreviewPerson struct {
	PrincipalID ids.ID
	// Apply gives the person afterwards.
	Apply func(domain.Principal) domain.Principal
}

func (c PreviewPerson) plan(ctx context.Context, s *Service) (plan, error) {
	if err := s.ownersOnly(ctx); err != nil {
		return plan{}, err
	}
	found, err := s.principals.Principals(ctx, []ids.ID{c.PrincipalID})
	if err != nil {
		return plan{}, fmt.Errorf("read the person: %w", err)
	}
	if len(found) == 0 || found[0].Kind != actor.KindPerson {
		return plan{}, errs.NotFound()
	}
	return plan{affected: []ids.ID{c.PrincipalID}, person: c.Apply}, nil
}

func (s *Service) ownersOnly(ctx context.Context) error {
	e, err := s.entry(ctx, actor.From(ctx).ID)
	if err != nil {
		return err
	}
	if !e.Owner {
		s.recordDenial(ctx, authorize.ActionAccessPreview, authorize.Instance(), domain.ReasonNotOwner)
		return errs.Forbidden(domain.ReasonNotOwner)
	}
	return nil
}

// PreviewPlace is a channel that would inherit or not, or have another operator.
type PreviewPlace struct {
	ChannelID ids.ID
	Apply     func(domain.Channel) domain.Channel
}

func (c PreviewPlace) plan(ctx context.Context, s *Service) (plan, error) {
	at, err := s.spotOf(ctx, domain.Target{Kind: domain.TargetChannel, ID: c.ChannelID})
	if err != nil {
		return plan{}, err
	}
	e, err := s.entry(ctx, actor.From(ctx).ID)
	if err != nil {
		return plan{}, err
	}
	switch held := at.place.held(e); {
	case !held.Visible():
		return plan{}, errs.NotFound()
	case held.Level < domain.Manage || at.Channel.Direct:
		s.recordDenial(ctx, authorize.ActionAccessPreview, targetResource(at.Target), domain.ReasonLevelInsufficient)
		return plan{}, errs.Forbidden(domain.ReasonLevelInsufficient)
	}
	next := c.Apply(at.Channel)
	affected, err := s.subjectsAt(ctx, at.place)
	return plan{affected: append(affected, next.Operator), structure: func(st *domain.Structure) *domain.Structure {
		return st.WithChannel(next)
	}}, err
}

// holdersOf are the principals that a subject of grants stands for.
func (s *Service) holdersOf(ctx context.Context, kind string, subject ids.ID) ([]ids.ID, error) {
	if kind == SubjectPrincipal {
		return []ids.ID{subject}, nil
	}
	group, err := s.store.Group(ctx, subject)
	if err != nil {
		return nil, fmt.Errorf("read the group: %w", err)
	}
	var members []ids.ID
	if group.Kind == groupEveryone {
		members, err = s.everyone(ctx)
	} else {
		members, err = s.store.GroupMembers(ctx, subject)
	}
	if err != nil {
		return nil, fmt.Errorf("list the members of the group: %w", err)
	}
	return members, nil
}

// without splits the sources that fit off a list.
func without(list []domain.Source, fits func(domain.Source) bool) (kept, gone []domain.Source) {
	for _, x := range list {
		if fits(x) {
			gone = append(gone, x)
		} else {
			kept = append(kept, x)
		}
	}
	return kept, gone
}
