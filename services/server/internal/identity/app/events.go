// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The durable events of identity.
const (
	EventUserUpdated    = "user.updated"
	EventSessionRevoked = "session.revoked"
	EventDevicePending  = "device.pending"
)

// What changed about a person, for user.updated.
const (
	changeCreated  = "created"
	changeProfile  = "profile"
	changeHandle   = "handle"
	changeStatus   = "custom_status"
	changeGuest    = "guest"
	changeOwner    = "owner"
	changeDisabled = "disabled"
	changeEnabled  = "enabled"
)

// Entry is a member as everybody sees it: the schema DirectoryEntry. It is written here
// because the event carries it; a test holds it equal to the contract.
type Entry struct {
	ID           ids.ID       `json:"id"`
	Kind         string       `json:"kind"`
	Handle       string       `json:"handle"`
	DisplayName  string       `json:"display_name"`
	Status       string       `json:"status"`
	Placeholder  bool         `json:"placeholder"`
	Owner        *bool        `json:"owner"`
	Guest        *bool        `json:"guest"`
	Title        *string      `json:"title"`
	Pronouns     *string      `json:"pronouns"`
	Bio          *string      `json:"bio"`
	TimeZone     *string      `json:"time_zone"`
	CustomStatus *EntryStatus `json:"custom_status"`
	Avatar       *struct{}    `json:"avatar"`
	Version      int64        `json:"version"`
}

// EntryStatus is the schema CustomStatus.
type EntryStatus struct {
	Emoji *string `json:"emoji"`
	Text  string  `json:"text"`
	Until *string `json:"until"`
}

// SelfEntry is the schema Self as an event can carry it: which session reads it is not
// known, so session is null.
type SelfEntry struct {
	Entry
	Email         *string    `json:"email,omitempty"`
	EmailVerified bool       `json:"email_verified"`
	Locale        string     `json:"locale"`
	Login         *SelfLogin `json:"login"`
	Session       *struct{}  `json:"session"`
}

// SelfLogin is the schema LoginMethods.
type SelfLogin struct {
	Password   bool `json:"password"`
	Passkeys   int  `json:"passkeys"`
	Identities int  `json:"identities"`
}

type userUpdatedPayload struct {
	Change []string   `json:"change"`
	User   Entry      `json:"user"`
	Self   *SelfEntry `json:"self,omitempty"`
}

type sessionRevokedPayload struct {
	SessionID ids.ID  `json:"session_id"`
	DeviceID  *ids.ID `json:"device_id"`
	Kind      string  `json:"kind"`
	Reason    string  `json:"reason"`
	By        string  `json:"by"`
}

// eventTime is how times stand in payloads: UTC with milliseconds.
const eventTime = "2006-01-02T15:04:05.000Z"

// EntryOf shows an account as everybody may see it, without its e-mail address.
func EntryOf(a Account) Entry {
	e := Entry{
		ID: a.ID, Kind: string(a.Kind), Handle: a.Handle, DisplayName: a.DisplayName, Status: string(a.Status),
		Placeholder: a.Placeholder(), Version: a.Version,
	}
	if p := a.Person; p != nil {
		owner, guest := a.Owner, p.Guest
		e.Owner, e.Guest = &owner, &guest
		e.Title, e.Pronouns, e.Bio, e.TimeZone = optional(p.Title), optional(p.Pronouns), optional(p.Bio), optional(p.TimeZone)
		if p.Status != nil {
			e.CustomStatus = &EntryStatus{Emoji: p.Status.Emoji, Text: p.Status.Text, Until: formatTime(p.Status.Until)}
		}
	}
	return e
}

// SelfEntryOf shows an account as its person sees it; nil for agents and apps.
func SelfEntryOf(a Account) *SelfEntry {
	if a.Person == nil {
		return nil
	}
	return &SelfEntry{
		Entry: EntryOf(a), Email: optional(a.Person.Email), EmailVerified: a.Person.EmailVerified, Locale: a.Person.Locale,
		Login: &SelfLogin{Password: a.Person.HasPassword, Passkeys: a.Person.Passkeys, Identities: a.Person.Identities},
	}
}

// announceUser appends user.updated twice: for everybody who may read people, and for the
// person with what only she sees. Agents and apps have events of their own modules.
func (s *Service) announceUser(ctx context.Context, a Account, change ...string) error {
	if a.Kind != actor.KindPerson {
		return nil
	}
	resource := eventlog.Resource{Type: "user", ID: a.ID}
	return s.Events.Append(ctx,
		eventlog.Event{Type: EventUserUpdated, Resource: resource, Payload: userUpdatedPayload{Change: change, User: EntryOf(a)}},
		eventlog.Event{
			Type: EventUserUpdated, Resource: resource, PrincipalID: a.ID,
			Payload: userUpdatedPayload{Change: change, User: EntryOf(a), Self: SelfEntryOf(a)},
		})
}

// announceUserByID reads the person as the unit leaves her and appends user.updated.
func (s *Service) announceUserByID(ctx context.Context, id ids.ID, change ...string) (Account, error) {
	a, err := s.account(ctx, id)
	if err != nil {
		return Account{}, err
	}
	return a, s.announceUser(ctx, a, change...)
}

func sessionRevoked(r SessionRef, why endBy) eventlog.Event {
	return eventlog.Event{
		Type: EventSessionRevoked, PrincipalID: r.PrincipalID, Resource: eventlog.Resource{Type: "session", ID: r.ID},
		Payload: sessionRevokedPayload{SessionID: r.ID, DeviceID: r.DeviceID.Ptr(), Kind: r.Kind, Reason: why.reason, By: why.by},
	}
}

func deviceEvent(d Device, to ids.ID, payload devicePendingPayload) eventlog.Event {
	return eventlog.Event{
		Type: EventDevicePending, PrincipalID: to, Resource: eventlog.Resource{Type: "device", ID: d.ID}, Payload: payload,
	}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func formatTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := t.UTC().Format(eventTime)
	return &text
}

// statusOf is the state in which other modules see a principal.
func statusOf(active bool) identity.Status {
	if active {
		return identity.StatusActive
	}
	return identity.StatusDisabled
}
