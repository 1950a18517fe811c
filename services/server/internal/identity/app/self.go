// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// SelfView is the caller as she sees herself.
type SelfView struct {
	Account Account
	// Session is nil for API tokens.
	Session     *Session
	StepUpUntil time.Time
}

// Self reads the caller.
func (s *Service) Self(ctx context.Context) (SelfView, error) {
	who, err := s.self(ctx, authorize.ActionSelfRead)
	if err != nil {
		return SelfView{}, err
	}
	return s.selfView(ctx, who)
}

func (s *Service) selfView(ctx context.Context, who actor.Actor) (SelfView, error) {
	account, err := s.account(ctx, who.ID)
	if err != nil {
		return SelfView{}, err
	}
	view := SelfView{Account: account}
	if !who.IsSession() {
		return view, nil
	}
	session, found, err := s.Store.SessionByID(ctx, who.SessionID)
	if err != nil || !found {
		return view, err
	}
	view.Session = &session
	if until := session.StepUpAt.Add(s.cfg.StepUpTTL); !session.StepUpAt.IsZero() && s.now(ctx).Before(until) {
		view.StepUpUntil = until
	}
	return view, nil
}

// Change is a member of a merge patch: absent, or set to a value.
type Change[T any] struct {
	Set   bool
	Value T
}

func (c Change[T]) apply(to *T) {
	if c.Set {
		*to = c.Value
	}
}

// UpdateSelfInput is a merge patch of the own profile.
type UpdateSelfInput struct {
	Version              int64
	DisplayName, Handle  Change[string]
	Locale, TimeZone     Change[string]
	Title, Pronouns, Bio Change[string]
	// Status set to nil clears the custom status.
	Status Change[*CustomStatus]
}

// forPeople reports whether the patch touches what agents and apps do not have.
func (in UpdateSelfInput) forPeople() bool {
	return in.Locale.Set || in.TimeZone.Set || in.Title.Set || in.Pronouns.Set || in.Bio.Set || in.Status.Set
}

// UpdateSelf changes the caller's profile.
func (s *Service) UpdateSelf(ctx context.Context, in UpdateSelfInput) (SelfView, error) {
	if err := in.validate(s.now(ctx)); err != nil {
		return SelfView{}, err
	}
	var view SelfView
	err := s.Units.Do(ctx, func(ctx context.Context) error {
		who, err := s.self(ctx, authorize.ActionSelfProfileUpdate)
		if err != nil {
			return err
		}
		if err := s.updateSelf(ctx, who, in); err != nil {
			return err
		}
		view, err = s.selfView(ctx, who)
		return err
	})
	return view, err
}

func (in UpdateSelfInput) validate(now time.Time) error {
	var v errs.Validation
	check := func(c Change[string], pointer string, fault func(string) domain.Fault) {
		if c.Set {
			addFault(&v, pointer, fault(c.Value))
		}
	}
	limit := func(n int) func(string) domain.Fault {
		return func(t string) domain.Fault { return domain.CheckOptional(t, n) }
	}
	check(in.DisplayName, "/display_name", func(t string) domain.Fault { return domain.CheckName(t, domain.DisplayNameMax) })
	check(in.Handle, "/handle", domain.CheckHandle)
	check(in.Locale, "/locale", domain.CheckLocale)
	check(in.TimeZone, "/time_zone", domain.CheckTimeZone)
	check(in.Title, "/title", limit(domain.TitleMax))
	check(in.Pronouns, "/pronouns", limit(domain.PronounsMax))
	check(in.Bio, "/bio", func(t string) domain.Fault { return domain.CheckParagraph(t, domain.BioMax) })
	if in.Status.Set && in.Status.Value != nil {
		in.Status.Value.validate(&v, now)
	}
	return v.Err()
}

func (c CustomStatus) validate(v *errs.Validation, now time.Time) {
	addFault(v, "/custom_status/text", domain.CheckOptional(c.Text, domain.StatusTextMax))
	if c.Emoji != nil {
		addFault(v, "/custom_status/emoji", domain.CheckName(*c.Emoji, domain.StatusEmojiMax))
	}
	if c.Text == "" && c.Emoji == nil {
		v.Add("/custom_status/text", "empty", "Write something or choose an emoji.")
	}
	if c.Until != nil && !c.Until.After(now) {
		v.Add("/custom_status/until", "in_the_past", "The end must lie ahead.")
	}
}

// updateSelf is the unit: handle locks first, then the principal.
func (s *Service) updateSelf(ctx context.Context, who actor.Actor, in UpdateSelfInput) error {
	if in.Handle.Set {
		if err := s.lockHandles(ctx, in.Handle.Value); err != nil {
			return err
		}
	}
	if _, err := s.Store.LockPrincipal(ctx, who.ID); err != nil {
		return err
	}
	before, err := s.account(ctx, who.ID)
	if err != nil {
		return err
	}
	if err := checkVersion(before.Version, in.Version); err != nil {
		return err
	}
	if before.Person == nil && in.forPeople() {
		return errs.Invalid("", "not_for_kind", "Agents and apps have a handle and a display name alone.")
	}
	names, err := s.newNames(ctx, before, in)
	if err != nil {
		return err
	}
	// UpdateNames also raises the version, whatever changed.
	if err := s.Store.UpdateNames(ctx, who.ID, names); err != nil {
		return err
	}
	if before.Person != nil && in.forPeople() {
		if err := s.Store.UpdatePerson(ctx, who.ID, in.person(*before.Person)); err != nil {
			return err
		}
	}
	if _, err := s.announceUserByID(ctx, who.ID, in.changes(before)...); err != nil {
		return err
	}
	return s.auditHandle(ctx, before, names.Handle)
}

// newNames checks and gives handle and display name after the patch.
func (s *Service) newNames(ctx context.Context, before Account, in UpdateSelfInput) (Names, error) {
	handle, name := before.Handle, before.DisplayName
	in.Handle.apply(&handle)
	in.DisplayName.apply(&name)
	if handle != before.Handle {
		if err := s.claimHandle(ctx, handle, before.ID); err != nil {
			return Names{}, err
		}
	}
	if name != before.DisplayName {
		if err := s.checkDisplayName(ctx, name, before.ID); err != nil {
			return Names{}, err
		}
	}
	return s.rename(before, handle, name, true, s.now(ctx))
}

func (in UpdateSelfInput) person(p Person) Person {
	in.Locale.apply(&p.Locale)
	in.TimeZone.apply(&p.TimeZone)
	in.Title.apply(&p.Title)
	in.Pronouns.apply(&p.Pronouns)
	in.Bio.apply(&p.Bio)
	in.Status.apply(&p.Status)
	return p
}

// changes names for the event what a patch touched.
func (in UpdateSelfInput) changes(before Account) []string {
	var list []string
	if in.Handle.Set && in.Handle.Value != before.Handle {
		list = append(list, changeHandle)
	}
	if in.Status.Set {
		list = append(list, changeStatus)
	}
	if in.DisplayName.Set || in.Locale.Set || in.TimeZone.Set || in.Title.Set || in.Pronouns.Set || in.Bio.Set || len(list) == 0 {
		list = append(list, changeProfile)
	}
	return list
}

// auditHandle records a change of the handle; other parts of a profile are not audited.
func (s *Service) auditHandle(ctx context.Context, before Account, after string) error {
	if after == before.Handle {
		return nil
	}
	return s.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionSelfProfileUpdate), ResourceKind: string(authorize.ResourcePrincipal), ResourceID: before.ID,
		Details: map[string]any{"handle_before": before.Handle, "handle_after": after},
	})
}
