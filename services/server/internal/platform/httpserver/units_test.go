// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// tableStore keeps keys in a table, as the real store does, but without answers.
type tableStore struct{ db *pgtest.DB }

func (s tableStore) Begin(ctx context.Context, k idempotency.Key) (*idempotency.Answer, error) {
	return nil, pg.QueuedExec(ctx, "INSERT INTO keys VALUES ($1)", []any{k.Value})
}

func (s tableStore) Complete(ctx context.Context, k idempotency.Key, _ idempotency.Answer) error {
	return pg.QueuedExec(ctx, "UPDATE keys SET done = true WHERE key = $1", []any{k.Value})
}

func (s tableStore) CompleteFailed(context.Context, idempotency.Key, idempotency.Answer) error {
	return nil
}

// The stage relies on how real units nest, repeat and roll back.
func TestTheStageOverRealUnits(t *testing.T) {
	db := pgtest.New(t, pgtest.WithMigrations())
	units := db.Units(txn.NewRegistry())
	b := setup(t, nil)
	b.Chain.options.Units, b.Chain.options.Idempotency = units, tableStore{db}
	attempt := 0
	handler := func(work func(ctx context.Context) error) {
		attempt = 0
		db.Exec(t, "DROP TABLE IF EXISTS keys, effects")
		db.Exec(t, "CREATE TABLE keys (key text PRIMARY KEY, done boolean NOT NULL DEFAULT false)")
		db.Exec(t, "CREATE TABLE effects (n int)")
		b.handle = func(w http.ResponseWriter, r *http.Request) {
			attempt++
			authorize.Note(r.Context(), authorize.Check{Action: "thing.write", Allowed: true})
			if err := units.Do(r.Context(), work); err != nil {
				WriteError(w, r, err)
				return
			}
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "{}")
		}
	}
	effect := func(ctx context.Context) error { return pg.QueuedExec(ctx, "INSERT INTO effects VALUES (1)", nil) }
	for _, c := range []struct {
		name                     string
		work                     func(ctx context.Context) error
		status, attempts         int
		keys, effects, completed int64
	}{
		{"success", effect, 201, 1, 1, 1, 1},
		{"refusal", func(ctx context.Context) error {
			if err := effect(ctx); err != nil {
				return err
			}
			return errs.Conflict("taken", "x")
		}, 409, 1, 0, 0, 0},
		{"deadlock, then success", func(ctx context.Context) error {
			if attempt == 1 {
				return raise(ctx, db, "40P01")
			}
			return effect(ctx)
		}, 201, 2, 1, 1, 1},
		{"deadlock every time", func(ctx context.Context) error { return raise(ctx, db, "40P01") }, 503, 3, 0, 0, 0},
		{"a bug", func(ctx context.Context) error { return raise(ctx, db, "22012") }, 500, 1, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler(c.work)
			w := b.write("Idempotency-Key", "k")
			if w.Code != c.status || attempt != c.attempts {
				t.Errorf("%d after %d attempts, want %d after %d: %s", w.Code, attempt, c.status, c.attempts, w.Body)
			}
			keys, effects := db.Count(t, "SELECT count(*) FROM keys"), db.Count(t, "SELECT count(*) FROM effects")
			if done := db.Count(t, "SELECT count(*) FROM keys WHERE done"); keys != c.keys || effects != c.effects || done != c.completed {
				t.Errorf("%d keys, %d done, %d effects", keys, done, effects)
			}
		})
	}
}

func raise(ctx context.Context, db *pgtest.DB, state string) error {
	_, err := db.Querier(ctx).Exec(ctx, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '"+state+"'; END $$")
	return err
}
