// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/netip"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Account is a principal as it is stored, with the person's part for people.
type Account struct {
	ID              ids.ID
	Kind            actor.Kind
	Status          identity.Status
	Handle          string
	DisplayName     string
	FormerHandles   []domain.FormerHandle
	HandleChangedAt time.Time
	DisabledReason  string
	Version         int64
	CreatedAt       time.Time
	Owner           bool
	// Person is nil for agents and apps.
	Person *Person
}

// Person is what only people have.
type Person struct {
	Email                string
	EmailVerified, Guest bool
	Locale, TimeZone     string
	Title, Pronouns, Bio string
	Status               *CustomStatus
	LastLoginAt          *time.Time
	HasPassword          bool
	// Passkeys is the number of living ones, Identities that at providers which are enabled.
	Passkeys, Identities int
}

// CustomStatus is what a person says about the present. Readers drop it after Until.
type CustomStatus struct {
	Emoji *string
	Text  string
	Until *time.Time
}

// Principal is the account as other modules see it.
func (a Account) Principal() identity.Principal {
	p := identity.Principal{
		ID: a.ID, Kind: a.Kind, Status: a.Status, Handle: a.Handle, DisplayName: a.DisplayName, Owner: a.Owner, Version: a.Version,
	}
	if a.Person != nil {
		p.Guest, p.Locale, p.TimeZone = a.Person.Guest, a.Person.Locale, a.Person.TimeZone
	}
	return p
}

// Placeholder reports whether the account came with an import and was never used.
func (a Account) Placeholder() bool {
	return a.Status == identity.StatusDisabled && a.DisabledReason == reasonImported
}

// reasonImported marks accounts that an import made for authors who are not members.
const reasonImported = "imported"

// NewAccount is a principal to be stored.
type NewAccount struct {
	ID                  ids.ID
	Kind                actor.Kind
	Handle, DisplayName string
	CreatedBy           ids.ID
	CreatedAt           time.Time
	// The rest is for people.
	Email            string
	Guest            bool
	Locale, TimeZone string
}

// Names are handle and display name with what a rename leaves behind.
type Names struct {
	Handle, DisplayName string
	Former              []domain.FormerHandle
	HandleChangedAt     time.Time
}

// AccountFilter selects accounts of a list.
type AccountFilter struct {
	Kinds        []actor.Kind
	Status       identity.Status
	Owner, Guest *bool
	// Query is folded and matches anywhere in handle and name; empty for all.
	Query string
	// After is the handle of the last account of the page before.
	After string
	Limit int
}

// Candidate is whom a login name means, with what proves her.
type Candidate struct {
	PrincipalID ids.ID
	Active      bool
	// PasswordHash is empty without a password.
	PasswordHash string
	Failures     domain.Failures
	MustChange   bool
	// KnownDevice says that the key of the proof belongs to an active device of hers.
	KnownDevice bool
}

// Code is a stored enrollment code and whom it is for.
type Code struct {
	ID, PrincipalID            ids.ID
	Status                     identity.Status
	Handle, DisplayName, Email string
	domain.EnrollmentCode
}

// DeviceInfo is how a client introduces itself. It is a claim, shown to people and never
// decided on.
type DeviceInfo struct {
	Name          string `json:"name"`
	Platform      string `json:"platform"`
	Client        string `json:"client"`
	ClientVersion string `json:"client_version"`
}

// Drivers and purposes of login flows.
const (
	DriverLocal      = "local"
	DriverPasskey    = "passkey"
	DriverEnrollment = "enrollment"
	purposeLogin     = "login"
	purposeStepUp    = "step_up"
)

// The states in which a flow may be completed: by a proof, or by the device that was approved.
const (
	flowOpen    = "open"
	flowWaiting = "device_pending"
)

// Flow is a login or step-up that has begun.
type Flow struct {
	ID               ids.ID
	Driver, Purpose  string
	PrincipalID      ids.ID
	SessionID        ids.ID
	EnrollmentCodeID ids.ID
	// DeviceID is set while the device of the flow waits for approval.
	DeviceID ids.ID
	// AMR and ProvedAt are how and when the person was proven; ProvedAt is zero for now.
	AMR       []string
	ProvedAt  time.Time
	JKT       domain.Thumbprint
	Device    DeviceInfo
	State     string
	Attempts  int
	CreatedAt time.Time
	ExpiresAt time.Time
	// By is set for a flow that goes by a provider.
	By ExternalFlow
}

// The states of devices.
const (
	devicePending = "pending"
	deviceActive  = "active"
	deviceRevoked = "revoked"
)

