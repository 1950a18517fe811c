// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Store keeps the rows of identity. Reads see the running unit and work outside one too;
// writes and locks need a unit. Absence is told by a boolean, never by an error. The
// adapter postgres implements it.
type Store interface {
	Accounts
	Credentials
	Passkeys
	Flows
	Devices
	Pairings
	Sessions
	RefreshTokens
	APITokens
	Retention
	SourceReads
	ProviderStore
}

// Accounts are principals, people and owners.
type Accounts interface {
	// AccountsByID and AccountsByHandle leave out what they do not find.
	AccountsByID(ctx context.Context, principals []ids.ID) ([]Account, error)
	AccountsByHandle(ctx context.Context, handles []string) ([]Account, error)
	// ListAccounts is ordered by handle.
	ListAccounts(ctx context.Context, f AccountFilter) ([]Account, error)
	// SearchAccounts finds active accounts, best match first.
	SearchAccounts(ctx context.Context, query string, kinds []actor.Kind, limit int) ([]Account, error)
	// LockPrincipal keeps the row until the unit ends; false when there is none.
	LockPrincipal(ctx context.Context, id ids.ID) (bool, error)
	// SharePrincipal keeps the row from changing and tells whether it is active.
	SharePrincipal(ctx context.Context, id ids.ID) (active bool, err error)
	InsertAccount(ctx context.Context, a NewAccount) error
	UpdateNames(ctx context.Context, id ids.ID, n Names) error
	UpdatePerson(ctx context.Context, id ids.ID, p Person) error
	// UpdateAdministered writes what owners change of a person: address, guest and title.
	UpdateAdministered(ctx context.Context, id ids.ID, p Person) error
	SetEmail(ctx context.Context, id ids.ID, email string) error
	NoteLogin(ctx context.Context, id ids.ID, at time.Time) error
	Disable(ctx context.Context, id, by ids.ID, reason string, at time.Time) error
	Enable(ctx context.Context, id ids.ID) error
	// LockHandle makes decisions about the handle serial; several are taken ascending.
	LockHandle(ctx context.Context, handle string) error
	// HandleHolder is the principal that has the handle or still holds it.
	HandleHolder(ctx context.Context, handle string, at time.Time) (id ids.ID, present, found bool, err error)
	// LockOwners locks all owners, ascending, and lists them.
	LockOwners(ctx context.Context) ([]ids.ID, error)
	ActiveOwnerIDs(ctx context.Context) ([]ids.ID, error)
	OwnersAbleToLogin(ctx context.Context) (bool, error)
	// OwnersShutOut tells whether an active owner has no way in through the drivers.
	OwnersShutOut(ctx context.Context, d domain.Drivers) (bool, error)
	OwnerNames(ctx context.Context) (map[ids.ID]string, error)
	AddOwner(ctx context.Context, id, by ids.ID, at time.Time) error
	RemoveOwner(ctx context.Context, id ids.ID) error
	RemoveOtherOwners(ctx context.Context, id ids.ID) error
}

// Credentials are passwords and enrollment codes.
type Credentials interface {
	// LoginCandidate always gives one; an unknown name gives the zero Candidate.
	LoginCandidate(ctx context.Context, login string, key domain.Thumbprint) (Candidate, error)
	// PasswordHash is empty without a password.
	PasswordHash(ctx context.Context, principal ids.ID) (hash string, failures domain.Failures, err error)
	SetPassword(ctx context.Context, principal ids.ID, hash string, at time.Time) error
	// Rehash replaces a hash by a stronger one of the same password, unless it changed.
	Rehash(ctx context.Context, principal ids.ID, oldHash, newHash string) error
	SetFailures(ctx context.Context, principal ids.ID, f domain.Failures) error
	DeletePassword(ctx context.Context, principal ids.ID) error

	CodeByHash(ctx context.Context, hash [32]byte) (c Code, found bool, err error)
	CodeByID(ctx context.Context, id ids.ID) (c Code, found bool, err error)
	InsertCode(ctx context.Context, c Code, hash [32]byte, by ids.ID, at time.Time) error
	RevokeCodes(ctx context.Context, principal ids.ID, at time.Time) error
	RevokeCodesFor(ctx context.Context, purpose domain.CodePurpose, at time.Time) error
	// RedeemCode is false when somebody was faster or the code is over.
	RedeemCode(ctx context.Context, id ids.ID, at time.Time) (bool, error)
}

