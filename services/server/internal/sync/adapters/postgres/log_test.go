// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	gosync "sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
)

// counters raises counters as the module instance does.
type counters struct{}

func (counters) Raise(ctx context.Context, c instance.Counter, by int64, got func(int64)) error {
	return pg.QueuedRow(ctx, "SELECT instance_counter_raise($1, $2)", []any{string(c), by}, func(row pgx.Row) error {
		var value int64
		if err := row.Scan(&value); err != nil {
			return err
		}
		got(value)
		return nil
	})
}

type decidedKey struct{}

func decided(ctx context.Context) (int64, bool) {
	v, ok := txn.Current(ctx).Value(decidedKey{}).(int64)
	return v, ok
}

type bench struct {
	db       *pgtest.DB
	units    txn.UnitOfWork
	appender *app.Appender
	events   *postgres.Events
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{db: pgtest.New(t, pgtest.WithMigrations("0001", "0009"))}
	b.events = postgres.NewEvents(b.db.DB)
	b.appender = app.NewAppender(app.AppendConfig{MaxEventsPerUnit: 100, MaxPayloadBytes: 1 << 18}, counters{}, b.events, decided)
	registry := txn.NewRegistry()
	registry.SetHooks(txn.Hooks{
		RightsCheck: func(ctx context.Context, _ txn.RightsChange) error {
			return b.appender.Append(ctx, eventlog.Event{Type: "access.changed", PrincipalID: ids.New(), Payload: struct{}{}})
		},
		Log: b.appender.NumberEvents,
	})
	b.units = b.db.Units(registry)
	return b
}

func person() context.Context {
	return actor.With(context.Background(), actor.Actor{ID: ids.New(), Kind: actor.KindPerson})
}

func posted(channel ids.ID) eventlog.Event {
	id := ids.New()
	return eventlog.Event{
		Type: "message.created", Place: eventlog.Place{ChannelID: channel, ThreadID: ids.New()}, Resource: eventlog.Resource{Type: "message", ID: id},
		Payload: map[string]any{"message": map[string]any{"id": id, "thread_seq": 1, "content": "a secret", "author": map[string]any{"id": id}}},
	}
}

func (b *bench) write(ctx context.Context, t *testing.T, events ...eventlog.Event) error {
	t.Helper()
	return b.units.Do(ctx, func(ctx context.Context) error { return b.appender.Append(ctx, events...) })
}

