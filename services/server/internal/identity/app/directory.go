// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var allKinds = []actor.Kind{actor.KindPerson, actor.KindAgent, actor.KindApp}

// Shown is an account with what the caller may see of it.
type Shown struct {
	Account
	// ShowEmail says that the address may be shown; ShowAdmin the same of the last login.
	ShowEmail, ShowAdmin bool
}

// viewer is how a caller sees the directory.
type viewer struct {
	who actor.Actor
	// administers: may read how others sign in, and with it what else is known of them.
	administers bool
	emailForAll bool
}

// viewer asks about nobody in particular, so one decision serves a whole list.
func (s *Service) viewer(ctx context.Context) (viewer, error) {
	administers, err := s.Authorizer.Allowed(ctx, authorize.ActionIdentityRead, onPrincipal(ids.ID{}))
	if err != nil {
		return viewer{}, err
	}
	visible, err := s.Settings.Bool(ctx, instance.SettingEmailVisible)
	return viewer{who: actor.From(ctx), administers: administers, emailForAll: visible}, err
}

func (v viewer) show(a Account) Shown {
	return Shown{Account: a, ShowEmail: v.administers || v.emailForAll || a.ID == v.who.ID, ShowAdmin: v.administers}
}

// administered is the answer to whoever was allowed to make or change the account: the right to
// that includes seeing all of it.
func administered(a Account) Shown { return Shown{Account: a, ShowEmail: true, ShowAdmin: true} }

// limited reports whether the caller sees only members she shares a place with; full
// members see everybody.
func (v viewer) limited() bool { return v.who.Kind != actor.KindPerson || v.who.Guest }

// ListUsersInput selects people.
type ListUsersInput struct {
	Status       identity.Status
	Owner, Guest *bool
	Query        string
	// After is the handle of the last person of the page before.
	After string
	Limit int
}

// ListUsers gives people by handle, and the handle to go on behind; empty at the end.
func (s *Service) ListUsers(ctx context.Context, in ListUsersInput) ([]Shown, string, error) {
	if _, err := s.Authorizer.Scope(ctx, authorize.ActionUserRead); err != nil {
		return nil, "", err
	}
	if in.Status == "" {
		in.Status = identity.StatusActive
	}
	shown, err := s.visible(ctx, AccountFilter{
		Kinds: []actor.Kind{actor.KindPerson}, Status: in.Status, Owner: in.Owner, Guest: in.Guest,
		Query: strings.ToLower(in.Query), After: in.After, Limit: in.Limit + 1,
	})
	if err != nil || len(shown) <= in.Limit {
		return shown, "", err
	}
	return shown[:in.Limit], shown[in.Limit-1].Handle, nil
}

// visible lists accounts by handle up to the limit of the filter, those that the caller may see
// alone: a page is full and no handle of somebody hidden says where the next one begins.
func (s *Service) visible(ctx context.Context, f AccountFilter) ([]Shown, error) {
	var out []Shown
	for {
		list, err := s.Store.ListAccounts(ctx, f)
		if err != nil {
			return nil, err
		}
		shown, err := s.show(ctx, list)
		if err != nil {
			return nil, err
		}
		out = append(out, shown...)
		if len(out) >= f.Limit || len(list) < f.Limit {
			return out[:min(len(out), f.Limit)], nil
		}
		f.After = list[len(list)-1].Handle
	}
}

// SearchDirectory finds active members by handle and name, best match first.
func (s *Service) SearchDirectory(ctx context.Context, query string, kinds []actor.Kind, limit int) ([]Shown, error) {
	if _, err := s.Authorizer.Scope(ctx, authorize.ActionUserRead); err != nil {
		return nil, err
	}
	if len(kinds) == 0 {
		kinds = allKinds
	}
	list, err := s.Store.SearchAccounts(ctx, strings.ToLower(strings.TrimPrefix(query, "@")), kinds, limit)
	if err != nil {
		return nil, err
	}
	return s.show(ctx, list)
}

// User reads a person; Member reads a principal of any kind.
func (s *Service) User(ctx context.Context, id ids.ID) (Shown, error) {
	shown, err := s.Member(ctx, id)
	if err == nil && shown.Person == nil {
		return Shown{}, errs.NotFound()
	}
	return shown, err
}

