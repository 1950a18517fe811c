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
	machine, err := profile.Take(dir, postgresVersion(ctx, inst))
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

func postgresVersion(ctx context.Context, inst *system.Installation) string {
	conn, err := pgx.Connect(ctx, inst.AdminDSN())
	if err != nil {
		return ""
	}
	defer conn.Close(ctx)
	return conn.PgConn().ParameterStatus("server_version")
}

// Runs is how often a measurement is repeated; the median counts. BOTHY_PERF_RUNS changes it.
func Runs() int {
	if n, err := strconv.Atoi(os.Getenv("BOTHY_PERF_RUNS")); err == nil && n > 0 {
		return n
	}
	return 3
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
	bench      *Bench
	began      time.Time
	server, us time.Duration
}

// Watch begins to watch.
func (b *Bench) Watch() Usage {
	u := Usage{bench: b, began: time.Now()}
	u.server, _ = b.Server.CPU()
	u.us, _ = system.CPUOf(os.Getpid())
	return u
}

// Into writes the mean since Watch into a run.
func (u Usage) Into(r *report.Run) {
	span := time.Since(u.began).Seconds()
	server, _ := u.bench.Server.CPU()
	us, _ := system.CPUOf(os.Getpid())
	r.ServerCPU, r.GeneratorCPU = (server-u.server).Seconds()/span, (us-u.us).Seconds()/span
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
