// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// A process on a database that may be a copy stays alive and unready. It writes nothing, not
// even the keys that the copy lacks, and nobody reaches it.
func TestAServerOnACopyOfItsDatabaseTouchesNothing(t *testing.T) {
	db := pgtest.New(t, pgtest.AsApp())
	c := testConfig(t, db)
	db.Exec(t, "UPDATE instance SET db_system_identifier = '1'")
	c.HTTP.ListenAddr, c.HTTP.InternalListenAddr = freeAddress(t), freeAddress(t)
	serving := serve(t, c, nil)
	waitUnready(t, c.HTTP.InternalListenAddr, "restore_not_finalized")
	if n := db.Count(t, "SELECT count(*) FROM server_signing_keys") + db.Count(t, "SELECT count(*) FROM audit_events"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", c.HTTP.ListenAddr); err == nil {
		_ = conn.Close()
		t.Error("the public listener is open")
	}
	serving.stop(t)
}

func TestASchemaOfANewerServerKeepsTheProcessUnready(t *testing.T) {
	s := NewServer(newConfig(), Options{Log: slog.New(slog.DiscardHandler)})
	for _, step := range []struct {
		needed, running string
		usable          bool
	}{
		{"9.0.0", "0.0.0-dev", true},
		{"0.1.0", "0.1.0", true},
		{"0.2.0", "0.1.9", false},
	} {
		s.checkServerVersion(step.needed, step.running)
		if got := s.usable(t.Context()); got != step.usable {
			t.Errorf("needed %s, running %s: usable %v", step.needed, step.running, got)
		}
	}
}

// What the configuration says about the collector is what the collector gets: the headers of
// the secret, and the log when it is asked for.
func TestTheCollectorGetsTheLogWithItsHeaders(t *testing.T) {
	var logs atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/logs" && r.Header.Get("X-Key") == "v" {
			logs.Add(1)
		}
	}))
	defer collector.Close()
	headers := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("X-Key: v\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := LoadConfig(Sources{Flags: map[string]string{
		"server.public_url": "http://localhost:8080", "secrets.dir": t.TempDir(), "secrets.signing_key_dir": t.TempDir(),
		"telemetry.otlp_endpoint": collector.URL, "telemetry.otlp_headers_ref": "file:" + headers, "telemetry.export_logs": "true",
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(c, Options{Console: Console{Out: io.Discard, Err: io.Discard}})
	for _, step := range []func(context.Context) error{s.openSecrets, s.startTelemetry} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.log.Info("a line")
	if err := s.telemetry.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if logs.Load() == 0 {
		t.Error("the collector got no log with its headers")
	}
}

// In maintenance the server starts and answers reads, although it must not write.
func TestAServerInMaintenanceStarts(t *testing.T) {
	c := testConfig(t, pgtest.New(t, pgtest.AsApp()))
	c.HTTP.ListenAddr, c.HTTP.InternalListenAddr = freeAddress(t), freeAddress(t)
	for _, mode := range []string{"off", "read_only"} {
		c.HTTP.MaintenanceMode = mode
		c.derive()
		ready := make(chan string, 1)
		serving := serve(t, c, func(public, _ string) { ready <- public })
		select {
		case <-ready:
		case code := <-serving.done:
			t.Fatalf("with maintenance %s the server ended with %d", mode, code)
		case <-time.After(patience):
			t.Fatalf("with maintenance %s the server is not ready", mode)
		}
		var discovery struct {
			Maintenance string `json:"maintenance"`
		}
		getJSON(t, c.HTTP.ListenAddr, "/.well-known/bothy", &discovery)
		if discovery.Maintenance != mode {
			t.Errorf("discovery says maintenance %q, want %q", discovery.Maintenance, mode)
		}
		serving.stop(t)
	}
}

// Each role does its part and nothing else: api serves and reads the log but works on no job,
// worker works and has no door to the public. Health answers in both, on the internal address
// alone.
func TestEachRoleDoesItsPartAlone(t *testing.T) {
	db := pgtest.New(t, pgtest.AsApp())
	c := testConfig(t, db)
	c.HTTP.ListenAddr, c.HTTP.InternalListenAddr = freeAddress(t), freeAddress(t)
	for _, tc := range []struct {
		role               string
		public, log, works bool
	}{{"api", true, true, false}, {"worker", false, false, true}} {
		t.Run(tc.role, func(t *testing.T) {
			c.Lifecycle.Role = tc.role
			ready := make(chan struct{})
			serving := serve(t, c, func(string, string) { close(ready) })
			select {
			case <-ready:
			case <-time.After(patience):
				t.Fatal("not ready")
			}
			if got := status(t, c.HTTP.ListenAddr, "/api/v1/discovery") != 0; got != tc.public {
				t.Errorf("the public address answers: %v", got)
			}
			for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/api/v1/discovery": 404} {
				if got := status(t, c.HTTP.InternalListenAddr, path); got != want {
					t.Errorf("the internal address answers %s with %d, want %d", path, got, want)
				}
			}
			if tc.works {
				eventually(t, "a leader of the jobs", func() bool { return db.Count(t, "SELECT count(*) FROM jobs.river_leader") == 1 })
			} else if n := db.Count(t, "SELECT count(*) FROM jobs.river_leader"); n != 0 {
				t.Error("a role that does not work leads the jobs")
			}
			listening := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%event_log%'"
			if tc.log {
				eventually(t, "one reader of the log", func() bool { return db.Count(t, listening) == 1 })
			} else if n := db.Count(t, listening); n != 0 {
				t.Errorf("%d readers of the log", n)
			}
			serving.stop(t)
		})
	}
}

// status is the status of an answer, 0 when nobody listens.
func status(t *testing.T, address, path string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// eventually waits for what nobody announces.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func getJSON(t *testing.T, address, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

type running struct {
	signals chan os.Signal
	done    chan int
}

// serve runs a server until the test stops it.
func serve(t *testing.T, c *Config, ready func(public, internal string)) running {
	t.Helper()
	c.Lifecycle.DrainDelay = 0
	r := running{signals: make(chan os.Signal, 1), done: make(chan int, 1)}
	s := NewServer(c, Options{Console: Console{Out: io.Discard, Err: io.Discard}, Log: slog.New(slog.DiscardHandler), Ready: ready})
	go func() { r.done <- s.Run(context.Background(), r.signals) }()
	return r
}

const patience = 15 * time.Second

func (r running) stop(t *testing.T) {
	t.Helper()
	r.signals <- os.Interrupt
	select {
	case code := <-r.done:
		if code != 0 {
			t.Errorf("the server ended with %d", code)
		}
	case <-time.After(patience):
		t.Error("the server does not stop")
	}
}

// waitUnready waits until the process names code among the reasons why it is not ready.
func waitUnready(t *testing.T, address, code string) {
	t.Helper()
	eventually(t, "the reason "+code, func() bool { return slices.Contains(unready(t, address), code) })
}

func unready(t *testing.T, address string) (reasons []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil // Not listening yet.
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Checks []struct {
			OK   bool   `json:"ok"`
			Code string `json:"code"`
		} `json:"checks"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	for _, check := range answer.Checks {
		if !check.OK {
			reasons = append(reasons, check.Code)
		}
	}
	return reasons
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