// Member reads a principal of any kind.
func (s *Service) Member(ctx context.Context, id ids.ID) (Shown, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return Shown{}, authorize.Absent(ctx, s.Authorizer, err, authorize.ActionUserRead, onPrincipal(id))
	}
	if err := s.Authorizer.Authorize(ctx, authorize.ActionUserRead, onPrincipal(id)); err != nil {
		return Shown{}, hidden(err)
	}
	v, err := s.viewer(ctx)
	return v.show(a), err
}

// MemberByHandle finds a principal of any kind by the handle it has or gave up and still
// holds.
func (s *Service) MemberByHandle(ctx context.Context, handle string) (Shown, error) {
	handle = domain.NormalLogin(handle)
	found, err := s.ByHandle(ctx, []string{handle})
	if err != nil {
		return Shown{}, err
	}
	holder, ok := found[handle]
	if !ok {
		return Shown{}, authorize.Absent(ctx, s.Authorizer, errs.NotFound(), authorize.ActionUserRead, onPrincipal(ids.ID{}))
	}
	return s.Member(ctx, holder.ID)
}

// show keeps what the caller may see. For full members that is everything; for guests,
// agents and apps the authorizer decides about each.
func (s *Service) show(ctx context.Context, list []Account) ([]Shown, error) {
	v, err := s.viewer(ctx)
	if err != nil {
		return nil, err
	}
	shown := make([]Shown, 0, len(list))
	for _, a := range list {
		if v.limited() && a.ID != v.who.ID {
			ok, err := s.Authorizer.Allowed(ctx, authorize.ActionUserRead, onPrincipal(a.ID))
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
		}
		shown = append(shown, v.show(a))
	}
	return shown, nil
}

// ByID implements identity.Directory.
func (s *Service) ByID(ctx context.Context, principals []ids.ID) (map[ids.ID]identity.Principal, error) {
	if len(principals) == 0 {
		return map[ids.ID]identity.Principal{}, nil
	}
	list, err := s.Store.AccountsByID(ctx, principals)
	if err != nil {
		return nil, err
	}
	found := make(map[ids.ID]identity.Principal, len(list))
	for _, a := range list {
		found[a.ID] = a.Principal()
	}
	return found, nil
}

// formerHandlesMax bounds how many handles of one call are looked up among former ones.
const formerHandlesMax = 20

// ByHandle implements identity.Directory. A handle that somebody gave up and still holds
// leads to her.
func (s *Service) ByHandle(ctx context.Context, handles []string) (map[string]identity.Principal, error) {
	found := make(map[string]identity.Principal, len(handles))
	if len(handles) == 0 {
		return found, nil
	}
	list, err := s.Store.AccountsByHandle(ctx, handles)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		found[a.Handle] = a.Principal()
	}
	looked := 0
	for _, handle := range handles {
		if _, ok := found[handle]; ok || looked >= formerHandlesMax {
			continue
		}
		looked++
		id, _, ok, err := s.Store.HandleHolder(ctx, handle, s.now(ctx))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		a, err := s.account(ctx, id)
		if err != nil {
			return nil, err
		}
		found[handle] = a.Principal()
	}
	return found, nil
}

// Visible implements identity.Directory.
func (s *Service) Visible(ctx context.Context, limit int) ([]identity.Principal, bool, error) {
	shown, complete, err := s.VisibleShown(ctx, limit)
	if err != nil {
		return nil, false, err
	}
	out := make([]identity.Principal, len(shown))
	for i, a := range shown {
		out[i] = a.Principal()
	}
	return out, complete, nil
}

// VisibleShown lists the active principals that the caller may see, by handle and at most
// limit; complete is false when there are more.
func (s *Service) VisibleShown(ctx context.Context, limit int) (list []Shown, complete bool, err error) {
	list, err = s.visible(ctx, AccountFilter{Kinds: allKinds, Status: identity.StatusActive, Limit: limit + 1})
	if complete = len(list) <= limit; !complete {
		list = list[:limit]
	}
	return list, complete, err
}