// Flows are logins under way.
type Flows interface {
	InsertFlow(ctx context.Context, f Flow) error
	FlowByID(ctx context.Context, id ids.ID) (f Flow, found bool, err error)
	// ConsumeFlow is false when the flow was completed or failed before.
	ConsumeFlow(ctx context.Context, id ids.ID) (bool, error)
	// HoldFlow keeps a flow that was consumed in the running unit until its device is
	// approved, or until it expires.
	HoldFlow(ctx context.Context, f Flow) error
	// ExtendFlow moves the end of a flow whose device was approved.
	ExtendFlow(ctx context.Context, id ids.ID, expires time.Time) error
	// CollectFlow is ConsumeFlow for a flow that was held.
	CollectFlow(ctx context.Context, id ids.ID) (bool, error)
	// CountAttempt notes a wrong attempt and ends the flow with the last allowed one.
	CountAttempt(ctx context.Context, id ids.ID, maxAttempts int) error
	DeleteExpiredFlows(ctx context.Context, before time.Time, batch int) (int, error)
}

// Devices are devices and their keys.
type Devices interface {
	DeviceByKey(ctx context.Context, key domain.Thumbprint) (d Device, found bool, err error)
	DeviceByID(ctx context.Context, id ids.ID) (d Device, found bool, err error)
	ListDevices(ctx context.Context, f DeviceFilter) ([]Device, error)
	// LockDevices locks the living devices of a principal, ascending.
	LockDevices(ctx context.Context, principal ids.ID) ([]Device, error)
	// InsertDevice fails with conflict (device_key_in_use) when the key lives elsewhere.
	InsertDevice(ctx context.Context, d NewDevice) error
	IntroduceDevice(ctx context.Context, id ids.ID, info DeviceInfo, network string, at time.Time) error
	RenameDevice(ctx context.Context, id ids.ID, name string) error
	// ApproveDevice makes a waiting device active.
	ApproveDevice(ctx context.Context, id, by ids.ID, via domain.DeviceApproval, at time.Time) error
	// PickUpDevice notes that the device has come for its session.
	PickUpDevice(ctx context.Context, id ids.ID, at time.Time) error
	// RevokeDevices also retires the keys.
	RevokeDevices(ctx context.Context, devices []ids.ID, reason string, at time.Time) error
	// ExpiredDevices are those that nobody has used for too long, that waited in vain, or
	// that were let in and never came for their session.
	ExpiredDevices(ctx context.Context, x DeviceExpiry, batch int) ([]Device, error)
	// DeviceExpired tells, behind a lock, whether the device is one of them still.
	DeviceExpired(ctx context.Context, id ids.ID, x DeviceExpiry) (bool, error)
}

// ViewSessions are sessions in which an owner looks at the instance as another person.
type ViewSessions interface {
	InsertView(ctx context.Context, s Session, viewer ids.ID, at time.Time) error
	// HasView reports whether a session has a living view.
	HasView(ctx context.Context, parent ids.ID, at time.Time) (bool, error)
	// Viewer is the owner behind a living view.
	Viewer(ctx context.Context, session ids.ID, at time.Time) (viewer ids.ID, found bool, err error)
}

// Pairings are requests to be let in from another device.
type Pairings interface {
	InsertPairing(ctx context.Context, p Pairing, deviceCode [32]byte) error
	PairingByDeviceCode(ctx context.Context, hash [32]byte) (p Pairing, found bool, err error)
	// PairingByUserCode finds only what still waits.
	PairingByUserCode(ctx context.Context, hash [32]byte) (p Pairing, found bool, err error)
	// LockPairing makes questions and decisions serial; the others need its lock.
	LockPairing(ctx context.Context, id ids.ID) (p Pairing, found bool, err error)
	NotePoll(ctx context.Context, id ids.ID, interval time.Duration, at time.Time) error
	DecidePairing(ctx context.Context, p Pairing) error
	ConsumePairing(ctx context.Context, id ids.ID) error
	// EndPairings ends what a person has approved and nobody has collected.
	EndPairings(ctx context.Context, principal ids.ID) error
	DeleteExpiredPairings(ctx context.Context, before time.Time, batch int) (int, error)
}

