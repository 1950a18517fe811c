// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		// The clusters of pgtest live in goroutines that end with the process.
		if err := goleak.Find(goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"), goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2")); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

const schema = `
	CREATE TABLE things (id uuid PRIMARY KEY, name text NOT NULL CONSTRAINT things_name_unique UNIQUE, n bigint NOT NULL DEFAULT 0);
	CREATE TABLE counters (name text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 10);
	INSERT INTO counters VALUES ('a', 0), ('b', 0)`

// bundle is a database with two small tables and a registry that is still open.
type bundle struct {
	db       *pgtest.DB
	registry *txn.Registry
	trace    *trace
}

func setup(t testing.TB, opts ...pgtest.Option) *bundle {
	t.Helper()
	db := pgtest.New(t, append([]pgtest.Option{pgtest.WithMigrations()}, opts...)...)
	db.Exec(t, schema)
	return &bundle{db: db, registry: txn.NewRegistry(), trace: &trace{}}
}

func (b *bundle) units() *pg.Units { return b.db.Units(b.registry) }

// insert queues one row.
func insert(ctx context.Context, name string, opts ...pg.QueueOption) error {
	_, err := pg.Queued(ctx, opts...).Exec(ctx, "INSERT INTO things (id, name) VALUES ($1, $2)", ids.New(), name)
	return err
}

// bump changes one counter now.
func (b *bundle) bump(ctx context.Context, name string) error {
	_, err := b.db.Querier(ctx).Exec(ctx, "UPDATE counters SET value = value + 1 WHERE name = $1", name)
	return err
}

func (b *bundle) things(t testing.TB) int64 {
	t.Helper()
	return b.db.Count(t, "SELECT count(*) FROM things")
}

// trace records what happened, in order.
type trace struct {
	mu    sync.Mutex
	steps []string
}

func (r *trace) add(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, step)
}

func (r *trace) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.steps...)
}

// hooks records each phase hook and the phase in which it ran.
func (b *bundle) hooks() txn.Hooks {
	note := func(name string, want txn.Phase) func(context.Context) error {
		return func(ctx context.Context) error {
			if got := txn.PhaseOf(ctx); got != want {
				b.trace.add(name + " in a wrong phase")
				return nil
			}
			b.trace.add(name)
			return nil
		}
	}
	rights := func(name string, want txn.Phase) func(context.Context, txn.RightsChange) error {
		step := note(name, want)
		return func(ctx context.Context, c txn.RightsChange) error {
			if err := step(ctx); err != nil {
				return err
			}
			return nil
		}
	}
	return txn.Hooks{
		RightsBegin: rights("begin", txn.PhaseBegin), RightsCheck: rights("rights", txn.PhaseRights),
		Log: note("log", txn.PhaseLog), Audit: note("audit", txn.PhaseAudit),
	}
}

// eventually waits for a condition that another process brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within 10 s: %s", what)
}
