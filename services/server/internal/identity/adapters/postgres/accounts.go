// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// AccountsByID implements app.Accounts.
func (s *Store) AccountsByID(ctx context.Context, principals []ids.ID) ([]app.Account, error) {
	rows, err := s.read(ctx).AccountsByID(ctx, principals)
	if err != nil {
		return nil, fmt.Errorf("read accounts: %w", err)
	}
	return accounts(rows)
}

// AccountsByHandle implements app.Accounts.
func (s *Store) AccountsByHandle(ctx context.Context, handles []string) ([]app.Account, error) {
	rows, err := s.read(ctx).AccountsByHandle(ctx, handles)
	if err != nil {
		return nil, fmt.Errorf("read accounts by handle: %w", err)
	}
	list := make([]sqlcgen.AccountsByIDRow, len(rows))
	for i, r := range rows {
		list[i] = sqlcgen.AccountsByIDRow(r)
	}
	return accounts(list)
}

// ListAccounts implements app.Accounts.
func (s *Store) ListAccounts(ctx context.Context, f app.AccountFilter) ([]app.Account, error) {
	rows, err := s.read(ctx).AccountsList(ctx, sqlcgen.AccountsListParams{
		After: f.After, Kinds: kinds(f.Kinds), Status: string(f.Status), Owner: f.Owner, Guest: f.Guest,
		Query: escapeLike(f.Query), LimitRows: int32(f.Limit),
	})
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	list := make([]sqlcgen.AccountsByIDRow, len(rows))
	for i, r := range rows {
		list[i] = sqlcgen.AccountsByIDRow(r)
	}
	return accounts(list)
}