// Device is a device of a principal.
type Device struct {
	ID, PrincipalID ids.ID
	DeviceInfo
	State string
	// PendingUntil, FlowID and FlowKey are set while the device waits for approval.
	PendingUntil time.Time
	FlowID       ids.ID
	FlowKey      domain.Thumbprint
	// ApprovedVia is empty until the device is active.
	ApprovedVia  domain.DeviceApproval
	RevokeReason string
	LastSeenAt   time.Time
	// Network is the pseudonym of the address of the last use.
	Network   string
	CreatedAt time.Time
	Version   int64
}

// waits reports whether somebody may still approve the device.
func (d Device) waits(now time.Time) bool {
	return d.State == devicePending && !d.FlowID.IsZero() && now.Before(d.PendingUntil)
}

// VerificationCode is what the device shows while it waits; empty afterwards.
func (d Device) VerificationCode() string {
	if d.State != devicePending || d.FlowID.IsZero() {
		return ""
	}
	return domain.VerificationCode(d.FlowID, d.FlowKey)
}

// NewDevice is a device to be stored.
type NewDevice struct {
	ID, PrincipalID ids.ID
	Info            DeviceInfo
	// ApprovedVia makes the device active at once; without it the device waits until
	// PendingUntil.
	ApprovedVia  domain.DeviceApproval
	ApprovedBy   ids.ID
	PendingUntil time.Time
	// PickedUp says that its session starts with it.
	PickedUp bool
	JWK      []byte
	JKT      domain.Thumbprint
	Network  string
	At       time.Time
}

// DeviceExpiry are the moments by which devices expire.
type DeviceExpiry struct{ UnusedBefore, Now, UncollectedBefore time.Time }

// DeviceFilter selects devices of a person, newest first.
type DeviceFilter struct {
	PrincipalID ids.ID
	// State is empty for all that are not revoked.
	State  string
	Before ids.ID
	Limit  int
}

// Session is a stored session.
type Session struct {
	ID, PrincipalID, DeviceID ids.ID
	// ProviderID is who proved the person, zero for her own credentials. It is only written.
	ProviderID ids.ID
	// ParentID is set for a session that ends with another.
	ParentID                 ids.ID
	Kind, Driver             string
	AMR                      []string
	AuthTime                 time.Time
	StepUpAt                 time.Time
	Epoch                    int
	JKT                      domain.Thumbprint
	IdleExpiresAt, ExpiresAt time.Time
	Ended                    bool
}

// Live reports whether the session may still be used.
func (s Session) Live(now time.Time) bool {
	return !s.Ended && now.Before(s.IdleExpiresAt) && now.Before(s.ExpiresAt)
}

// SessionRef is what ending a session needs to know of it.
type SessionRef struct {
	ID, PrincipalID, DeviceID, ParentID ids.ID
	Kind                                string
}

// ListedSession is a session in the list of its person.
type ListedSession struct {
	ID                    ids.ID
	Kind, Driver          string
	CreatedAt, LastSeenAt time.Time
	Device                *Device
	// Network is the pseudonym of the address of the last use; the list shows only
	// whether it is the caller's.
	Network  string
	ViewAsBy ids.ID
}

// SessionCredential is what authentication reads of a session in one statement.
type SessionCredential struct {
	Session       Session
	LastSeenAt    time.Time
	PrincipalKind actor.Kind
	Active        bool
	Owner, Guest  bool
	// DeviceActive is true for sessions without a device.
	DeviceActive bool
	// ViewedBy is the owner behind a session of kind view_as. Bound is false when the parent
	// of a session has ended, or when that owner is none any more.
	ViewedBy ids.ID
	Bound    bool
}

// TokenCredential is what authentication reads of an API token in one statement.
type TokenCredential struct {
	ID, PrincipalID ids.ID
	Scopes          []string
	AllowedCIDRs    []netip.Prefix
	ExpiresAt       time.Time
	LastUsedAt      time.Time
	Revoked         bool
	PrincipalKind   actor.Kind
	Active          bool
	Owner, Guest    bool
}

// APIToken is a token in lists. Its secret is stored nowhere.
type APIToken struct {
	ID, PrincipalID ids.ID
	Kind            string
	Name, Hint      string
	Scopes          []string
	AllowedCIDRs    []netip.Prefix
	ExpiresAt       *time.Time
	CreatedBy       ids.ID
	CreatedAt       time.Time
	LastUsedAt      *time.Time
	Revoked         bool
}

// Family is the family of a presented refresh token, before its lock.
type Family struct {
	ID, SessionID, PrincipalID ids.ID
	JKT                        domain.Thumbprint
}

// Use is one use of a credential, to be noted behind the request.
type Use struct {
	// SessionID and DeviceID, or TokenID.
	SessionID, DeviceID, TokenID ids.ID
	At                           time.Time
	Network                      string
}
