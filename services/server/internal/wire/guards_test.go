// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
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
	var reasons []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if reasons = unready(t, address); slices.Contains(reasons, code) {
			return
		}
		select {
		case <-t.Context().Done():
		case <-time.After(20 * time.Millisecond): // The process tells nobody that it has settled.
		}
	}
	t.Fatalf("unready because of %v, want %s", reasons, code)
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