func (b *bench) all(t *testing.T) []eventlog.Record {
	t.Helper()
	records, err := b.events.From(context.Background(), 1, 1<<40, 100000)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestNumbersAreGaplessUnderConcurrentWritersAndRollbacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const writers, each = 16, 40
	fault := errors.New("rolled back")
	var group gosync.WaitGroup
	var mu gosync.Mutex
	want := 0
	for w := range writers {
		group.Go(func() {
			for i := range each {
				n := 1 + (w+i)%3
				err := b.units.Do(person(), func(ctx context.Context) error {
					for range n {
						if err := b.appender.Append(ctx, posted(ids.New())); err != nil {
							return err
						}
					}
					if i%10 == 9 {
						return fault
					}
					return nil
				})
				switch {
				case i%10 == 9 && !errors.Is(err, fault):
					t.Errorf("rollback gave %v", err)
				case i%10 != 9 && err != nil:
					t.Errorf("write: %v", err)
				case err == nil:
					mu.Lock()
					want += n
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	records := b.all(t)
	if len(records) != want {
		t.Errorf("%d events are stored, %d were committed", len(records), want)
	}
	for i, r := range records {
		if r.Seq != int64(i+1) {
			t.Fatalf("event %d has position %d", i+1, r.Seq)
		}
	}
}

func TestAReaderNeverSeesThePositionsOutOfOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stop := make(chan struct{})
	var group gosync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if err := b.write(person(), t, posted(ids.New())); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 200 {
		err := b.units.View(context.Background(), func(ctx context.Context) error {
			_, head, err := b.events.Bounds(ctx)
			if err != nil {
				return err
			}
			n, err := b.events.Count(ctx, 1, head)
			if err == nil && n != head {
				t.Errorf("the counter says %d, the log has %d events", head, n)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	group.Wait()
}

func TestEventsOfAChangeOfRightsAreNumberedFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.units.Do(person(), func(ctx context.Context) error { return b.appender.Append(ctx, posted(ids.New())) },
		txn.WithRightsChange(txn.RightsChange{Action: "grant.create"}))
	if err != nil {
		t.Fatal(err)
	}
	records := b.all(t)
	if len(records) != 2 || records[0].Type != "access.changed" || records[1].Type != "message.created" {
		t.Errorf("stored in the order %v", records)
	}
}

func TestAUnitThatDecidedOnOldRightsRunsAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	runs := 0
	ctx := person()
	err := b.units.Do(ctx, func(ctx context.Context) error {
		runs++
		version := int64(0)
		if runs > 1 {
			version = 1
		} else if _, err := b.db.Pool.Exec(ctx, "SELECT instance_counter_raise('permission_version', 1)"); err != nil {
			return err
		}
		txn.Current(ctx).SetValue(decidedKey{}, version)
		return b.appender.Append(ctx, posted(ids.New()))
	})
	if err != nil {
		t.Fatal(err)
	}
	if runs != 2 {
		t.Errorf("the unit ran %d times", runs)
	}
	records := b.all(t)
	if len(records) != 1 || records[0].PermissionVersion != 1 {
		t.Errorf("stored %+v", records)
	}
}

func TestTheVersionOnAnEventIsTheOneAtItsPosition(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hold, err := b.db.Pool.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// A change of rights holds the version and then the counter of events; the other unit
	// waits on that counter, and must read the version only when it has it.
	for _, counter := range []string{"permission_version", "event_seq"} {
		if _, err := hold.Exec(context.Background(), "SELECT instance_counter_raise($1, 1)", counter); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := hold.Exec(context.Background(), `INSERT INTO event_log (seq, event_id, type, occurred_at, actor_kind, payload, permission_version)
		VALUES (1, gen_random_uuid(), 'grant.changed', now(), 'system', '{}', 1)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.write(person(), t, posted(ids.New())) }()
	waitForLockWait(t, b.db)
	if err := hold.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	records := b.all(t)
	if got := records[len(records)-1]; got.Seq != 2 || got.PermissionVersion != 1 {
		t.Errorf("position %d carries version %d", got.Seq, got.PermissionVersion)
	}
}

func waitForLockWait(t *testing.T, db *pgtest.DB) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		var n int
		err := db.Pool.QueryRow(context.Background(),
			"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits for a lock")
}

func TestAppendOutsideTheWorkOfAUnitIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.appender.Append(person(), posted(ids.New())); !errs.Is(err, errs.CodeInternal) {
		t.Errorf("without a unit: %v", err)
	}
	err := b.units.View(person(), func(ctx context.Context) error { return b.appender.Append(ctx, posted(ids.New())) })
	if !errs.Is(err, errs.CodeInternal) {
		t.Errorf("in a view: %v", err)
	}
	err = b.write(person(), t, eventlog.Event{Type: "message.invented"})
	if !errs.Is(err, errs.CodeInternal) {
		t.Errorf("of an unknown type: %v", err)
	}
}

func TestRedactionLeavesTheSkeleton(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deleted, edited := posted(ids.New()), posted(ids.New())
	if err := b.write(person(), t, deleted, edited); err != nil {
		t.Fatal(err)
	}
	err := b.units.Do(person(), func(ctx context.Context) error {
		if err := b.appender.Redact(ctx, deleted.Resource.ID); err != nil {
			return err
		}
		return b.appender.Supersede(ctx, edited.Resource.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range b.all(t) {
		if !r.Redacted {
			t.Errorf("event %d is not marked", i+1)
		}
		text := string(r.Payload)
		if contains(text, "a secret") {
			t.Errorf("event %d still says %s", i+1, text)
		}
		if got, want := contains(text, `"superseded": true`), i == 1; got != want {
			t.Errorf("event %d: superseded is %v in %s", i+1, got, text)
		}
		if !contains(text, r.Resource.ID.String()) {
			t.Errorf("event %d lost its ID: %s", i+1, text)
		}
	}
}

func contains(text, part string) bool {
	for i := range text {
		if len(text)-i >= len(part) && text[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

func TestPositionOfAWriteIsRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, mark := flush.WithMark(person())
	if err := b.write(ctx, t, posted(ids.New()), posted(ids.New())); err != nil {
		t.Fatal(err)
	}
	if got := mark.Seq(); got != 2 {
		t.Errorf("recorded %d, want 2", got)
	}
}

// follower collects what the tail passes on.
type follower struct {
	mu   gosync.Mutex
	seqs []int64
	more chan struct{}
}

func (f *follower) Deliver(e eventlog.Record) {
	f.mu.Lock()
	f.seqs = append(f.seqs, e.Seq)
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

type noRights struct{ authorize.Delivery }

func (noRights) Observe(context.Context, authorize.Observed) {}

func (b *bench) tail(f *follower) *app.Tail {
	t := app.NewTail(app.TailConfig{PollInterval: time.Second, BatchSize: 7}, b.events, b.db.Barrier(), noRights{},
		postgres.NewWaker(b.db.DB, "test-tail"), clock.System{}, slog.New(slog.DiscardHandler))
	t.Follow(f)
	return t
}

func (f *follower) waitFor(t *testing.T, n int) []int64 {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		f.mu.Lock()
		got := append([]int64(nil), f.seqs...)
		f.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-f.more:
		case <-deadline:
			t.Fatalf("%d events of %d arrived", len(got), n)
		}
	}
}

func TestTailPassesEveryEventOnceInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.write(person(), t, posted(ids.New())); err != nil {
		t.Fatal(err)
	}
	f := &follower{more: make(chan struct{}, 1)}
	tail := b.tail(f)
	if err := tail.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tail.Run(ctx) }()
	var group gosync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 10 {
				if err := b.write(person(), t, posted(ids.New())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for i, seq := range f.waitFor(t, 80) {
		if seq != int64(i+2) {
			t.Fatalf("event %d of the tail has position %d", i, seq)
		}
	}
	if got := tail.LocalHead(); got != 81 {
		t.Errorf("the head is %d", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the tail ended with %v", err)
	}
}

func TestTailStopsWhenTheLogHasDiverged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"another event at a known position": "UPDATE event_log SET event_id = gen_random_uuid() WHERE seq = 3",
		"known positions are gone":          "DELETE FROM event_log WHERE seq > 1",
		"a hole":                            "DELETE FROM event_log WHERE seq = 4",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for range 3 {
				if err := b.write(person(), t, posted(ids.New())); err != nil {
					t.Fatal(err)
				}
			}
			tail := b.tail(&follower{more: make(chan struct{}, 1)})
			if err := tail.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := b.write(person(), t, posted(ids.New())); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := b.db.Pool.Exec(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if err := tail.Run(t.Context()); !errors.Is(err, app.ErrDiverged) {
				t.Errorf("the tail ended with %v", err)
			}
		})
	}
}

func TestPartitionsAreMadeAheadAndOldOnesGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	maintenance := app.NewMaintenance(app.PartitionConfig{Retention: time.Hour, Size: 1000000, Ahead: 3}, b.units, b.events)
	for range 3 {
		if err := b.write(person(), t, posted(ids.New())); err != nil {
			t.Fatal(err)
		}
	}
	if err := maintenance.Run(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if n := len(b.all(t)); n != 3 {
		t.Fatalf("young events went: %d are left", n)
	}
	if err := maintenance.Run(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left := b.all(t)
	if len(left) != 1 || left[0].Seq != 3 {
		t.Fatalf("of the old events are left %v, wanted is the head alone", left)
	}
	// The log jumps over two partitions: those before the head's go as a whole.
	if _, err := b.db.Pool.Exec(t.Context(), "UPDATE sequence_counters SET value = 2000005 WHERE name = 'event_seq'"); err != nil {
		t.Fatal(err)
	}
	if err := b.write(person(), t, posted(ids.New())); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := maintenance.Run(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	rows, err := b.db.Pool.Query(t.Context(), "SELECT relname::text FROM pg_class WHERE relname ~ '^event_log_p[0-9]+$' ORDER BY relname")
	if err != nil {
		t.Fatal(err)
	}
	if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	if want := "[event_log_p2000001 event_log_p3000001 event_log_p4000001 event_log_p5000001]"; fmt.Sprint(names) != want {
		t.Errorf("partitions %v, want %s", names, want)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store := app.NewIdempotency(app.IdempotencyConfig{TTL: time.Hour, MaxBodyBytes: 100, CleanupBatch: 10}, postgres.NewKeys(b.db.DB), b.units)
	key := idempotency.Key{ScopeID: ids.New(), OperationID: "createSpace", Value: "k", RequestHash: [32]byte{1}}
	do := func(k idempotency.Key, work func(ctx context.Context) error) (*idempotency.Answer, error) {
		var stored *idempotency.Answer
		err := b.units.Do(person(), func(ctx context.Context) (err error) {
			if stored, err = store.Begin(ctx, k); err != nil || stored != nil {
				return err
			}
			if err := work(ctx); err != nil {
				return err
			}
			return store.Complete(ctx, k, idempotency.Answer{Status: 201, Header: map[string]string{"ETag": `"1"`}, Body: []byte("made")})
		})
		return stored, err
	}
	runs := 0
	count := func(context.Context) error { runs++; return nil }

	if stored, err := do(key, count); err != nil || stored != nil {
		t.Fatalf("first: %v %v", stored, err)
	}
	stored, err := do(key, count)
	if err != nil || stored == nil || string(stored.Body) != "made" || stored.Status != 201 || stored.Header["ETag"] != `"1"` {
		t.Fatalf("repeat: %+v %v", stored, err)
	}
	other := key
	other.RequestHash = [32]byte{2}
	if _, err := do(other, count); !errs.Is(err, errs.CodeIdempotencyKeyReuse) {
		t.Errorf("another body: %v", err)
	}
	if runs != 1 {
		t.Errorf("the work ran %d times", runs)
	}

	failing := key
	failing.Value = "f"
	fault := errors.New("no")
	if _, err := do(failing, func(context.Context) error { return fault }); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	if stored, err := do(failing, count); err != nil || stored != nil {
		t.Errorf("a rolled back request left its key: %+v %v", stored, err)
	}

	final := key
	final.Value = "e"
	if err := store.CompleteFailed(context.Background(), final, idempotency.Answer{Status: 409, Body: []byte("conflict")}); err != nil {
		t.Fatal(err)
	}
	if stored, err := do(final, count); err != nil || stored == nil || stored.Status != 409 {
		t.Errorf("final error: %+v %v", stored, err)
	}

	if n, err := store.Cleanup(t.Context(), time.Now().Add(2*time.Hour)); err != nil || n != 3 {
		t.Errorf("cleaned %d keys: %v", n, err)
	}
}

func TestConcurrentTwinWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	store := app.NewIdempotency(app.IdempotencyConfig{TTL: time.Hour, MaxBodyBytes: 100, CleanupBatch: 10}, postgres.NewKeys(b.db.DB), b.units)
	key := idempotency.Key{ScopeID: ids.New(), OperationID: "createSpace", Value: "k"}
	var mu gosync.Mutex
	effects, replays := 0, 0
	var group gosync.WaitGroup
	for range 12 {
		group.Go(func() {
			err := b.units.Do(person(), func(ctx context.Context) error {
				stored, err := store.Begin(ctx, key)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				if stored != nil {
					replays++
					return nil
				}
				effects++
				return store.Complete(ctx, key, idempotency.Answer{Status: 200})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if effects != 1 || replays != 11 {
		t.Errorf("%d effects and %d replays of 12 requests", effects, replays)
	}
}

// A text of angle brackets stays as long as it is: escaped for HTML it would pass the bound of
// a payload that the text itself keeps.
func TestAPayloadIsNotEscapedForHTML(t *testing.T) {
	b := setup(t)
	text := strings.Repeat("<&>", 50_000)
	err := b.units.Do(context.Background(), func(ctx context.Context) error {
		return b.appender.Append(ctx, eventlog.Event{Type: "message.created", Payload: map[string]string{"content": text}})
	})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM event_log WHERE payload->>'content' = $1", text); n != 1 {
		t.Errorf("%d events have the text", n)
	}
}
