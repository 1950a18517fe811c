// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance/adapters/keystore"
	instancepg "github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/jsoncanon"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

type bundle struct {
	db    *pgtest.DB
	units *pg.Units
	clock *clocktest.Fake
	svc   *app.Service
	cfg   app.Config
	deps  app.Deps
	sink  *memorySink
	// registry is that of all units.
	registry *txn.Registry
	// maintenance makes the units refuse to write.
	maintenance atomic.Bool
}

func setup(t *testing.T, opts ...pgtest.Option) *bundle {
	t.Helper()
	b := &bundle{
		db:    pgtest.New(t, append([]pgtest.Option{pgtest.WithMigrations("0001", "0002", "0015", "0016")}, opts...)...),
		clock: clocktest.New(time.Date(2026, 3, 29, 1, 30, 0, 123456789, time.UTC)),
	}
	registry := txn.NewRegistry()
	b.registry = registry
	registry.SetHooks(txn.Hooks{Audit: func(ctx context.Context) error { return b.svc.Append(ctx) }})
	registry.Seal()
	b.units = pg.NewUnits(b.db.DB, registry, b.clock, pg.UnitConfig{Maintenance: b.maintenance.Load})
	store, err := keystore.Open(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	inst := instanceapp.New(instanceapp.DefaultConfig(), instanceapp.Deps{
		Store: instancepg.New(b.db.DB), KeyStore: store, Units: b.units, Clock: b.clock, Log: quiet,
	})
	cfg := app.DefaultConfig()
	cfg.Strict, cfg.IPKeyWrap, cfg.TrimBatch = true, make([]byte, 32), 3
	b.sink = &memorySink{held: map[int64]string{}}
	b.cfg, b.deps = cfg, app.Deps{
		Sink:  b.sink,
		Store: postgres.New(b.db.DB), Units: b.units, Clock: b.clock, Counters: inst, Instance: inst, Keys: inst, Public: inst,
		Canonicalize: jsoncanon.Transform, Log: quiet,
	}
	b.svc = app.New(b.cfg, b.deps)
	inst.SetPeers(instanceapp.Peers{Audit: b.svc})
	ctx := actor.With(context.Background(), actor.System())
	if _, _, err := inst.EnsureInstance(ctx, instanceapp.EnsureInput{SchemaVersion: 2, MinServerVersion: "0.1.0"}); err != nil {
		t.Fatal(err)
	}
	if err := b.svc.EnsureIPKeys(ctx); err != nil {
		t.Fatal(err)
	}
	if err := inst.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

func entry() auditing.Entry {
	return auditing.Entry{
		Action: "grant.create", ResourceKind: "grant", ResourceID: ids.New(), SpaceID: ids.New(),
		Details: map[string]any{"level": "write", "capabilities": []string{"files.upload"}, "subject_id": ids.New()},
	}
}

func request() context.Context {
	ctx := reqmeta.With(context.Background(), reqmeta.Meta{
		CorrelationID: "4bf92f35-77b3-4da6-a3ce-929d0e0e4736", ClientIP: netip.MustParseAddr("2001:db8::17"),
	})
	return actor.With(ctx, actor.Actor{ID: ids.New(), Kind: actor.KindPerson, SessionID: ids.New(), DeviceID: ids.New()})
}

func (b *bundle) record(t *testing.T, n int) {
	t.Helper()
	ctx := request()
	for range n {
		if err := b.units.Do(ctx, func(ctx context.Context) error { return b.svc.Allowed(ctx, entry()) }); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bundle) breaks(t *testing.T) []audit.Break {
	t.Helper()
	r, err := b.svc.Verify(context.Background(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r.Breaks
}

func TestRowsOfUnitsFormOneChain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.db.Count(t, "SELECT max(seq) FROM audit_events")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { b.record(t, 5) })
	}
	wg.Wait()
	failed := errors.New("veto")
	err := b.units.Do(request(), func(ctx context.Context) error {
		if err := b.svc.Allowed(ctx, entry()); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	r, err := b.svc.Verify(context.Background(), 0, 0)
	if err != nil || !r.OK || r.LastSeq != before+20 || r.Checked != r.LastSeq {
		t.Fatalf("%+v, %v", r, err)
	}
	if n := b.db.Count(t, "SELECT count(DISTINCT ip_pseudonym) FROM audit_events WHERE actor_kind = 'person'"); n != 1 {
		t.Errorf("%d pseudonyms for one address", n)
	}
}

func TestDenialsAreWrittenAfterTheRollbackAndCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, e := request(), auditing.Entry{Action: "grant.create", Reason: "not_owner", ResourceKind: "target"}
	_ = b.units.Do(ctx, func(ctx context.Context) error {
		for range 5 {
			b.svc.Denied(ctx, e)
		}
		return errors.New("refused")
	})
	runCtx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.svc.Run(runCtx) }()
	denied := func() int64 { return b.db.Count(t, "SELECT count(*) FROM audit_events WHERE outcome = 'deny'") }
	deadline := time.Now().Add(10 * time.Second)
	for denied() != 1 {
		if time.Now().After(deadline) {
			t.Fatal("the first denial is not written")
		}
	}
	b.svc.Denied(request(), auditing.Entry{Action: "grant.create", Reason: "level_insufficient"})
	for denied() != 2 {
		if time.Now().After(deadline) {
			t.Fatal("a different denial is not written")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := b.db.Count(t, "SELECT (details->>'count')::bigint FROM audit_events WHERE details ? 'count'"); n != 4 {
		t.Errorf("the window counted %d further denials", n)
	}
	if got := b.breaks(t); len(got) > 0 {
		t.Errorf("breaks %v", got)
	}
}

// In maintenance reads go on unrecorded, the act that is let in is recorded, and the process
// has the keys of its pseudonyms.
func TestMaintenanceRecordsOnlyWhatMayWrite(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.maintenance.Store(true)
	before := b.db.Count(t, "SELECT count(*) FROM audit_events")
	b.clock.Advance(90 * 24 * time.Hour)
	if err := b.svc.EnsureIPKeys(request()); err != nil {
		t.Errorf("the keys of a new period: %v", err)
	}
	if err := b.svc.Allowed(request(), entry()); err != nil {
		t.Errorf("a read fails for its record: %v", err)
	}
	b.svc.Denied(request(), auditing.Entry{Action: "grant.create", Reason: "not_owner"})
	b.svc.Drain(request())
	if n := b.db.Count(t, "SELECT count(*) FROM audit_events") - before; n != 0 {
		t.Errorf("%d rows were written", n)
	}
	err := b.units.Do(txn.ExemptFromMaintenance(request()), func(ctx context.Context) error { return b.svc.Allowed(ctx, entry()) })
	if n := b.db.Count(t, "SELECT count(*) FROM audit_events") - before; err != nil || n != 1 {
		t.Errorf("an exempted act: %d rows, %v", n, err)
	}
}

func TestTheTableRefusesChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, sql := range []string{
		"UPDATE audit_events SET action = 'x'", "DELETE FROM audit_events", "TRUNCATE audit_events",
	} {
		if _, err := b.db.Pool.Exec(context.Background(), sql); err == nil {
			t.Errorf("%s succeeded", sql)
		}
	}
}

// A superuser who removes the trigger can change rows, but not unseen.
func TestEveryTamperedColumnIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.record(t, 4)
	job := b.svc.ChainVerify()
	if err := job.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.db.Exec(t, "ALTER TABLE audit_events DISABLE TRIGGER ALL")
	seq := b.db.Count(t, "SELECT max(seq) - 1 FROM audit_events")
	b.db.Exec(t, "CREATE TABLE kept AS SELECT * FROM audit_events")
	restore := func() {
		b.db.Exec(t, "DELETE FROM audit_events")
		b.db.Exec(t, "INSERT INTO audit_events SELECT * FROM kept")
	}
	for _, change := range []string{
		"id = gen_random_uuid()", "occurred_at = occurred_at + interval '1 microsecond'", "action = 'grant.revoke'",
		"outcome = 'deny'", "reason = 'x'", "actor_kind = 'system'", "actor_id = gen_random_uuid()", "session_id = NULL",
		"device_id = NULL", "token_id = gen_random_uuid()", "acting_for_id = gen_random_uuid()", "view_as_id = gen_random_uuid()",
		"resource_kind = 'run'", "resource_id = NULL", "space_id = NULL", "channel_id = gen_random_uuid()",
		"details = '{\"level\":\"manage\"}'", "correlation_id = NULL", "ip_key_id = NULL", "ip_pseudonym = 'x'",
		"prev_hash = sha256('x')", "hash = sha256('x')",
	} {
		b.db.Exec(t, fmt.Sprintf("UPDATE audit_events SET %s WHERE seq = %d", change, seq))
		got := b.breaks(t)
		if len(got) == 0 || got[0].Seq != seq {
			t.Errorf("%s: breaks %v", change, got)
		}
		restore()
	}
	b.db.Exec(t, "DELETE FROM audit_events WHERE seq = $1", seq)
	if got := b.breaks(t); !slices.Contains(got, audit.Break{Seq: seq + 1, Kind: audit.BreakGap}) {
		t.Errorf("a deleted row: %v", got)
	}
	restore()
	// The end of the chain may be cut without a break between rows; the checkpoint tells.
	b.db.Exec(t, "DELETE FROM audit_events WHERE seq > $1", seq)
	if err := job.Run(context.Background()); err == nil {
		t.Error("a cut end was signed over")
	}
	restore()
	if got := b.breaks(t); len(got) > 0 {
		t.Errorf("after restoring: %v", got)
	}
}

func TestCheckpointsFollowEachOtherAndRefuseBreaks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, job := context.Background(), b.svc.ChainVerify()
	checkpoints := func() int64 { return b.db.Count(t, "SELECT count(*) FROM audit_checkpoints") }
	for i := range 3 {
		b.record(t, 2)
		for range 2 { // Without new rows there is no new checkpoint.
			if err := job.Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := checkpoints(); n != int64(i+1) {
			t.Fatalf("%d checkpoints after round %d", n, i)
		}
	}
	r, err := b.svc.Verify(ctx, 0, 0)
	if err != nil || !r.OK || r.Checkpoints != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	last := b.db.Count(t, "SELECT max(seq) FROM audit_checkpoints")
	for _, change := range []string{
		"jws = replace(jws, '.', '.A')", "hash = sha256('x')", "prev_checkpoint_hash = sha256('x')", "first_seq = 2",
	} {
		b.db.Exec(t, "CREATE TABLE kept_c AS SELECT * FROM audit_checkpoints")
		b.db.Exec(t, fmt.Sprintf("UPDATE audit_checkpoints SET %s WHERE seq = %d", change, last))
		if got := b.breaks(t); len(got) == 0 || got[0].Seq != last {
			t.Errorf("%s: breaks %v", change, got)
		}
		b.db.Exec(t, "DELETE FROM audit_checkpoints")
		b.db.Exec(t, "INSERT INTO audit_checkpoints SELECT * FROM kept_c")
		b.db.Exec(t, "DROP TABLE kept_c")
	}
	b.record(t, 1)
	b.db.Exec(t, "ALTER TABLE audit_events DISABLE TRIGGER ALL")
	b.db.Exec(t, "UPDATE audit_events SET reason = 'x' WHERE seq = (SELECT max(seq) FROM audit_events)")
	var broken *app.BrokenError
	if err := job.Run(ctx); !errors.As(err, &broken) || broken.Breaks[0].Kind != audit.BreakHash {
		t.Errorf("a break was answered with %v", err)
	}
	if n := checkpoints(); n != 3 {
		t.Errorf("%d checkpoints after a break", n)
	}
}

func TestTheServersRoleMayOnlyAddAndRead(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	b.record(t, 1)
	var may []string
	rows, err := b.db.Pool.Query(context.Background(), `
		SELECT privilege_type FROM information_schema.role_table_grants
		WHERE table_name = 'audit_events' AND grantee = 'bothy_app' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var p string
		if err := rows.Scan(&p); err != nil {
			t.Fatal(err)
		}
		may = append(may, p)
	}
	if !slices.Equal(may, []string{"INSERT", "SELECT"}) {
		t.Errorf("bothy_app may %v", may)
	}
}

// memorySink is a sink that can be away.
type memorySink struct {
	held  map[int64]string
	fault error
}

// Deposit implements app.Sink.
func (s *memorySink) Deposit(_ context.Context, seq int64, jws string) error {
	if s.fault == nil {
		s.held[seq] = jws
	}
	return s.fault
}

func TestCheckpointsReachTheSinkInTheirOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	ctx, job := context.Background(), b.svc.ChainVerify()
	run := func() {
		b.record(t, 1)
		if err := job.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	state := func(state string) int64 {
		return b.db.Count(t, "SELECT count(*) FROM audit_checkpoints WHERE sink_state = $1", state)
	}
	run()
	b.sink.fault = errors.New("away")
	run()
	run()
	if n := state("pending"); n != 2 || state("deposited") != 1 {
		t.Fatalf("%d wait", n)
	}
	if n := b.db.Count(t, "SELECT sum(sink_attempts) FROM audit_checkpoints WHERE sink_error = 'unavailable'"); n != 2 {
		t.Errorf("the first that waits was tried %d times", n)
	}
	r, err := b.svc.Verify(ctx, 0, 0)
	if err != nil || !r.OK || !slices.Equal(r.Warnings, []string{audit.WarnSinkPending}) {
		t.Errorf("%+v, %v", r, err)
	}
	b.sink.fault = nil
	if err := job.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := state("deposited"); n != 3 || len(b.sink.held) != 3 {
		t.Errorf("%d are deposited", n)
	}
}

func TestFiltersNarrowTogether(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	ctx, other := request(), request()
	store := postgres.New(b.db.DB)
	space := ids.New()
	for i, action := range []string{"grant.create", "grant.revoke", "group.create", "grant.create", "token.create"} {
		who, e := ctx, auditing.Entry{Action: action, ResourceKind: "grant", ResourceID: ids.New(), SpaceID: space, ChannelID: ids.New()}
		if i == 3 {
			who, e.SpaceID = other, ids.New()
		}
		if err := b.units.Do(who, func(ctx context.Context) error { return b.svc.Allowed(ctx, e) }); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Minute)
	}
	me, now := actor.From(ctx).ID, b.clock.Now()
	all, err := store.Events(ctx, app.EventFilter{ActorID: me, Limit: 10})
	if err != nil || len(all) != 4 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for name, c := range map[string]struct {
		f    app.EventFilter
		want int
	}{
		"actor and action":    {app.EventFilter{ActorID: me, Action: "grant.create"}, 1},
		"action":              {app.EventFilter{Action: "grant.create"}, 2},
		"beginning of action": {app.EventFilter{ActionPrefix: "grant."}, 3},
		"beginning and space": {app.EventFilter{ActionPrefix: "grant.", SpaceID: space}, 2},
		"resource":            {app.EventFilter{ResourceID: all[0].ResourceID}, 1},
		"channel":             {app.EventFilter{ChannelID: all[1].ChannelID}, 1},
		"space":               {app.EventFilter{SpaceID: space}, 4},
		"outcome":             {app.EventFilter{SpaceID: space, Outcome: "deny"}, 0},
		"from":                {app.EventFilter{ActionPrefix: "grant.", From: now.Add(-150 * time.Second)}, 1},
		"to":                  {app.EventFilter{SpaceID: space, To: now.Add(-3 * time.Minute)}, 2},
		"page":                {app.EventFilter{SpaceID: space, Before: all[0].Seq}, 3},
		"limit":               {app.EventFilter{ActionPrefix: "g", Limit: 2}, 2},
	} {
		if c.f.Limit == 0 {
			c.f.Limit = 10
		}
		list, err := store.Events(ctx, c.f)
		if err != nil || len(list) != c.want {
			t.Errorf("%s: %d rows, %v; want %d", name, len(list), err, c.want)
		}
		if !slices.IsSortedFunc(list, func(a, b domain.Row) int { return int(b.Seq - a.Seq) }) {
			t.Errorf("%s: the newest is not first", name)
		}
	}
}

// maint connects as the role of retention.
type maint struct {
	b      *bundle
	opened int
}

// Open implements app.Maintenance.
func (m *maint) Open(ctx context.Context) (txn.UnitOfWork, func(), error) {
	m.opened++
	c := pg.Default()
	c.DSN = strings.Replace(m.b.db.DSN, "user="+pg.RoleApp, "user="+pg.RoleMaint, 1)
	c.MaxConns, c.CommitMode, c.AllowUnsafe = 4, pg.CommitSynchronous, true
	// The role has two connections for all tests of the cluster.
	var db *pg.DB
	var err error
	for deadline := time.Now().Add(20 * time.Second); ; {
		if db, err = pg.Open(ctx, c, slog.New(slog.DiscardHandler)); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return nil, nil, err
		}
	}
	return pg.NewUnits(db, m.b.registry, m.b.clock, pg.UnitConfig{}), db.Close, nil
}

func TestOldRowsGoAndTheRecordGoesOnFromAnAnchor(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	ctx := actor.With(context.Background(), actor.System())
	job, m := b.svc.ChainVerify(), &maint{b: b}
	trim := b.svc.Trim(postgres.New(b.db.DB), m)
	run := func() {
		t.Helper()
		if err := trim.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	first := func() int64 { return b.db.Count(t, "SELECT min(seq) FROM audit_events") }
	b.record(t, 7)
	if err := job.Run(ctx); err != nil {
		t.Fatal(err)
	}
	covered := b.db.Count(t, "SELECT max(seq) FROM audit_checkpoints")
	b.record(t, 2)
	run()
	if first() != 1 || m.opened != 0 {
		t.Fatalf("young rows: the first is %d, %d connections", first(), m.opened)
	}
	b.clock.Advance(app.DefaultConfig().Retention + time.Hour)
	b.record(t, 1)
	run()
	if first() != covered+1 {
		t.Fatalf("the first row is %d; what no checkpoint covers stays from %d on", first(), covered+1)
	}
	r, err := b.svc.Verify(ctx, 0, 0)
	if err != nil || !r.OK || !slices.Contains(r.Warnings, audit.WarnTrimmed) {
		t.Fatalf("after the removal: %+v, %v", r, err)
	}
	if n := b.db.Count(t, "SELECT sum((details->>'count')::bigint) FROM audit_events WHERE action = 'audit.retention_trim'"); n != covered {
		t.Errorf("the anchors count %d rows of %d", n, covered)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM audit_ip_keys WHERE key_wrapped IS NULL"); n == 0 {
		t.Error("keys whose time is over can still be opened")
	}
	if err := job.Run(ctx); err != nil {
		t.Errorf("the next checkpoint: %v", err)
	}
	run() // Nothing is old and covered but the rows behind the first checkpoint.
	if r, err := b.svc.Verify(ctx, 0, 0); err != nil || !r.OK {
		t.Errorf("after a second run: %+v, %v", r, err)
	}
	// A beginning that somebody else removes has no anchor.
	b.db.Exec(t, "ALTER TABLE audit_events DISABLE TRIGGER ALL")
	b.db.Exec(t, "DELETE FROM audit_events WHERE seq = (SELECT min(seq) FROM audit_events)")
	if got := b.breaks(t); len(got) == 0 || got[0].Kind != audit.BreakAnchor {
		t.Errorf("a removed beginning: %v", got)
	}
}

func TestTheRecordGoesOnWhenEverythingIsOldAndFitsOneBatch(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	ctx := actor.With(context.Background(), actor.System())
	b.cfg.TrimBatch = 1000
	b.svc = app.New(b.cfg, b.deps)
	b.record(t, 3)
	if err := b.svc.ChainVerify().Run(ctx); err != nil {
		t.Fatal(err)
	}
	last := b.db.Count(t, "SELECT max(seq) FROM audit_events")
	if covered := b.db.Count(t, "SELECT max(seq) FROM audit_checkpoints"); covered != last {
		t.Fatalf("the checkpoint covers %d of %d rows", covered, last)
	}
	b.clock.Advance(b.cfg.Retention + time.Hour)

	if err := b.svc.Trim(postgres.New(b.db.DB), &maint{b: b}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	// The first anchor follows the last row, which goes then; the second follows the first.
	first, end := b.db.Count(t, "SELECT min(seq) FROM audit_events"), b.db.Count(t, "SELECT max(seq) FROM audit_events")
	if first != last+1 || end != last+2 {
		t.Fatalf("rows %d to %d remain, want the anchors %d and %d", first, end, last+1, last+2)
	}
	if r, err := b.svc.Verify(ctx, 0, 0); err != nil || !r.OK {
		t.Fatalf("after the removal: %+v, %v", r, err)
	}
}

// A record of one row is left alone, even when that is old and covered.
func TestARecordOfOneRowIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	ctx := actor.With(context.Background(), actor.System())
	b.record(t, 1)
	if err := b.svc.ChainVerify().Run(ctx); err != nil {
		t.Fatal(err)
	}
	b.db.Exec(t, "ALTER TABLE audit_events DISABLE TRIGGER ALL")
	b.db.Exec(t, "DELETE FROM audit_events WHERE seq < (SELECT max(seq) FROM audit_events)")
	b.clock.Advance(b.cfg.Retention + time.Hour)
	if err := b.svc.Trim(postgres.New(b.db.DB), &maint{b: b}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM audit_events"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

func TestOnlyTheRoleOfRetentionRemoves(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	b.record(t, 1)
	err := b.units.Do(context.Background(), func(ctx context.Context) error {
		_, _, err := postgres.New(b.db.DB).Remove(ctx, b.clock.Now().Add(time.Hour), 100, 10)
		return err
	})
	if err == nil {
		t.Error("the role of the server removed rows")
	}
	if n := b.db.Count(t, "SELECT min(seq) FROM audit_events"); n != 1 {
		t.Errorf("the first row is %d", n)
	}
}

// Nothing happens for a year: every row is old and covered. The last one holds the chain until
// the anchor does.
func TestARecordThatIsAllOldKeepsItsEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, pgtest.AsApp())
	ctx := actor.With(context.Background(), actor.System())
	b.record(t, 4)
	if err := b.svc.ChainVerify().Run(ctx); err != nil {
		t.Fatal(err)
	}
	covered := b.db.Count(t, "SELECT max(seq) FROM audit_events")
	b.clock.Advance(app.DefaultConfig().Retention + time.Hour)
	if err := b.svc.Trim(postgres.New(b.db.DB), &maint{b: b}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := b.db.Count(t, "SELECT min(seq) FROM audit_events"); n != covered+1 {
		t.Errorf("the first row is %d, want %d", n, covered+1)
	}
	if got := b.breaks(t); len(got) > 0 {
		t.Errorf("breaks %v", got)
	}
}
