// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the tables of instance in PostgreSQL.
package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// The queued forms of two generated queries: their results come with a later round trip.
const (
	raiseCounter = "SELECT instance_counter_raise($1, $2)"
	readCounter  = "SELECT instance_counter_value($1)"

	constraintActive = "server_signing_keys_active_key"
	constraintNext   = "server_signing_keys_next_key"
)

// Store implements app.Store.
type Store struct{ db *pg.DB }

var _ app.Store = (*Store)(nil)

// New makes the store on a database.
func New(db *pg.DB) *Store { return &Store{db: db} }

func (s *Store) queries(ctx context.Context) *sqlcgen.Queries { return sqlcgen.New(s.db.Querier(ctx)) }

// Info implements app.Store.
func (s *Store) Info(ctx context.Context) (instance.Info, error) {
	r, err := s.queries(ctx).InstanceGet(ctx)
	if pg.IsNoRows(err) {
		return instance.Info{}, app.ErrNoRow
	}
	i := instance.Info{
		ID: r.ID, SyncEpoch: r.SyncEpoch, SetupCompletedAt: r.SetupCompletedAt, SchemaVersion: r.SchemaVersion,
		MinServerVersion: r.MinServerVersion, DBSystemIdentifier: r.DbSystemIdentifier, CreatedAt: r.CreatedAt, Version: r.Version,
	}
	if r.DbTimelineID != nil {
		i.DBTimelineID = *r.DbTimelineID
	}
	return i, err
}

// InsertInfo implements app.Store.
func (s *Store) InsertInfo(ctx context.Context, i instance.Info) (bool, error) {
	n, err := s.queries(ctx).InstanceInsert(ctx, sqlcgen.InstanceInsertParams{
		ID: i.ID, SyncEpoch: i.SyncEpoch, SchemaVersion: i.SchemaVersion, MinServerVersion: i.MinServerVersion,
		DbSystemIdentifier: i.DBSystemIdentifier, DbTimelineID: timeline(i.DBTimelineID), CreatedAt: i.CreatedAt,
	})
	return n == 1, err
}

// NoteSchema implements app.Store.
func (s *Store) NoteSchema(ctx context.Context, schema int64, minServer, systemID string, timelineID int64) error {
	return s.queries(ctx).InstanceNoteSchema(ctx, sqlcgen.InstanceNoteSchemaParams{
		SchemaVersion: schema, MinServerVersion: minServer, DbSystemIdentifier: systemID, DbTimelineID: timeline(timelineID),
	})
}

// StoreIdentity implements app.Store.
func (s *Store) StoreIdentity(ctx context.Context, systemID string, timelineID int64, epoch ids.ID) error {
	return s.queries(ctx).InstanceStoreIdentity(ctx, systemID, timelineID, epoch.Ptr())
}

func timeline(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}

// CompleteSetup implements app.Store.
func (s *Store) CompleteSetup(ctx context.Context, at time.Time) error {
	return s.queries(ctx).InstanceCompleteSetup(ctx, at)
}

// Section implements app.Store.
func (s *Store) Section(ctx context.Context, name string) (app.Section, error) {
	r, err := s.queries(ctx).SectionGet(ctx, name)
	if pg.IsNoRows(err) {
		return app.Section{Document: map[string]json.RawMessage{}}, nil
	}
	if err != nil {
		return app.Section{}, err
	}
	return section(r.Document, r.Version)
}

// LockSection implements app.Store.
func (s *Store) LockSection(ctx context.Context, name string) (app.Section, error) {
	if err := sqlcgen.New(pg.Queued(ctx)).SectionPrepare(ctx, name); err != nil {
		return app.Section{}, err
	}
	r, err := s.queries(ctx).SectionLock(ctx, name)
	if err != nil {
		return app.Section{}, err
	}
	return section(r.Document, r.Version)
}

func section(document json.RawMessage, version int64) (app.Section, error) {
	s := app.Section{Document: map[string]json.RawMessage{}, Version: version}
	if err := json.Unmarshal(document, &s.Document); err != nil {
		return s, fmt.Errorf("read a document of settings: %w", err)
	}
	return s, nil
}

// SaveSection implements app.Store.
func (s *Store) SaveSection(ctx context.Context, name string, sec app.Section, by ids.ID, at time.Time) error {
	document, err := json.Marshal(sec.Document)
	if err != nil {
		return err
	}
	return sqlcgen.New(pg.Queued(ctx)).SectionSave(ctx, sqlcgen.SectionSaveParams{
		Section: name, Document: document, Version: sec.Version, UpdatedBy: by.Ptr(), UpdatedAt: at,
	})
}