// SearchAccounts implements app.Accounts.
func (s *Store) SearchAccounts(ctx context.Context, query string, of []actor.Kind, limit int) ([]app.Account, error) {
	rows, err := s.read(ctx).AccountsSearch(ctx, sqlcgen.AccountsSearchParams{
		Kinds: kinds(of), Pattern: escapeLike(query), Query: query, LimitRows: int32(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("search accounts: %w", err)
	}
	list := make([]sqlcgen.AccountsByIDRow, len(rows))
	for i, r := range rows {
		list[i] = sqlcgen.AccountsByIDRow(r)
	}
	return accounts(list)
}

// escapeLike takes the meaning out of wildcards.
func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

func kinds(list []actor.Kind) []string {
	out := make([]string, len(list))
	for i, k := range list {
		out[i] = string(k)
	}
	return out
}

func accounts(rows []sqlcgen.AccountsByIDRow) ([]app.Account, error) {
	out := make([]app.Account, len(rows))
	for i, r := range rows {
		a, err := account(r)
		if err != nil {
			return nil, err
		}
		out[i] = a
	}
	return out, nil
}

func account(r sqlcgen.AccountsByIDRow) (app.Account, error) {
	a := app.Account{
		ID: r.ID, Kind: actor.Kind(r.Kind), Status: identity.Status(r.Status), Handle: r.Handle, DisplayName: r.DisplayName,
		HandleChangedAt: timeOr(r.HandleChangedAt), DisabledReason: textOr(r.DisabledReason), Version: r.Version, CreatedAt: r.CreatedAt,
		Owner: r.Owner,
	}
	if err := json.Unmarshal(r.FormerHandles, &a.FormerHandles); err != nil {
		return app.Account{}, fmt.Errorf("read former handles: %w", err)
	}
	if !r.Person {
		return a, nil
	}
	a.Person = &app.Person{
		Email: r.Email, EmailVerified: r.EmailVerified, Guest: r.Guest, Locale: r.Locale, TimeZone: r.TimeZone,
		Title: r.Title, Pronouns: r.Pronouns, Bio: r.Bio, LastLoginAt: r.LastLoginAt, HasPassword: r.HasPassword,
		Passkeys: int(r.Passkeys), Identities: int(r.Identities),
	}
	if r.StatusText != nil {
		a.Person.Status = &app.CustomStatus{Emoji: r.StatusEmoji, Text: *r.StatusText, Until: r.StatusUntil}
	}
	return a, nil
}

// LockPrincipal implements app.Accounts.
func (s *Store) LockPrincipal(ctx context.Context, id ids.ID) (bool, error) {
	_, err := s.read(ctx).PrincipalLock(ctx, id)
	return absent(err, "lock a principal")
}

// SharePrincipal implements app.Accounts.
func (s *Store) SharePrincipal(ctx context.Context, id ids.ID) (bool, error) {
	status, err := s.read(ctx).PrincipalShare(ctx, id)
	found, err := absent(err, "hold a principal")
	return found && status == string(identity.StatusActive), err
}

// InsertAccount implements app.Accounts. It answers at once, so that a taken handle or
// address is known where it was asked for.
func (s *Store) InsertAccount(ctx context.Context, a app.NewAccount) error {
	err := write(ctx, pg.MapError(violated)).PrincipalInsert(ctx, sqlcgen.PrincipalInsertParams{
		ID: a.ID, Kind: string(a.Kind), Handle: a.Handle, DisplayName: a.DisplayName,
		SearchText: domain.SearchText(a.Handle, a.DisplayName), CreatedBy: a.CreatedBy.Ptr(), CreatedAt: a.CreatedAt,
	})
	if err != nil {
		return err
	}
	if a.Kind == actor.KindPerson {
		err = write(ctx, pg.MapError(violated)).UserInsert(ctx, sqlcgen.UserInsertParams{
			PrincipalID: a.ID, Email: textPtr(a.Email), Guest: a.Guest, Locale: a.Locale, TimeZone: a.TimeZone,
		})
		if err != nil {
			return err
		}
	}
	return pg.Flush(ctx)
}

// UpdateNames implements app.Accounts.
func (s *Store) UpdateNames(ctx context.Context, id ids.ID, n app.Names) error {
	former := n.Former
	if former == nil {
		former = []domain.FormerHandle{}
	}
	raw, err := json.Marshal(former)
	if err != nil {
		return fmt.Errorf("encode former handles: %w", err)
	}
	return write(ctx, pg.MapError(violated), expectOne("rename a principal")).PrincipalUpdateNames(ctx, sqlcgen.PrincipalUpdateNamesParams{
		ID: id, Handle: n.Handle, DisplayName: n.DisplayName, SearchText: domain.SearchText(n.Handle, n.DisplayName),
		FormerHandles: raw, HandleChangedAt: timePtr(n.HandleChangedAt),
	})
}

// UpdatePerson implements app.Accounts.
func (s *Store) UpdatePerson(ctx context.Context, id ids.ID, p app.Person) error {
	params := sqlcgen.UserUpdateProfileParams{
		PrincipalID: id, Locale: p.Locale, TimeZone: p.TimeZone, Title: p.Title, Pronouns: p.Pronouns, Bio: p.Bio,
	}
	if p.Status != nil {
		params.StatusEmoji, params.StatusText, params.StatusUntil = p.Status.Emoji, &p.Status.Text, p.Status.Until
	}
	return write(ctx, expectOne("change a profile")).UserUpdateProfile(ctx, params)
}

// UpdateAdministered implements app.Accounts.
func (s *Store) UpdateAdministered(ctx context.Context, id ids.ID, p app.Person) error {
	return write(ctx, pg.MapError(violated), expectOne("change a person")).UserUpdateAdministered(ctx, sqlcgen.UserUpdateAdministeredParams{
		PrincipalID: id, Email: textPtr(p.Email), EmailVerified: p.EmailVerified, Guest: p.Guest, Title: p.Title,
	})
}

// SetEmail implements app.Accounts.
func (s *Store) SetEmail(ctx context.Context, id ids.ID, email string) error {
	return write(ctx, pg.MapError(violated)).UserSetEmail(ctx, textPtr(email), id)
}

// NoteLogin implements app.Accounts.
func (s *Store) NoteLogin(ctx context.Context, id ids.ID, at time.Time) error {
	return write(ctx).UserLoggedIn(ctx, at, id)
}

// Disable implements app.Accounts.
func (s *Store) Disable(ctx context.Context, id, by ids.ID, reason string, at time.Time) error {
	return write(ctx, expectOne("disable a principal")).PrincipalDisable(ctx, sqlcgen.PrincipalDisableParams{
		ID: id, DisabledBy: by.Ptr(), Reason: reason, At: at,
	})
}

// Enable implements app.Accounts.
func (s *Store) Enable(ctx context.Context, id ids.ID) error {
	return write(ctx, expectOne("enable a principal")).PrincipalEnable(ctx, id)
}

// LockHandle implements app.Accounts.
func (s *Store) LockHandle(ctx context.Context, handle string) error {
	return write(ctx).HandleLock(ctx, handle)
}

// HandleHolder implements app.Accounts.
func (s *Store) HandleHolder(ctx context.Context, handle string, at time.Time) (ids.ID, bool, bool, error) {
	row, err := s.read(ctx).HandleHolder(ctx, handle, at)
	found, err := absent(err, "find who has a handle")
	return row.ID, row.Present, found, err
}

// LockOwners implements app.Accounts.
func (s *Store) LockOwners(ctx context.Context) ([]ids.ID, error) {
	list, err := s.read(ctx).OwnersLock(ctx)
	return list, failed(err, "lock the owners")
}

// ActiveOwnerIDs implements app.Accounts and app.SourceReads.
func (s *Store) ActiveOwnerIDs(ctx context.Context) ([]ids.ID, error) {
	list, err := s.read(ctx).OwnersActive(ctx)
	return list, failed(err, "read the owners")
}

// OwnersAbleToLogin implements app.Accounts.
func (s *Store) OwnersAbleToLogin(ctx context.Context) (bool, error) {
	able, err := s.read(ctx).OwnersAbleToLogin(ctx)
	return able, failed(err, "read how owners sign in")
}

// OwnersShutOut implements app.Accounts.
func (s *Store) OwnersShutOut(ctx context.Context, d domain.Drivers) (bool, error) {
	shut, err := s.read(ctx).OwnersShutOut(ctx, d.Local, d.Passkey)
	return shut, failed(err, "read how owners sign in")
}

// OwnerNames implements app.Accounts.
func (s *Store) OwnerNames(ctx context.Context) (map[ids.ID]string, error) {
	rows, err := s.read(ctx).OwnerNames(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the names of owners: %w", err)
	}
	names := make(map[ids.ID]string, len(rows))
	for _, r := range rows {
		names[r.ID] = r.DisplayName
	}
	return names, nil
}

// AddOwner implements app.Accounts.
func (s *Store) AddOwner(ctx context.Context, id, by ids.ID, at time.Time) error {
	return write(ctx).OwnerInsert(ctx, id, by.Ptr(), at)
}

// RemoveOwner implements app.Accounts.
func (s *Store) RemoveOwner(ctx context.Context, id ids.ID) error {
	return write(ctx).OwnerDelete(ctx, id)
}

// RemoveOtherOwners implements app.Accounts.
func (s *Store) RemoveOtherOwners(ctx context.Context, id ids.ID) error {
	return write(ctx).OwnersDeleteOthers(ctx, id)
}

// PrincipalStates implements app.SourceReads.
func (s *Store) PrincipalStates(ctx context.Context, principals []ids.ID) ([]authz.Principal, error) {
	rows, err := s.read(ctx).PrincipalStates(ctx, principals)
	if err != nil {
		return nil, fmt.Errorf("read principals: %w", err)
	}
	out := make([]authz.Principal, len(rows))
	for i, r := range rows {
		out[i] = authz.Principal{
			ID: r.ID, Kind: actor.Kind(r.Kind), Active: r.Status == string(identity.StatusActive), Owner: r.Owner, Guest: r.Guest,
		}
	}
	return out, nil
}

// ActivePeople implements app.SourceReads.
func (s *Store) ActivePeople(ctx context.Context) ([]authz.Principal, error) {
	rows, err := s.read(ctx).PeopleActive(ctx)
	if err != nil {
		return nil, fmt.Errorf("read active people: %w", err)
	}
	out := make([]authz.Principal, len(rows))
	for i, r := range rows {
		out[i] = authz.Principal{ID: r.ID, Kind: actor.KindPerson, Active: true, Owner: r.Owner, Guest: r.Guest}
	}
	return out, nil
}

// RequireSession implements app.SourceReads.
func (s *Store) RequireSession(ctx context.Context, session, principal ids.ID, at time.Time, ended error) error {
	return write(ctx, pg.ExpectRows(1, ended)).SessionAlive(ctx, session, principal, at)
}

// RequireToken implements app.SourceReads.
func (s *Store) RequireToken(ctx context.Context, token, principal ids.ID, at time.Time, ended error) error {
	return write(ctx, pg.ExpectRows(1, ended)).TokenAlive(ctx, token, principal, at)
}
