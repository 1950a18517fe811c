// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Deps are what the service works with.
type Deps struct {
	Store    Store
	KeyStore KeyStore
	Units    txn.UnitOfWork
	Clock    clock.Clock
	Log      *slog.Logger
	// Settings are those of all modules beside this one's own; Checks look across them.
	Settings []instance.Setting
	Checks   []instance.SettingsCheck
	// Flags are those of all modules.
	Flags []instance.Flag
	// Metrics may be nil.
	Metrics Metrics
}

// Peers are what stands above this module and is set while the process starts.
type Peers struct {
	Authorizer authorize.Authorizer
	Audit      auditing.Recorder
	Events     eventlog.Appender
	Login      instance.LoginOptionsSource
	// FlagUsers and FlagGroups know the people and groups of a rollout.
	FlagUsers  instance.FlagUserSource
	FlagGroups instance.FlagGroupSource
}

// Service is the module's one object.
type Service struct {
	cfg      Config
	store    Store
	keyStore KeyStore
	units    txn.UnitOfWork
	clock    clock.Clock
	log      *slog.Logger
	registry *domain.Registry
	checks   []instance.SettingsCheck
	peers    Peers

	setupDone atomic.Bool
	settings  cached[map[string]any]
	branding  cached[Section]
	flags     cached[map[string]domain.Flag]
	keys      keyCache
	keyLoad   sync.Mutex

	flagRegistry flagRegistry
	metrics      Metrics
	violations   violations
}

var (
	_ instance.Instance = (*Service)(nil)
	_ instance.Settings = (*Service)(nil)
	_ instance.Keys     = (*Service)(nil)
	_ instance.Counters = (*Service)(nil)
	_ instance.Versions = (*Service)(nil)
	_ instance.Flags    = (*Service)(nil)
)

// New makes the service. SetPeers completes it before the first request.
func New(cfg Config, d Deps) *Service {
	list := ownSettings()
	for _, s := range d.Settings {
		list = append(list, domain.Setting{
			Key: s.Key, Module: s.Module, Type: domain.SettingType(s.Type), Default: s.Default, Min: s.Min, Max: s.Max,
			Values: s.Values, Sensitive: s.Sensitive, Check: s.Check,
		})
	}
	if d.Metrics == nil {
		d.Metrics = noMetrics{}
	}
	return &Service{
		flagRegistry: newFlagRegistry(d.Flags), metrics: d.Metrics,
		cfg: cfg, store: d.Store, keyStore: d.KeyStore, units: d.Units, clock: d.Clock, log: d.Log,
		registry: domain.NewRegistry(list...), checks: d.Checks,
	}
}

// SetPeers installs what stands above this module; it is called once, while the process
// starts.
func (s *Service) SetPeers(p Peers) { s.peers = p }

// EnsureInput is what the command that migrates knows.
type EnsureInput struct {
	SchemaVersion    int64
	MinServerVersion string
	// DBSystemIdentifier and DBTimelineID name the database; they are stored once.
	DBSystemIdentifier string
	DBTimelineID       int64
}

// EnsureInstance makes the row of the installation, or notes the reached schema in it. Only
// the command that migrates calls it. created tells which of the two happened.
func (s *Service) EnsureInstance(ctx context.Context, in EnsureInput) (info instance.Info, created bool, err error) {
	err = s.units.Do(ctx, func(ctx context.Context) error {
		now := s.now(ctx)
		created, err = s.store.InsertInfo(ctx, instance.Info{
			ID: ids.NewAt(now), SyncEpoch: ids.NewAt(now), SchemaVersion: in.SchemaVersion, MinServerVersion: in.MinServerVersion,
			DBSystemIdentifier: in.DBSystemIdentifier, DBTimelineID: in.DBTimelineID, CreatedAt: now, Version: 1,
		})
		if err != nil {
			return fmt.Errorf("make the row of the instance: %w", err)
		}
		if !created {
			if err := s.store.NoteSchema(ctx, in.SchemaVersion, in.MinServerVersion, in.DBSystemIdentifier, in.DBTimelineID); err != nil {
				return fmt.Errorf("note the schema: %w", err)
			}
		}
		info, err = s.store.Info(ctx)
		return err
	})
	return info, created, err
}

// StoreIdentity names the database after a restore or a move, in the running unit. With
// newEpoch clients and consumers must begin anew. Only the command that finalizes a restore
// calls it.
func (s *Service) StoreIdentity(ctx context.Context, systemID string, timeline int64, newEpoch bool) error {
	var epoch ids.ID
	if newEpoch {
		epoch = ids.NewAt(s.now(ctx))
	}
	if err := s.store.StoreIdentity(ctx, systemID, timeline, epoch); err != nil {
		return fmt.Errorf("store the identity of the database: %w", err)
	}
	return nil
}

// Info implements instance.Instance.
func (s *Service) Info(ctx context.Context) (instance.Info, error) {
	i, err := s.store.Info(ctx)
	if errors.Is(err, ErrNoRow) {
		return i, errors.New("the database has no instance: run bothy migrate up")
	}
	return i, err
}

// SetupComplete implements instance.Instance.
func (s *Service) SetupComplete(ctx context.Context) (bool, error) {
	if s.setupDone.Load() {
		return true, nil
	}
	i, err := s.Info(ctx)
	if err != nil || i.SetupCompletedAt == nil {
		return false, err
	}
	if u := txn.Current(ctx); u == nil || u.ReadOnly() {
		s.setupDone.Store(true) // A unit may still be rolled back.
	}
	return true, nil
}

// CompleteSetup implements instance.Instance.
func (s *Service) CompleteSetup(ctx context.Context) error {
	return s.store.CompleteSetup(ctx, s.now(ctx))
}

func (s *Service) now(ctx context.Context) time.Time {
	if u := txn.Current(ctx); u != nil {
		return u.Now()
	}
	return s.clock.Now()
}
