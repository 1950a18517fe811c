// SPDX-License-Identifier: Apache-2.0

// Package app records audited decisions and verifies the record.
package app

import (
	"context"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Config has the keys of audit.
type Config struct {
	// DenyWindow is the time in which equal denials become one row with their count.
	DenyWindow time.Duration `key:"audit.deny_window" min:"1s" max:"1h" doc:"Equal denials within this time become one row with their count."`
	// VerifyMaxRows bounds the range of one verification.
	VerifyMaxRows int64 `key:"audit.verify_max_rows" min:"1" max:"100000000" doc:"Rows that one verification may cover."`
	// IPKeyPeriod is how long a key of the pseudonyms is used.
	IPKeyPeriod time.Duration `key:"audit.ip_key_period" min:"24h" max:"8760h" doc:"How long one key makes the pseudonyms of addresses; then equal addresses look different."`
	// IPKeyTTL is how long a key is kept after that; then its pseudonyms lead nowhere.
	IPKeyTTL time.Duration `key:"audit.ip_key_ttl" min:"24h" max:"87600h" doc:"How long a key of pseudonyms is kept after its use; then none of them can be computed from an address any more."`
	// Retention is how long rows are kept, zero for ever; TrimBatch bounds the rows that one
	// unit removes.
	Retention time.Duration `key:"retention.audit" min:"0s" max:"87600h" doc:"How long rows of the audit log are kept; 0s keeps them for ever, other values are longer than audit.ip_key_ttl."`
	TrimBatch int           `key:"retention.batch_size" min:"100" max:"10000" doc:"Rows that one transaction of the removal takes at most."`
	// IPKeyWrap is the secret behind audit.ip_key_wrap_ref, 32 bytes. Nil records no
	// pseudonyms: for commands and tests.
	IPKeyWrap []byte
	// Strict makes details of a wrong form an error instead of a replacement: for tests.
	Strict bool
}

// DefaultConfig is the configuration without any source.
func DefaultConfig() Config {
	return Config{
		DenyWindow: time.Minute, VerifyMaxRows: 1_000_000, IPKeyPeriod: 720 * time.Hour,
		IPKeyTTL: 2160 * time.Hour, Retention: 9600 * time.Hour, TrimBatch: 1000,
	}
}

// IPKey is a key under which addresses become pseudonyms.
type IPKey struct {
	ID                    ids.ID
	ValidFrom, ValidUntil time.Time
	Wrapped               []byte
}

// Store keeps the tables of the module.
type Store interface {
	// Last is the row with the highest number, as far as linking needs it; ok is false while
	// there is none. In a unit it must run after the counter has been raised.
	Last(ctx context.Context) (seq int64, hash domain.Hash, ok bool, err error)
	// Insert queues rows for the tail of the unit.
	Insert(ctx context.Context, rows []domain.Row) error
	// Rows reads up to limit rows from a number on, ascending.
	Rows(ctx context.Context, from int64, limit int) ([]domain.Row, error)
	// Bounds are the first and last number; zero while there is no row.
	Bounds(ctx context.Context) (first, last int64, err error)

	// LastCheckpoint is the newest; ok is false while there is none.
	LastCheckpoint(ctx context.Context) (c domain.Checkpoint, ok bool, err error)
	// Checkpoints reads those over rows in a range, ascending, with the one before the range.
	Checkpoints(ctx context.Context, from, to int64) ([]domain.Checkpoint, error)
	InsertCheckpoint(ctx context.Context, c domain.Checkpoint) error
	// CheckpointPage lists checkpoints below a number, the newest first.
	CheckpointPage(ctx context.Context, before int64, limit int) ([]domain.Checkpoint, error)
	// Pending lists those that wait for the sink, ascending.
	Pending(ctx context.Context, limit int) ([]domain.Checkpoint, error)
	// NoteDeposit and NoteSinkFailure say what became of a deposit.
	NoteDeposit(ctx context.Context, id ids.ID, at time.Time) error
	NoteSinkFailure(ctx context.Context, id ids.ID, code string) error

	// Events lists rows by a filter, the newest first.
	Events(ctx context.Context, f EventFilter) ([]domain.Row, error)
	// Event reads one row; ok is false when there is none.
	Event(ctx context.Context, id ids.ID) (r domain.Row, ok bool, err error)
	// LastTrim reads the newest row that holds an anchor.
	LastTrim(ctx context.Context) (r domain.Row, ok bool, err error)

	// IPKeys reads the keys that are valid at the moment or later.
	IPKeys(ctx context.Context, now time.Time) ([]IPKey, error)
	// InsertIPKey adds a key unless one begins at the same time.
	InsertIPKey(ctx context.Context, k IPKey) error
}

// VerificationKeys gives the public keys of a purpose by kid, old ones too. The module
// instance implements it.
type VerificationKeys interface {
	VerificationKeys(ctx context.Context, p instance.Purpose) (map[string]instance.VerificationKey, error)
}

// Sink keeps checkpoints outside the database.
type Sink interface {
	// Deposit stores a checkpoint for good. Repeating it is allowed; ErrSinkConflict means
	// that another one lies there under the same number.
	Deposit(ctx context.Context, seq int64, jws string) error
}

// ErrSinkConflict means that the sink holds another checkpoint of the same number.
var ErrSinkConflict = errors.New("the sink holds another checkpoint of this number")

// EventFilter narrows a list of rows; zero values narrow nothing.
type EventFilter struct {
	ActorID, ResourceID, SpaceID, ChannelID ids.ID
	// Action is one action, ActionPrefix the beginning of several.
	Action, ActionPrefix string
	Outcome              string
	From, To             time.Time
	// Before is the number of the last row of the page before.
	Before int64
	Limit  int
}
