// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"strconv"
	"strings"

	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

func deref[T any](p *T) T {
	if p == nil {
		var none T
		return none
	}
	return *p
}

func changed[T any](p *T) app.Change[T] { return app.Change[T]{Set: p != nil, Value: deref(p)} }

// patched reads a member whose null means empty.
func patched(n jsontype.Nullable[string]) app.Change[string] {
	return app.Change[string]{Set: n.Set, Value: deref(n.Ptr())}
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// ifMatch reads the version of the header; anything but one of our tags matches nothing.
func ifMatch(header string) (int64, error) {
	version, err := strconv.ParseInt(strings.Trim(header, `"`), 10, 64)
	if err != nil {
		return 0, errs.New(errs.CodeVersionConflict, "This was changed meanwhile. Load it again and repeat your change.")
	}
	return version, nil
}

// position reads a cursor; the zero value is the beginning.
func position[T any](list string, c *rest.Cursor) (T, error) {
	var start T
	if c == nil || *c == "" {
		return start, nil
	}
	at, err := paging.Decode[T](list, *c)
	if err != nil {
		return start, errs.New(errs.CodeCursorInvalid, "Begin the list again without a cursor.").WithCause(err)
	}
	return at, nil
}

func cursor[T any](list string, at T) (*string, error) {
	c, err := paging.Encode(list, at)
	return &c, err
}

func deviceInfo(d rest.DeviceInfo) app.DeviceInfo {
	return app.DeviceInfo{Name: d.Name, Platform: string(d.Platform), Client: string(d.Client), ClientVersion: d.ClientVersion}
}

func loginResult(r app.LoginResult) rest.LoginResult {
	out := rest.LoginResult{
		Status: rest.LoginResultStatusOk, TokenType: rest.LoginResultTokenTypeDPoP,
		AccessToken: r.AccessToken, ExpiresInMs: r.ExpiresIn.Milliseconds(), RefreshToken: r.RefreshToken,
		RefreshExpiresAt: jsontype.At(r.RefreshExpiresAt),
		Session: rest.SessionTimes{
			ID: r.Session.ID, ExpiresAt: jsontype.At(r.Session.ExpiresAt), IdleExpiresAt: jsontype.At(r.Session.IdleExpiresAt),
		},
		Device: rest.DeviceRef{ID: r.Device.ID, Name: r.Device.Name, State: rest.DeviceState(r.Device.State)},
	}
	if r.Account != nil {
		entry := directoryEntry(app.Shown{Account: *r.Account, ShowEmail: true})
		out.Principal = &entry
	}
	if !r.StepUpUntil.IsZero() {
		until := jsontype.At(r.StepUpUntil)
		out.StepUpUntil = &until
	}
	if r.MustChangePassword {
		out.MustChangePassword = &r.MustChangePassword
	}
	return out
}

func directoryEntry(s app.Shown) rest.DirectoryEntry {
	e := app.EntryOf(s.Account)
	out := rest.DirectoryEntry{
		ID: e.ID, Kind: rest.PrincipalKind(e.Kind), Handle: e.Handle, DisplayName: e.DisplayName, Status: rest.PrincipalStatus(e.Status),
		Placeholder: e.Placeholder, Owner: e.Owner, Guest: e.Guest, Title: e.Title, Pronouns: e.Pronouns, Bio: e.Bio,
		TimeZone: e.TimeZone, Version: e.Version,
	}
	if s.Person == nil {
		return out
	}
	out.CustomStatus = customStatus(s.Person.Status)
	if s.ShowEmail && s.Person.Email != "" {
		out.Email = &s.Person.Email
	}
	return out
}

func customStatus(c *app.CustomStatus) *rest.CustomStatus {
	if c == nil {
		return nil
	}
	return &rest.CustomStatus{Emoji: c.Emoji, Text: c.Text, Until: jsontype.AtPtr(c.Until)}
}

func customStatusInput(c *rest.CustomStatusInput) *app.CustomStatus {
	if c == nil {
		return nil
	}
	return &app.CustomStatus{Emoji: c.Emoji.Ptr(), Text: c.Text, Until: c.Until.Ptr().Ptr()}
}

func self(v app.SelfView) rest.Self {
	out := rest.Self{DirectoryEntry: directoryEntry(app.Shown{Account: v.Account, ShowEmail: true})}
	if p := v.Account.Person; p != nil {
		out.EmailVerified, out.Locale = p.EmailVerified, p.Locale
		out.Login = &rest.LoginMethods{Password: p.HasPassword, Passkeys: p.Passkeys, Identities: p.Identities}
	}
	if s := v.Session; s != nil {
		out.Session = &rest.SelfSession{
			ID: s.ID, DeviceID: s.DeviceID.Ptr(), Driver: s.Driver, Kind: rest.SessionKind(s.Kind), AuthTime: jsontype.At(s.AuthTime),
			ExpiresAt: jsontype.At(s.ExpiresAt), IdleExpiresAt: jsontype.At(s.IdleExpiresAt),
		}
		if !v.StepUpUntil.IsZero() {
			until := jsontype.At(v.StepUpUntil)
			out.Session.StepUpUntil = &until
		}
	}
	return out
}

func user(s app.Shown) rest.User {
	out := rest.User{DirectoryEntry: directoryEntry(s), CreatedAt: jsontype.At(s.CreatedAt)}
	if p := s.Person; p != nil {
		out.EmailVerified, out.Locale = p.EmailVerified, p.Locale
		if s.ShowAdmin {
			out.LastLoginAt = jsontype.AtPtr(p.LastLoginAt)
		}
	}
	return out
}

func userCreated(s app.Shown, code *app.IssuedCode) rest.UserCreated {
	return rest.UserCreated{User: user(s), Enrollment: enrollment(code)}
}

func enrollment(code *app.IssuedCode) *rest.Enrollment {
	if code == nil {
		return nil
	}
	return &rest.Enrollment{Code: code.Code, URL: code.URL, ExpiresAt: jsontype.At(code.ExpiresAt)}
}

func userListItem(s app.Shown) rest.UserListItem {
	out := rest.UserListItem{DirectoryEntry: directoryEntry(s)}
	if s.ShowAdmin && s.Person != nil {
		out.LastLoginAt = jsontype.Null[jsontype.Time]()
		if at := s.Person.LastLoginAt; at != nil {
			out.LastLoginAt = jsontype.Of(jsontype.At(*at))
		}
	}
	return out
}

func session(v app.SessionView) rest.Session {
	out := rest.Session{
		ID: v.ID, Kind: rest.SessionKind(v.Kind), Driver: v.Driver, CreatedAt: jsontype.At(v.CreatedAt),
		LastSeenAt: jsontype.At(v.LastSeenAt), Current: v.Current, Network: rest.SessionNetworkOther, ViewAsBy: v.ViewAsBy.Ptr(),
	}
	if v.SameNetwork {
		out.Network = rest.SessionNetworkCurrent
	}
	if d := v.Device; d != nil {
		out.Device = &rest.DeviceRef{ID: d.ID, Name: d.Name, State: rest.DeviceState(d.State)}
	}
	return out
}

func (h *Handlers) token(t app.APIToken) rest.Token {
	out := rest.Token{
		ID: t.ID, PrincipalID: t.PrincipalID, Kind: rest.TokenKind(t.Kind), Name: t.Name, Hint: t.Hint, Scopes: t.Scopes,
		AllowedCidrs: make([]string, len(t.AllowedCIDRs)), CreatedBy: t.CreatedBy, CreatedAt: jsontype.At(t.CreatedAt),
		ExpiresAt: jsontype.AtPtr(t.ExpiresAt), LastUsedAt: jsontype.AtPtr(t.LastUsedAt), ExpiresSoon: t.ExpiresSoon(h.clock.Now()),
	}
	for i, p := range t.AllowedCIDRs {
		out.AllowedCidrs[i] = p.String()
	}
	return out
}