// Sessions are sessions of people.
type Sessions interface {
	ViewSessions
	// SessionForAuthentication is one statement, whatever it finds.
	SessionForAuthentication(ctx context.Context, id ids.ID) (c SessionCredential, found bool, err error)
	// InsertSession stores a session that begins at the moment; stepUpMethod is empty for one
	// that begins without a fresh proof.
	InsertSession(ctx context.Context, s Session, stepUpMethod string, at time.Time) error
	SessionByID(ctx context.Context, id ids.ID) (s Session, found bool, err error)
	LockSession(ctx context.Context, id ids.ID) (s Session, found bool, err error)
	// LockLiveSessions locks the sessions of a principal that have not ended, ascending.
	LockLiveSessions(ctx context.Context, principal ids.ID) ([]SessionRef, error)
	// EndSessions also ends the families of refresh tokens.
	EndSessions(ctx context.Context, sessions []ids.ID, reason string, at time.Time) error
	// StepUp raises the token epoch; false when the session has ended.
	StepUp(ctx context.Context, id ids.ID, method string, at time.Time) (epoch int, ok bool, err error)
	// ConsumeStepUp clears a step-up younger than after; false when there is none.
	ConsumeStepUp(ctx context.Context, id ids.ID, after time.Time) (bool, error)
	// ListSessions gives living sessions, newest first, older than before.
	ListSessions(ctx context.Context, principal, before ids.ID, at time.Time, limit int) ([]ListedSession, error)
	// NoteUses writes last uses of sessions with their devices and of tokens.
	NoteUses(ctx context.Context, uses []Use, idle time.Duration) error
}

// RefreshTokens are families and their tokens.
type RefreshTokens interface {
	InsertFamily(ctx context.Context, id, session ids.ID, at time.Time) error
	FamilyByToken(ctx context.Context, hash [32]byte) (f Family, found bool, err error)
	// LockFamily serialises exchanges; call it before PresentedToken.
	LockFamily(ctx context.Context, id ids.ID) (domain.FamilyState, error)
	// FamilyState reads what LockFamily reads, without the lock.
	FamilyState(ctx context.Context, id ids.ID) (domain.FamilyState, error)
	// PresentedToken reads the token behind the lock and completes the family's state.
	PresentedToken(ctx context.Context, hash [32]byte) (tokenID ids.ID, t domain.PresentedToken, lastUsed int64, err error)
	InsertRefreshToken(ctx context.Context, family ids.ID, generation int64, hash [32]byte, at, expires time.Time) error
	MarkUsed(ctx context.Context, token ids.ID, at time.Time) error
	Supersede(ctx context.Context, family ids.ID, generation int64, at time.Time) error
}

// APITokens are the long-lived tokens of people, agents and apps.
type APITokens interface {
	// TokenForAuthentication is one statement, whatever it finds.
	TokenForAuthentication(ctx context.Context, hash [32]byte) (c TokenCredential, found bool, err error)
	TokenForRevalidation(ctx context.Context, id ids.ID) (c TokenCredential, found bool, err error)
	InsertToken(ctx context.Context, t APIToken, hash [32]byte) error
	TokenByID(ctx context.Context, id ids.ID) (t APIToken, found bool, err error)
	// ListTokens gives living tokens, newest first, older than before.
	ListTokens(ctx context.Context, principal, before ids.ID, at time.Time, limit int) ([]APIToken, error)
	CountTokens(ctx context.Context, principal ids.ID, at time.Time) (int, error)
	ShortenToken(ctx context.Context, id ids.ID, expires time.Time) error
	// RevokeToken is false when it was revoked before.
	RevokeToken(ctx context.Context, id ids.ID, reason string, at time.Time) (bool, error)
	RevokeTokensOf(ctx context.Context, principal ids.ID, reason string, at time.Time) error
}

// SourceReads answer the questions of authz.
type SourceReads interface {
	PrincipalStates(ctx context.Context, principals []ids.ID) ([]authz.Principal, error)
	ActiveOwnerIDs(ctx context.Context) ([]ids.ID, error)
	ActivePeople(ctx context.Context) ([]authz.Principal, error)
	// RequireSession and RequireToken fail the running unit with the error, at its next
	// read or its commit, unless the credential of the principal is alive.
	RequireSession(ctx context.Context, session, principal ids.ID, at time.Time, ended error) error
	RequireToken(ctx context.Context, token, principal ids.ID, at time.Time, ended error) error
}

// Hasher turns passwords into hashes. It bounds how many computations run at once and
// fails with unavailable when the wait is too long. The adapter argon2 implements it.
type Hasher interface {
	Hash(ctx context.Context, password string) (string, error)
	// Verify reports whether the password fits, and whether the hash is weaker than what
	// Hash would make. An empty hash costs as much and never fits.
	Verify(ctx context.Context, hash, password string) (fits, weak bool, err error)
}

// Throttle bounds attempts per key of a rate-limit class; platform/ratelimit implements it.
type Throttle interface {
	Take(class, key string) (ok bool, retryAfter time.Duration)
}
