// SPDX-License-Identifier: Apache-2.0

// Package instance is the port of the module instance: what this installation is, what its
// owner has set, the keys with which it signs, and the counters that order everything.
package instance

import (
	"context"
	"crypto"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Info is the identity of the installation.
type Info struct {
	ID ids.ID
	// SyncEpoch changes only when a restore has been finalized; positions of the event log
	// compare within one epoch alone.
	SyncEpoch ids.ID
	// SetupCompletedAt is nil until the first owner has redeemed the code.
	SetupCompletedAt *time.Time
	SchemaVersion    int64
	MinServerVersion string
	// DBSystemIdentifier and DBTimelineID name the database the row was written in; empty
	// and zero when never stored.
	DBSystemIdentifier string
	DBTimelineID       int64
	CreatedAt          time.Time
	Version            int64
}

// Instance reads and completes the row of the installation.
type Instance interface {
	// Info reads the row; missing means that `bothy migrate up` has not run and is an error.
	Info(ctx context.Context) (Info, error)
	// SetupComplete reports whether the first owner exists. After the first true it answers
	// from memory.
	SetupComplete(ctx context.Context) (bool, error)
	// CompleteSetup notes the end of the setup inside the running unit of work; repeating it
	// changes nothing.
	CompleteSetup(ctx context.Context) error
}

// Settings reads what the owner has set. Unset keys give their registered default; an
// unknown key is a mistake of the caller and an error.
type Settings interface {
	String(ctx context.Context, key string) (string, error)
	Bool(ctx context.Context, key string) (bool, error)
	Int(ctx context.Context, key string) (int64, error)
	Duration(ctx context.Context, key string) (time.Duration, error)
}

// Setting describes a setting that a module brings; internal/wire collects them.
type Setting struct {
	Key string
	// Module is the one that reads it.
	Module string
	// Type is bool, int, string, duration, enum or string_list.
	Type string
	// Default is a bool, int64, string, time.Duration or []string, as Type says.
	Default any
	// Min and Max bound numbers, milliseconds of durations and lengths of texts; nil for none.
	Min, Max *int64
	// Values are those of an enum.
	Values []string
	// Sensitive settings need a fresh proof of the owner.
	Sensitive bool
	// Check refuses further values; its error is a sentence.
	Check func(value any) error
}

// SettingsCheck refuses a combination of settings before it takes effect, with a public
// error. It sees every value as it would be.
type SettingsCheck func(ctx context.Context, values map[string]any) error

// Flag describes a feature flag that a module brings; internal/wire collects them. A flag
// separates the release of something from its exposure, and goes when everybody has it.
type Flag struct {
	Key string
	// Module is the one that asks for it.
	Module string
	// Summary says in one phrase what it turns on.
	Summary string
	// Default is the state of a flag that no owner has changed, and of one that cannot be
	// evaluated.
	Default bool
}

// Flags tells other modules what is on for the actor of the context.
type Flags interface {
	// Enabled never fails: what cannot be evaluated has its default, and an unknown key is off.
	Enabled(ctx context.Context, key string) bool
}

// FlagUserSource is implemented by the module identity.
type FlagUserSource interface {
	// UnknownPeople gives those of the IDs that are no people of the instance.
	UnknownPeople(ctx context.Context, list []ids.ID) ([]ids.ID, error)
}

// FlagGroupSource is implemented by the module authz.
type FlagGroupSource interface {
	// InAnyGroup reports whether the person is a member of one of the groups at this moment.
	InAnyGroup(ctx context.Context, person ids.ID, groups []ids.ID) (bool, error)
	// UnknownGroups gives those of the IDs that are no groups.
	UnknownGroups(ctx context.Context, list []ids.ID) ([]ids.ID, error)
}

// Keys of settings that other modules read.
const (
	SettingName           = "instance.name"
	SettingLocale         = "instance.locale"
	SettingTimeZone       = "instance.time_zone"
	SettingEmailVisible   = "directory.email_visible"
	SettingDeviceApproval = "auth.device_approval"
	SettingLocalEnabled   = "auth.local.enabled"
	SettingPasskeyEnabled = "auth.passkey.enabled"
)

// Purpose is what a signing key is for. A token of one purpose is never accepted for
// another.
type Purpose string

// The purposes that have keys in this version.
const (
	PurposeAccess     Purpose = "access"
	PurposeInvocation Purpose = "invocation"
	PurposeCheckpoint Purpose = "checkpoint"
)

// Keys signs and verifies the product's own tokens.
type Keys interface {
	// Sign makes a compact JWS with the active key of the purpose, its kid and the typ that
	// belongs to it.
	Sign(ctx context.Context, p Purpose, payload []byte) (string, error)
	// Verify checks signature, kid, alg and typ and returns the payload. It fails with
	// unauthenticated for anything that a key of this purpose has not signed.
	Verify(ctx context.Context, p Purpose, compact string) ([]byte, error)
}

// VerificationKey is the public half of a key.
type VerificationKey struct {
	Key crypto.PublicKey
	// Published keys still verify what is presented today; of others only that they were used
	// is known.
	Published bool
}

// Counter names a row of sequence_counters.
type Counter string

// The counters.
const (
	CounterPermissionVersion Counter = "permission_version"
	CounterEventSeq          Counter = "event_seq"
	CounterAuditSeq          Counter = "audit_seq"
)

// Counters raises counters. Only the phase hooks of authz, sync and audit use it; any other
// phase of the unit of work than the counter's own fails with kind internal.
type Counters interface {
	// Raise adds by to the counter, whose row stays locked until the unit ends. The new
	// value is handed to got when the statement has run, which may be with the commit.
	Raise(ctx context.Context, c Counter, by int64, got func(value int64)) error
}

// Versions reads counters without a lock.
type Versions interface {
	// Current is the value in the snapshot of the running unit, or the present one outside.
	Current(ctx context.Context, c Counter) (int64, error)
	// Queue reads the value with the next statement of the running unit of work that is sent
	// and hands it to got. It is only for units that write.
	Queue(ctx context.Context, c Counter, got func(value int64)) error
}

// LoginOption is one way to sign in, for discovery.
type LoginOption struct {
	Driver     string
	ProviderID ids.ID
	Label      string
	Icon       string
}

// PasswordPolicy is what the sign-in screens must know of passwords.
type PasswordPolicy struct{ MinLength, MaxLength int }

// LoginOptionsSource is implemented by the module identity.
type LoginOptionsSource interface {
	LoginOptions(ctx context.Context) ([]LoginOption, PasswordPolicy, error)
}
