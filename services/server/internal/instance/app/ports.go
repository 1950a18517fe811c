// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of instance: the row of the installation, settings, keys,
// counters and what a client is told before it has a session.
package app

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Config is what the module needs to know of the process it runs in.
type Config struct {
	// PublicURL is server.public_url; every address in discovery begins with it.
	PublicURL string
	// ServerVersion and MinClientVersion are told to clients.
	ServerVersion, MinClientVersion string
	// MaxJSONBodyBytes to MaxAttachments are limits that clients keep by themselves.
	MaxJSONBodyBytes, MaxFrameBytes, MaxMessageBytes int64
	MaxAttachments                                   int
	// MaxUploadBytes is nil while the instance takes no files.
	MaxUploadBytes *int64
	// ReadOnly reports maintenance mode; nil means never.
	ReadOnly func() bool
	// SettingsTTL is how long settings are kept that another process may have changed.
	SettingsTTL time.Duration
	// KeyCacheTTL is signing_key.cache_ttl.
	KeyCacheTTL time.Duration `key:"signing_key.cache_ttl" min:"5s" max:"10m" doc:"How long a process goes on with the keys it has read before it looks for others."`
	// AcceptLostKeys starts with new keys when the key store has lost all of the old ones.
	AcceptLostKeys bool `key:"signing_key.accept_lost_keys" default:"false" doc:"Start with new keys when the folder has lost all of the old ones; everybody signs in again."`
	// RotationInterval is how long a key signs, NextLead how long the next one is published
	// before it does.
	RotationInterval time.Duration `key:"signing_key.rotation_interval" min:"24h" max:"17520h" doc:"How long a key signs; at least twice signing_key.next_lead."`
	NextLead         time.Duration `key:"signing_key.next_lead" min:"1h" max:"720h" doc:"How long a key is published before it signs."`
	// AccessTokenTTL and InvocationTokenTTL are how long signatures of a retired key count.
	AccessTokenTTL, InvocationTokenTTL time.Duration
}

// DefaultConfig has the defaults that depend on nothing else.
func DefaultConfig() Config {
	return Config{
		MinClientVersion: "0.1.0", MaxJSONBodyBytes: 1 << 20, MaxFrameBytes: 256 << 10, MaxMessageBytes: 64 << 10,
		SettingsTTL: 30 * time.Second, KeyCacheTTL: 30 * time.Second, RotationInterval: 2160 * time.Hour, NextLead: 24 * time.Hour,
		AccessTokenTTL: 10 * time.Minute, InvocationTokenTTL: 15 * time.Minute,
	}
}

// The sections of instance_settings.
const (
	SectionSettings = "settings"
	SectionBranding = "branding"
)

// Section is a stored document; a section that was never written has version 0.
type Section struct {
	Document map[string]json.RawMessage
	Version  int64
}

// Facts that the stores report.
var (
	// ErrNoRow means that there is no such row.
	ErrNoRow = errors.New("no such row")
	// ErrActiveExists means that the purpose has an active key.
	ErrActiveExists = errors.New("the purpose has an active key")
	// ErrNoFile means that the key store has no such key.
	ErrNoFile = errors.New("the key store has no such file")
)

// Store keeps the tables of the module.
type Store interface {
	// Info reads the row; ErrNoRow before the first migration.
	Info(ctx context.Context) (instance.Info, error)
	// InsertInfo adds the row and reports false when there is one.
	InsertInfo(ctx context.Context, i instance.Info) (bool, error)
	// NoteSchema stores what the last migration reached, and the identity of the database
	// when none is stored.
	NoteSchema(ctx context.Context, schema int64, minServer, systemID string, timeline int64) error
	// StoreIdentity names the database anew, with another epoch when one is given.
	StoreIdentity(ctx context.Context, systemID string, timeline int64, epoch ids.ID) error
	// CompleteSetup notes the end of the setup, once.
	CompleteSetup(ctx context.Context, at time.Time) error

	Section(ctx context.Context, name string) (Section, error)
	// LockSection reads a section and keeps its row until the unit ends.
	LockSection(ctx context.Context, name string) (Section, error)
	SaveSection(ctx context.Context, name string, s Section, by ids.ID, at time.Time) error

	// Keys lists every key, by ID.
	Keys(ctx context.Context) ([]domain.SigningKey, error)
	// InsertKey adds one; ErrActiveExists when another process was first.
	InsertKey(ctx context.Context, k domain.SigningKey) error
	// LockKeys keeps the keys of a purpose that have not retired until the unit ends.
	LockKeys(ctx context.Context, purpose string) error
	// ActivateKey lets a next key sign.
	ActivateKey(ctx context.Context, id ids.ID, at time.Time) error
	// RetireKey ends a key that has not been retired.
	RetireKey(ctx context.Context, id ids.ID, reason string, at time.Time, unpublishAt *time.Time, published bool) error
	// UnpublishKeys notes the keys whose time is over.
	UnpublishKeys(ctx context.Context, now time.Time) error

	// Flags lists the flags that were ever changed.
	Flags(ctx context.Context) ([]domain.Flag, error)
	// LockFlag reads a flag and keeps its row until the unit ends; one that was never changed
	// begins as the given one.
	LockFlag(ctx context.Context, untouched domain.Flag, at time.Time) (domain.Flag, error)
	SaveFlag(ctx context.Context, f domain.Flag) error

	// Raise queues the raise of a counter and hands over its new value.
	Raise(ctx context.Context, name string, by int64, got func(int64)) error
	// Value reads a counter; QueueValue does so with the next statement sent.
	Value(ctx context.Context, name string) (int64, error)
	QueueValue(ctx context.Context, name string, got func(int64)) error
}

// KeyStore keeps the private halves.
type KeyStore interface {
	// Create makes a key of the algorithm and stores it durably before it returns.
	Create(algorithm string) (kid string, public crypto.PublicKey, err error)
	// Load reads a key; ErrNoFile when it is not there.
	Load(kid string) (crypto.Signer, error)
	// List gives every key that lies there.
	List() ([]StoredKey, error)
	// Remove forgets a key for good; one that is not there is no error.
	Remove(kid string) error
}

// StoredKey is a key in the key store.
type StoredKey struct {
	KID    string
	MadeAt time.Time
}