// Keys implements app.Store.
func (s *Store) Keys(ctx context.Context) ([]domain.SigningKey, error) {
	rows, err := s.queries(ctx).KeyList(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]domain.SigningKey, len(rows))
	for i, r := range rows {
		out[i] = domain.SigningKey{
			ID: r.ID, KID: r.Kid, Purpose: r.Purpose, Algorithm: jose.Algorithm(r.Alg), State: domain.KeyState(r.State),
			Published: r.Published, CreatedAt: r.CreatedAt, ActivatedAt: r.ActivatedAt, RetiredAt: r.RetiredAt,
			UnpublishAt: r.UnpublishAt,
		}
		if r.RetireReason != nil {
			out[i].RetireReason = *r.RetireReason
		}
		if err := json.Unmarshal(r.PublicJwk, &out[i].Public); err != nil {
			return nil, fmt.Errorf("read the public key %s: %w", r.Kid, err)
		}
	}
	return out, nil
}

// InsertKey implements app.Store.
func (s *Store) InsertKey(ctx context.Context, k domain.SigningKey) error {
	jwk, err := json.Marshal(k.Public)
	if err != nil {
		return err
	}
	err = s.queries(ctx).KeyInsert(ctx, sqlcgen.KeyInsertParams{
		ID: k.ID, Kid: k.KID, Purpose: k.Purpose, Alg: string(k.Algorithm), PublicJwk: jwk, State: string(k.State),
		Published: k.Published, CreatedAt: k.CreatedAt, ActivatedAt: k.ActivatedAt,
	})
	if c := pg.Constraint(err); c == constraintActive || c == constraintNext {
		return app.ErrActiveExists
	}
	return err
}

// LockKeys implements app.Store.
func (s *Store) LockKeys(ctx context.Context, purpose string) error {
	_, err := s.queries(ctx).KeyLock(ctx, purpose)
	return err
}

// ActivateKey implements app.Store.
func (s *Store) ActivateKey(ctx context.Context, id ids.ID, at time.Time) error {
	return s.queries(ctx).KeyActivate(ctx, at, id)
}

// UnpublishKeys implements app.Store.
func (s *Store) UnpublishKeys(ctx context.Context, now time.Time) error {
	return s.queries(ctx).KeyUnpublish(ctx, now)
}

// Flags implements app.Store.
func (s *Store) Flags(ctx context.Context) ([]domain.Flag, error) {
	rows, err := s.queries(ctx).FlagList(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]domain.Flag, len(rows))
	for i, r := range rows {
		out[i] = toFlag(r)
	}
	return out, nil
}

// LockFlag implements app.Store.
func (s *Store) LockFlag(ctx context.Context, untouched domain.Flag, at time.Time) (domain.Flag, error) {
	if err := sqlcgen.New(pg.Queued(ctx)).FlagPrepare(ctx, untouched.Key, string(untouched.State), at); err != nil {
		return domain.Flag{}, err
	}
	r, err := s.queries(ctx).FlagLock(ctx, untouched.Key)
	return toFlag(r), err
}

// SaveFlag implements app.Store.
func (s *Store) SaveFlag(ctx context.Context, f domain.Flag) error {
	return sqlcgen.New(pg.Queued(ctx)).FlagSave(ctx, sqlcgen.FlagSaveParams{
		Key: f.Key, State: string(f.State), People: list(f.People), Groups: list(f.Groups), Percent: int16(f.Percent),
		Version: f.Version, UpdatedBy: f.UpdatedBy.Ptr(), At: f.UpdatedAt,
	})
}

func toFlag(r sqlcgen.FeatureFlag) domain.Flag {
	return domain.Flag{
		Key: r.Key, State: domain.FlagState(r.State), People: r.People, Groups: r.Groups, Percent: int(r.Percent),
		Version: r.Version, UpdatedBy: ids.Deref(r.UpdatedBy), UpdatedAt: r.UpdatedAt,
	}
}

// list is never NULL.
func list(l []ids.ID) []ids.ID {
	if l == nil {
		return []ids.ID{}
	}
	return l
}

// RetireKey implements app.Store.
func (s *Store) RetireKey(ctx context.Context, id ids.ID, reason string, at time.Time, unpublishAt *time.Time, published bool) error {
	return s.queries(ctx).KeyRetire(ctx, sqlcgen.KeyRetireParams{ID: id, Reason: reason, At: at, UnpublishAt: unpublishAt, Published: published})
}

// Raise implements app.Store.
func (s *Store) Raise(ctx context.Context, name string, by int64, got func(int64)) error {
	return queuedValue(ctx, raiseCounter, []any{name, by}, got)
}

// Value implements app.Store.
func (s *Store) Value(ctx context.Context, name string) (int64, error) {
	return s.queries(ctx).CounterValue(ctx, name)
}

// QueueValue implements app.Store.
func (s *Store) QueueValue(ctx context.Context, name string, got func(int64)) error {
	return queuedValue(ctx, readCounter, []any{name}, got)
}

func queuedValue(ctx context.Context, sql string, args []any, got func(int64)) error {
	return pg.QueuedRow(ctx, sql, args, func(row pgx.Row) error {
		var v int64
		if err := row.Scan(&v); err != nil {
			return err
		}
		got(v)
		return nil
	})
}
