// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// words are the names that the sentences of explanations use.
type words struct {
	principals, groups map[ids.ID]string
	places             map[domain.Target]string
	// reader is who reads the sentences: she is called You.
	reader ids.ID
}

// subject is a principal as the subject of a sentence, with the verb that fits.
func (w words) subject(id ids.ID, verb, yours string) string {
	if id == w.reader {
		return "You " + yours
	}
	return w.name(id) + " " + verb
}

func (w words) name(id ids.ID) string {
	if id == w.reader {
		return "you"
	}
	if n := w.principals[id]; n != "" {
		return n
	}
	return "a member"
}

func (w words) place(t domain.Target) string {
	name := w.places[t]
	switch {
	case t.Kind == domain.TargetInstance:
		return "the instance"
	case t.Kind == domain.TargetSpace && name != "":
		return "space " + name
	case t.Kind == domain.TargetChannel && name != "":
		return "#" + name
	case t.Kind == domain.TargetChannel:
		return "this conversation"
	default:
		return "this " + string(t.Kind)
	}
}

func until(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.UTC().Format("2006-01-02 15:04 UTC")
}

func rights(h domain.Held) string {
	out := "`" + h.Level.String() + "`"
	if extra := h.Caps.Names(); len(extra) > 0 && h.Level != domain.Manage {
		out += " with " + strings.Join(extra, ", ")
	}
	return out
}

// sentence says one step.
func (w words) sentence(p ids.ID, at domain.Target, s domain.Step) string {
	switch s.Code {
	case domain.CodeOwner:
		return w.subject(p, "is an owner", "are an owner") + " of this instance."
	case domain.CodeParticipant:
		return w.subject(p, "takes", "take") + " part in this conversation."
	case domain.CodeOperator:
		return w.subject(p, "is", "are") + " the agent that answers in " + w.place(at) + "."
	case domain.CodeDisabled:
		return w.subject(p, "is disabled and holds", "are disabled and hold") + " nothing."
	case domain.CodeArchived:
		return capital(w.place(at)) + " is archived: nothing is written there any more."
	case domain.CodeReadOnly:
		return capital(w.place(at)) + " is closed for new messages."
	}
	return w.granted(p, s) + w.passed(at, s)
}

// granted says how a grant came.
func (w words) granted(p ids.ID, s domain.Step) string {
	held := domain.HeldBy(s.Source.Level, s.Source.Caps)
	given := rights(held) + " on " + w.place(s.Source.Target) + until(s.Source.GrantUntil)
	switch {
	case s.Source.Everyone:
		return "Everyone who is no guest has " + given + "."
	case !s.Source.GroupID.IsZero():
		group := w.groups[s.Source.GroupID]
		if group == "" {
			return w.subject(p, "has", "have") + " " + given + " through a group."
		}
		return w.subject(p, "is", "are") + " a member of group " + group + until(s.Source.MemberUntil) + ", which has " + given + "."
	default:
		return w.subject(p, "was given", "were given") + " " + given + "."
	}
}

