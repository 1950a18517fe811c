// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/test/accounting"
)

// Patience is how long a test waits for something that should happen at once.
const Patience = 15 * time.Second

// Server is a server under test.
type Server struct {
	// Clock is the clock of the server; moving it makes time pass.
	Clock *Clock
	// DB looks into the database of the server.
	DB *pgtest.DB
	// URL is the public address, without a path.
	URL string

	keys     map[string]string
	settings map[string]json.RawMessage
	config   *wire.Config
	log      *bytes.Buffer
	http     *http.Client
	watch    *watch
	signals  chan os.Signal
	done     chan int
	code     string
	people   people
}

// Option changes a server before it starts.
type Option func(*Server)

// WithKeys sets keys of the configuration.
func WithKeys(keys map[string]string) Option {
	return func(s *Server) {
		for k, v := range keys {
			s.keys[k] = v
		}
	}
}

// WithConfig changes the loaded configuration.
func WithConfig(change func(*wire.Config)) Option {
	return func(s *Server) { s.watch.changes = append(s.watch.changes, change) }
}

// WithSetting sets what an owner could set, before the server starts. The value is JSON.
// Without it a further device of a person is let in without approval, unlike by default.
func WithSetting(key, value string) Option {
	return func(s *Server) { s.settings[key] = json.RawMessage(value) }
}

// Start runs a server with a database of its own until the test ends. Buckets against abuse
// are wide open unless an option narrows them.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	s := &Server{
		Clock: newClock(), DB: pgtest.New(t, pgtest.AsApp()), log: &bytes.Buffer{},
		watch: newWatch(), signals: make(chan os.Signal, 2), done: make(chan int, 1),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: Patience, CheckRedirect: stay},
	}
	s.people.byHandle = map[string]*Client{}
	s.settings = map[string]json.RawMessage{"auth.device_approval": json.RawMessage(`"off"`)}
	s.keys = s.defaults(t)
	for _, o := range options {
		o(s)
	}
	s.load(t)
	s.prepare(t)
	s.run(t)
	t.Cleanup(func() {
		s.Stop(t)
		s.watch.report(t, s.logText())
	})
	return s
}

// stay keeps an answer that sends a browser elsewhere.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func (s *Server) defaults(t testing.TB) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if _, err := secrets.Init(secrets.InitOptions{Target: dir}); err != nil {
		t.Fatalf("harness: make the secrets: %v", err)
	}
	keyDir := filepath.Join(dir, "keys")
	if err := os.MkdirAll(keyDir, 0o700); err != nil {
		t.Fatalf("harness: %v", err)
	}
	address := freeAddress(t)
	s.URL = "http://" + address
	return map[string]string{
		"instance.environment":        "dev",
		"server.listen_addr":          address,
		"server.internal_listen_addr": "127.0.0.1:0",
		"server.public_url":           s.URL,
		"secrets.dir":                 filepath.Join(dir, secrets.StoreFolder),
		"secrets.signing_key_dir":     keyDir,
		"shutdown.drain_delay":        "0s",
		"shutdown.http_grace":         "2s",
		"shutdown.jobs_soft_timeout":  "1s",
		"auth.argon2.memory_kib":      "19456",
		"auth.argon2.iterations":      "2",
		"sync.log_poll_interval":      "100ms",
		"agent.ack_persist_interval":  "100ms",
		"log.level":                   "warn",
		"space.max":                   "1000",
	}
}

// freeAddress picks a port, because the public address is part of the configuration.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("harness: find a port: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

const wide = 100_000

func (s *Server) load(t testing.TB) {
	t.Helper()
	c, _, err := wire.LoadConfig(wire.Sources{Flags: s.keys})
	if err != nil {
		t.Fatalf("harness: configuration: %v", err)
	}
	for _, class := range c.RateLimit.Classes {
		class.Burst, class.PerMinute = wide, wide
	}
	c.Gateway.OpsPerMinute, c.Gateway.OpsBurst = wide, wide
	c.PG.DSN, c.Database.OwnerDSN = s.DB.DSN, strings.Replace(s.DB.DSN, "user="+pg.RoleApp, "user="+pg.RoleOwner, 1)
	c.Database.MaintDSN = strings.Replace(s.DB.DSN, "user="+pg.RoleApp, "user="+pg.RoleMaint, 1)
	for _, change := range s.watch.changes {
		change(c)
	}
	s.config = c
}

// prepare makes what migrations alone do not, and the code of the first owner.
func (s *Server) prepare(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	// A copy of a database does not keep the rights on the database itself.
	s.DB.Exec(t, "GRANT CREATE ON DATABASE "+s.DB.Pool.Config().ConnConfig.Database+" TO "+pg.RoleOwner)
	var out, trouble bytes.Buffer
	console := wire.Console{Out: &out, Err: &trouble}
	if err := wire.Prepare(ctx, s.config, console); err != nil {
		t.Fatalf("harness: prepare the database: %v\n%s", err, &trouble)
	}
	settings, err := json.Marshal(s.settings)
	Must(t, err)
	s.DB.Exec(t, "INSERT INTO instance_settings (section, document, version, updated_at) VALUES ('settings', $1, 1, $2)", settings, s.Clock.Now())
	out.Reset()
	if err := wire.FirstOwner(ctx, s.config, console, wire.Owner{Handle: ownerHandle, DisplayName: "Olga Owner"}); err != nil {
		t.Fatalf("harness: first owner: %v\n%s", err, &trouble)
	}
	s.code = strings.TrimSpace(out.String())
}

func (s *Server) run(t testing.TB) {
	t.Helper()
	ready := make(chan struct{})
	s.watch.book, s.watch.db = accounting.Open(), s.DB
	log := &lockedWriter{to: s.log, mu: &s.watch.mu}
	server := wire.NewServer(s.config, wire.Options{
		Console: wire.Console{Out: log, Err: log}, Clock: s.Clock, Observer: s.watch,
		Unproven: s.watch.unproven, Inspect: s.watch.inspect,
		Log:   slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Ready: func(string, string) { close(ready) },
	})
	go func() { s.done <- server.Run(context.Background(), s.signals) }()
	select {
	case <-ready:
		for _, kind := range server.JobKinds() {
			s.watch.book.Registered(kind)
		}
	case code := <-s.done:
		t.Fatalf("harness: the server ended with %d:\n%s", code, s.logText())
	case <-time.After(2 * Patience):
		t.Fatalf("harness: the server is not ready:\n%s", s.logText())
	}
}

// Stop ends the server in order, as a signal does; a second call does nothing.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.signals == nil {
		return
	}
	s.signals <- os.Interrupt
	s.signals = nil
	select {
	case code := <-s.done:
		if code != 0 {
			t.Errorf("harness: the server ended with %d:\n%s", code, s.logText())
		}
	case <-time.After(2 * Patience):
		t.Errorf("harness: the server does not stop:\n%s", s.logText())
	}
	s.http.CloseIdleConnections()
}

// Config is what the server runs with. Only options change it.
func (s *Server) Config() *wire.Config { return s.config }

func (s *Server) logText() string {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	const most = 20_000
	text := s.log.String()
	if len(text) > most {
		text = "...\n" + text[len(text)-most:]
	}
	return text
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

// Write implements io.Writer.
func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// Eventually waits until the condition holds.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting after %s: %s", Patience, what)
		}
		time.Sleep(pause)
	}
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("unexpected: %w", err))
	}
}
