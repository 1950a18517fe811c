// SPDX-License-Identifier: Apache-2.0

// Package bench brings up what a measurement measures: the built server as a child process with an embedded database
// that is up already, people with API tokens, and a report that knows the machine and the settings.
package bench

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/perf/internal/load"
	"github.com/OWNER/bothy/services/server/perf/internal/profile"
	"github.com/OWNER/bothy/services/server/perf/internal/report"
	"github.com/OWNER/bothy/services/server/test/ledger"
	"github.com/OWNER/bothy/services/server/test/system"
)

// Bench is an installation under measurement.
type Bench struct {
	*system.Installation
	Server *system.Server
	Team   *system.Team
	Report *report.Report
	Texts  load.Texts
}

// Size of the team.
const (
	Authors  = 50
	Channels = 20
	Seed     = 20260101
)

// settings raise what protects a server from its clients, because all clients here come from one address and write more
// than people do. Nothing else differs from the defaults.
func settings() map[string]string {
	keys := map[string]string{"gateway.max_unidentified_per_ip": "1000"}
	for _, class := range []string{
		"public_auth", "auth_session", "sensitive", "read", "write", "message", "admin", "gateway_connect", "gateway_connect_principal",
	} {
		keys["ratelimit.class."+class+".burst"] = "100000"
		keys["ratelimit.class."+class+".per_minute"] = "100000"
	}
	return keys
}

// Up brings up the server for a test. Everything ends with the test.
func Up(t *testing.T, test string, people, channels int) *Bench {
	t.Helper()
	b := Install(t, test)
	ctx := t.Context()
	var err error
	if b.Server, err = b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of the server:\n%s", b.Server.Log())
		}
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := b.Server.Stop(stop); err != nil {
			t.Error(err)
		}
	})
	if b.Team, err = b.Populate(ctx, people, channels); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(b.Team.People))
	for i, p := range b.Team.People {
		ids[i] = p.ID
	}
	b.Texts = load.NewTexts(Seed, ids)
	b.Report.Load["people"], b.Report.Load["channels"], b.Report.Load["seed"] = people, channels, Seed
	return b
}