// passed says what becomes of a grant on its way down to the target.
func (w words) passed(at domain.Target, s domain.Step) string {
	switch s.Code {
	case domain.CodeExpired:
		return " That has ended."
	case domain.CodeBarrier:
		return " " + capital(w.place(at)) + " does not inherit, so it adds nothing there."
	}
	if s.Source.Target == at {
		return ""
	}
	if s.Contributes.Level == domain.Manage {
		return " It reaches " + w.place(at) + "."
	}
	return " " + capital(w.place(at)) + " inherits it."
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// wordsFor reads the names that steps need.
func (s *Service) wordsFor(ctx context.Context, principals []ids.ID, at spot, steps ...[]domain.Step) (words, error) {
	w := words{groups: map[ids.ID]string{}, places: map[domain.Target]string{}, reader: actor.From(ctx).ID}
	var groups []ids.ID
	for _, list := range steps {
		for _, step := range list {
			if step.Source != nil && !step.Source.GroupID.IsZero() {
				groups = append(groups, step.Source.GroupID)
			}
		}
	}
	var err error
	if w.principals, err = s.principalNames.PrincipalNames(ctx, sortedUnique(principals)); err != nil {
		return w, fmt.Errorf("read the names of members: %w", err)
	}
	rows, err := s.store.GroupsByID(ctx, sortedUnique(groups))
	if err != nil {
		return w, err
	}
	for _, g := range rows {
		w.groups[g.ID] = g.Name
	}
	for _, t := range at.around() {
		if t.Kind == domain.TargetInstance {
			continue
		}
		if w.places[t], err = s.placeNames.PlaceName(ctx, authz.Target{Kind: string(t.Kind), ID: t.ID}); err != nil {
			return w, fmt.Errorf("read the name of a place: %w", err)
		}
	}
	return w, nil
}

// inWords completes an explanation with its sentences.
func (s *Service) inWords(ctx context.Context, out *Explanation, at spot, p domain.Principal, steps []domain.Step) error {
	if out.Denied != "" {
		if spec, known := s.spec(out.Action); known {
			out.Needed = needs(spec)
		} else {
			out.Needed = []Need{{Level: domain.Read}}
		}
		var err error
		if out.Ask, err = s.mayHelp(ctx, at, p.ID); err != nil {
			return err
		}
	}
	w, err := s.wordsFor(ctx, append([]ids.ID{p.ID}, out.Ask...), at, steps)
	if err != nil {
		return err
	}
	for _, step := range steps {
		shown, err := s.showsGrant(ctx, p.ID, at, step)
		if err != nil {
			return err
		}
		out.Steps = append(out.Steps, Reason{Step: step, Text: w.sentence(p.ID, at.Target, step), GrantShown: shown})
	}
	out.Summary = w.summary(out, at.Target)
	return nil
}

// showsGrant tells whether the caller may see the grant behind a step.
func (s *Service) showsGrant(ctx context.Context, p ids.ID, at spot, step domain.Step) (bool, error) {
	if step.Source == nil {
		return false, nil
	}
	g := GrantRow{ID: step.Source.GrantID, SubjectKind: SubjectGroup, SubjectID: step.Source.GroupID}
	if step.Source.GroupID.IsZero() {
		g.SubjectKind, g.SubjectID = SubjectPrincipal, p
	}
	g.Target = step.Source.Target
	return s.Allowed(ctx, authorize.ActionGrantRead, grantResource(g))
}

// summary answers first and gives the strongest reason behind it.
func (w words) summary(x *Explanation, at domain.Target) string {
	var out strings.Builder
	if x.Held.Level == domain.None {
		out.WriteString(w.subject(x.PrincipalID, "has", "have") + " no access to " + w.place(at) + ".")
	} else {
		out.WriteString(w.subject(x.PrincipalID, "has", "have") + " `" + x.Held.Level.String() + "` in " + w.place(at) + ".")
	}
	if len(x.Steps) > 0 && (x.Steps[0].Counted || x.Held.Level == domain.None) {
		out.WriteString(" " + x.Steps[0].Text)
	}
	if x.Denied == "" {
		return out.String()
	}
	if x.Action != "" {
		out.WriteString(" " + string(x.Action) + " " + w.missing(x) + ".")
	}
	if len(x.Ask) > 0 {
		names := make([]string, len(x.Ask))
		for i, id := range x.Ask {
			names[i] = w.name(id)
		}
		out.WriteString(" Ask " + either(names) + ".")
	}
	return out.String()
}

// missing says what an action that is denied would take.
func (w words) missing(x *Explanation) string {
	switch x.Denied {
	case reasonTargetArchived, reasonChannelReadOnly:
		return "is closed there for everybody"
	case reasonKindNotAllowed:
		return "is nothing for members of this kind"
	case reasonNotOwn:
		return "is only for what is one's own"
	}
	var parts []string
	for _, n := range x.Needed {
		switch {
		case n.Owner:
			parts = append(parts, "an owner")
		case n.Capability != "" && n.Level > domain.Read:
			parts = append(parts, "`"+n.Level.String()+"` and `"+n.Capability+"`")
		case n.Capability != "":
			parts = append(parts, "`"+n.Capability+"`")
		default:
			parts = append(parts, "`"+n.Level.String()+"`")
		}
	}
	return "needs " + either(parts)
}

// either joins alternatives.
func either(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
