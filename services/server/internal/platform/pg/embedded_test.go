// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// embeddedConfig has a folder that the unprivileged user may reach.
func embeddedConfig(t *testing.T) pg.EmbeddedConfig {
	t.Helper()
	base := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.Mode().Perm()&0o002 != 0 {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "bothy-embedded-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := pg.DefaultEmbedded()
	cfg.DataDir = filepath.Join(dir, "pg")
	cfg.SharedBuffers = 32 << 20
	cfg.StartTimeout = 30 * time.Second
	return cfg
}

func startEmbedded(t *testing.T, cfg pg.EmbeddedConfig) *pg.Embedded {
	t.Helper()
	e, err := pg.StartEmbedded(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	return e
}

func adminQuery(t *testing.T, e *pg.Embedded, sql string) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, e.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var text string
	if err := conn.QueryRow(ctx, sql).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func postmaster(t *testing.T, cfg pg.EmbeddedConfig) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cfg.DataDir, "pg18", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestEmbeddedServesAnInstance(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cfg := embeddedConfig(t)
	e := startEmbedded(t, cfg)
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "data_checksums": "on", "listen_addresses": "", "wal_level": "replica",
	} {
		if got := adminQuery(t, e, "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if info, err := os.Stat(cfg.DataDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data folder has mode %v, %v", info.Mode(), err)
	}
	if _, err := pg.Bootstrap(ctx, pg.BootstrapConfig{
		AdminDSN: e.AdminDSN(), Database: "bothy", Passwords: map[string]string{pg.RoleApp: "it's a secret", pg.RoleOwner: "other"},
	}); err != nil {
		t.Fatal(err)
	}
	c := pg.Default()
	c.Mode, c.Host, c.Port, c.Password = pg.ModeEmbedded, e.Host(), e.Port(), "it's a secret"
	db, err := pg.Open(ctx, c, slog.New(slog.DiscardHandler)) // Without AllowUnsafe: it is durable.
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	c.Password = "wrong"
	if db, err := pg.Open(ctx, c, slog.New(slog.DiscardHandler)); err == nil {
		db.Close()
		t.Error("a wrong password was accepted")
	}
	if _, err := pg.StartEmbedded(ctx, cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, pg.ErrSupervised) {
		t.Errorf("a second supervisor gave %v", err)
	}
}

func TestEmbeddedKeepsDataAndReplacesALostPassword(t *testing.T) {
	t.Parallel()
	cfg := embeddedConfig(t)
	e := startEmbedded(t, cfg)
	adminQuery(t, e, "SELECT set_config('x.y', 'z', false)")
	if _, err := pg.Bootstrap(context.Background(), pg.BootstrapConfig{AdminDSN: e.AdminDSN(), Database: "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(cfg.DataDir, "secrets", "superuser_password")); err != nil {
		t.Fatal(err)
	}
	again := startEmbedded(t, cfg)
	if got := adminQuery(t, again, "SELECT count(*)::text FROM pg_database WHERE datname = 'kept'"); got != "1" {
		t.Error("the database is gone")
	}
}

func TestEmbeddedRestartsACrashedServer(t *testing.T) {
	t.Parallel()
	cfg := embeddedConfig(t)
	e := startEmbedded(t, cfg)
	before := postmaster(t, cfg)
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	eventually(t, "another server runs", func() bool {
		text, err := os.ReadFile(filepath.Join(cfg.DataDir, "pg18", "postmaster.pid"))
		return err == nil && !strings.HasPrefix(string(text), strconv.Itoa(before)+"\n")
	})
	if err := e.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	adminQuery(t, e, "SELECT 'there'")
}

func TestEmbeddedGivesUpWhenTheServerKeepsEnding(t *testing.T) {
	t.Parallel()
	cfg := embeddedConfig(t)
	cfg.MaxRestarts = 0
	e := startEmbedded(t, cfg)
	if err := syscall.Kill(postmaster(t, cfg), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if err := e.Err(); err == nil || !strings.Contains(err.Error(), "immediate shutdown") {
		t.Errorf("got %v, want the end of the server's log", err)
	}
}

func TestEmbeddedMovesALongSocketPath(t *testing.T) {
	t.Parallel()
	cfg := embeddedConfig(t)
	cfg.DataDir = filepath.Join(filepath.Dir(cfg.DataDir), strings.Repeat("long", 25))
	e := startEmbedded(t, cfg)
	t.Cleanup(func() { _ = os.RemoveAll(e.Host()) })
	if strings.HasPrefix(e.Host(), cfg.DataDir) {
		t.Errorf("the socket is in %s", e.Host())
	}
	location, err := os.ReadFile(filepath.Join(cfg.DataDir, "run", "location"))
	if err != nil || strings.TrimSpace(string(location)) != e.Host() {
		t.Errorf("the place of the socket is recorded as %q, %v", location, err)
	}
	found, err := pg.FindEmbedded(cfg)
	if err != nil || found.Host != e.Host() || found.AdminDSN() != e.AdminDSN() {
		t.Errorf("another process finds %s, %v", found.Host, err)
	}
	adminQuery(t, e, "SELECT 'there'")
}

func TestEmbeddedRefusesSettingsItOwns(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{
		"fsync": false, "Full_Page_Writes": false, "unix_socket_group": false, "ssl_cert_file": false, "listen_addresses": false,
		"basic_archive.archive_directory": false, "work_mem": true, "random_page_cost": true,
	} {
		cfg := pg.DefaultEmbedded()
		cfg.Settings = map[string]string{name: "1"}
		if err := cfg.Validate(); (err == nil) != allowed {
			t.Errorf("%s gave %v", name, err)
		}
	}
	cfg := pg.DefaultEmbedded()
	cfg.DataDir = "relative/path"
	if cfg.Validate() == nil {
		t.Error("a relative data folder was accepted")
	}
}

func TestBinariesOfAnotherVersionAreNotUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, program := range []string{"initdb", "postgres"} {
		script := "#!/bin/sh\necho \"" + program + " (PostgreSQL) 15.4\"\n"
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pg.FindBinaries(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "15.4") {
		t.Errorf("got %v", err)
	}
}