// Install makes an installation without a running server.
func Install(t *testing.T, test string) *Bench {
	t.Helper()
	ctx := t.Context()
	dir := folder(t)
	binary, err := system.Build(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	inst, err := system.Install(ctx, system.Options{Dir: dir, Binary: binary, DatabaseApart: true, Config: settings()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inst.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	changed, err := inst.Changed(ctx)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := profile.Take(dir, admin(t, inst).PgConn().ParameterStatus("server_version"))
	if err != nil {
		t.Fatal(err)
	}
	return &Bench{Installation: inst, Report: report.New(test, machine, changed)}
}

// folder is a short path on a real disk: a socket has at most 107 bytes, and flushing to memory costs nothing.
func folder(t *testing.T) string {
	t.Helper()
	base := os.Getenv("BOTHY_PERF_DIR")
	if base == "" {
		base = os.TempDir()
	}
	dir, err := os.MkdirTemp(base, "bothy-perf-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // #nosec G302 -- PostgreSQL runs as another user
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Admin connects to the database as superuser. The connection ends with the test.
func (b *Bench) Admin(t *testing.T) *pgx.Conn {
	t.Helper()
	return admin(t, b.Installation)
}

func admin(t *testing.T, inst *system.Installation) *pgx.Conn {
	t.Helper()
	dsn, err := inst.AdminDSN()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// Runs is how often a measurement is repeated; the median counts. BOTHY_PERF_RUNS changes it.
func Runs() int {
	if n, err := strconv.Atoi(os.Getenv("BOTHY_PERF_RUNS")); err == nil && n > 0 {
		return n
	}
	return 3
}

// Repeat measures until as many runs as asked for are valid, at most twice as often. A run in which the generator was
// late says something about the machine and nothing about the server; it stays in the report and does not count. It
// gives the figures of the valid runs and reports whether there are enough of them.
func Repeat(measure func(n int) (figure float64, valid bool)) (figures []float64, enough bool) {
	for n := range 2 * Runs() {
		if figure, valid := measure(n); valid {
			figures = append(figures, figure)
		}
		if len(figures) == Runs() {
			return figures, true
		}
	}
	return figures, false
}

// Span is the length of a measured part; BOTHY_PERF_SECONDS changes it.
func Span(standard time.Duration) time.Duration {
	if n, err := strconv.Atoi(os.Getenv("BOTHY_PERF_SECONDS")); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	return standard
}

// Usage watches how many cores the server and this process use.
type Usage struct {
	bench                *Bench
	began                time.Time
	server, database, us time.Duration
}

// Watch begins to watch.
func (b *Bench) Watch() Usage {
	u := Usage{bench: b, began: time.Now()}
	u.server, _ = b.Server.CPU()
	u.database, _ = b.DatabaseCPU()
	u.us, _ = system.CPUOf(os.Getpid())
	return u
}

// Into writes the mean since Watch into a run.
func (u Usage) Into(r *report.Run) {
	span := time.Since(u.began).Seconds()
	server, _ := u.bench.Server.CPU()
	database, _ := u.bench.DatabaseCPU()
	us, _ := system.CPUOf(os.Getpid())
	cores := func(used, before time.Duration) float64 { return (used - before).Seconds() / span }
	r.ServerCPU, r.DatabaseCPU, r.GeneratorCPU = cores(server, u.server), cores(database, u.database), cores(us, u.us)
}

// Callers are the authors, each over connections of its own pool.
func (b *Bench) Callers(connections int) []*system.Client {
	h := system.NewHTTPClient(connections)
	out := make([]*system.Client, len(b.Team.People))
	for i, p := range b.Team.People {
		out[i] = p.WithHTTP(h)
	}
	return out
}

// Write sends message n as its author into its channel and writes it into the ledger.
func (b *Bench) Write(ctx context.Context, book *ledger.Ledger, authors []*system.Client, n int, id string) error {
	author, thread, text := authors[n%len(authors)], b.Team.Channels[n%len(b.Team.Channels)].ThreadID, b.Texts.Text(n)
	book.Intend(id, thread, text)
	book.Sent(id)
	w, err := author.Send(ctx, thread, id, text)
	switch {
	case err == nil:
		return book.Acknowledge(id, w.ID, w.ThreadSeq)
	case system.StatusOf(err) >= http.StatusBadRequest && system.StatusOf(err) < http.StatusInternalServerError:
		book.Refuse(id)
	}
	return err
}

// Audit reads every thread back and compares it with the ledger. A contradiction fails the test whatever the figures.
func (b *Bench) Audit(t *testing.T, book *ledger.Ledger) {
	t.Helper()
	threads := map[string][]ledger.Stored{}
	for _, c := range b.Team.Channels {
		list, err := b.Owner.Messages(t.Context(), c.ThreadID)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			threads[c.ThreadID] = append(threads[c.ThreadID], ledger.Stored{MessageID: m.ID, ClientID: m.ClientMsgID, Content: m.Content, ThreadSeq: m.ThreadSeq})
		}
	}
	b.Report.Invariants = append(b.Report.Invariants, book.Check(threads)...)
	for _, found := range b.Report.Invariants {
		t.Error(found)
	}
}

// Finish writes the report, prints its checks and fails the test for a missed one.
func (b *Bench) Finish(t *testing.T) {
	t.Helper()
	name, err := b.Report.Write()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range b.Report.Checks {
		fmt.Println(c)
		if c.Verdict != report.Pass {
			t.Errorf("%s is %s", c.Name, c.Verdict)
		}
	}
	if rel, err := filepath.Rel(report.Root(), name); err == nil && !strings.HasPrefix(rel, "..") {
		name = rel
	}
	fmt.Println("report:", name)
}

// Count is a convenience for the counters of a run.
func Count(r load.Result) map[string]any {
	out := map[string]any{"sent": r.Sent, "failed": r.Failed, "dropped": r.Dropped}
	if r.FirstError != nil {
		out["first_error"] = r.FirstError.Error()
	}
	return out
}

// Keys are the settings that this harness changes, for the documentation.
func Keys() []string { return slices.Sorted(maps.Keys(settings())) }
