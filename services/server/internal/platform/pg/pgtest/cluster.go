// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// EnvDSN names a running cluster that test processes share: a libpq address of a superuser
// with any database.
const EnvDSN = "BOTHY_TEST_POSTGRES"

const startTimeout = 20 * time.Second

// fastSettings trade durability for speed; a lost test database is made again.
var fastSettings = []string{
	"fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off",
	"wal_level=minimal", "max_wal_senders=0", "max_wal_size=4GB", "checkpoint_timeout=1h",
}

// durableSettings keep the background writer of the log from flushing by itself, so that a
// commit nobody flushed is really lost in a crash.
var durableSettings = []string{"wal_writer_delay=10s", "checkpoint_timeout=1h"}

var commonSettings = []string{
	"listen_addresses=", "max_connections=300", "shared_buffers=128MB", "timezone=UTC", "jit=off", "log_statement=none",
	"dynamic_shared_memory_type=mmap", // Stays below the folder, so a killed server leaves nothing behind.
}

// Cluster is a running server.
type Cluster struct {
	// DSN connects as superuser to the database postgres.
	DSN string

	dir      string
	user     pg.OSUser
	binaries pg.Binaries
	settings []string

	cmd  *exec.Cmd
	exit chan struct{}
}

// ClusterOptions says what a cluster is for. The zero value is as fast as possible.
type ClusterOptions struct {
	// Durable keeps the settings that make a commit survive a crash of the server.
	Durable bool
	// OnDisk avoids memory file systems, where flushing costs nothing: for measurements.
	OnDisk bool
}

// StartCluster makes and starts a cluster below a temporary folder. Stop removes it.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	user, err := pg.FindOSUser("")
	if err != nil {
		return nil, err
	}
	binaries, err := pg.FindBinaries(ctx, os.Getenv("BOTHY_TEST_POSTGRES_BIN"))
	if err != nil {
		return nil, err
	}
	dir, err := makeFolder(user, o.OnDisk)
	if err != nil {
		return nil, err
	}
	c := &Cluster{DSN: "host=" + dir + " user=postgres dbname=postgres", dir: dir, user: user}
	extra := fastSettings
	if o.Durable {
		extra = durableSettings
	}
	c.settings = slices.Concat(commonSettings, extra)
	if c.binaries, err = binaries.Stage(ctx, filepath.Join(os.TempDir(), "bothy-pgtest-bin"), user); err != nil {
		return nil, err
	}
	if err := c.initdb(ctx); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return c, nil
}

// makeFolder prefers memory to disk and removes what processes that are gone left behind.
func makeFolder(user pg.OSUser, onDisk bool) (string, error) {
	base := os.TempDir()
	if probe, err := os.MkdirTemp("/dev/shm", "bothy-probe-"); err == nil {
		_ = os.Remove(probe)
		if !onDisk {
			base = "/dev/shm"
		}
	}
	sweep(base)
	dir, err := os.MkdirTemp(base, fmt.Sprintf("bothy-pgtest-%d-", os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("make the folder of the cluster: %w", err)
	}
	if err := user.Own(dir); err != nil {
		return "", fmt.Errorf("hand over the folder of the cluster: %w", err)
	}
	return dir, nil
}

func sweep(base string) {
	left, _ := filepath.Glob(filepath.Join(base, "bothy-pgtest-*-*"))
	for _, dir := range left {
		fields := strings.Split(filepath.Base(dir), "-")
		pid, err := strconv.Atoi(fields[2])
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}

func (c *Cluster) initdb(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.binaries.Initdb(), "-D", filepath.Join(c.dir, "data"), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", "--no-sync")
	c.user.Apply(cmd)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// Start runs the server and waits until it answers.
func (c *Cluster) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if err := c.launch(); err != nil {
			return err
		}
		if c.answers(ctx) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the server does not answer: %s", c.Logs())
		}
	}
}

// answers waits until the server accepts a connection or has ended. Children of a killed
// server may hold its memory for a moment, so an early end is tried again.
func (c *Cluster) answers(ctx context.Context) bool {
	for ctx.Err() == nil {
		if conn, err := pgx.Connect(ctx, c.DSN); err == nil {
			_ = conn.Close(ctx)
			return true
		}
		select {
		case <-c.exit:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return false
}

// launch starts the process from a thread that stays, because the signal of the parent's
// death is bound to the thread.
func (c *Cluster) launch() error {
	args := []string{"-D", filepath.Join(c.dir, "data"), "-c", "unix_socket_directories=" + c.dir}
	for _, s := range c.settings {
		args = append(args, "-c", s)
	}
	cmd := exec.Command(c.binaries.Postgres(), args...) //nolint:noctx // It outlives every context; the test ends it.
	c.user.Apply(cmd)
	cmd.Dir = "/"
	// A file instead of a pipe: a frozen child would keep a pipe open beyond the server's end.
	log, err := os.Create(c.logPath())
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd.Stdout, cmd.Stderr = log, log
	started, exit := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(exit)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	c.cmd, c.exit = cmd, exit
	return nil
}

// Kill ends the server and all its backends at once, as a crash does. A main process that
// is killed alone would leave backends that finish their statement first.
func (c *Cluster) Kill() {
	pid := c.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	for _, child := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	<-c.exit
}

// KillBackend kills one backend, which makes the server end all others and recover.
func (c *Cluster) KillBackend(pid uint32) error { return syscall.Kill(int(pid), syscall.SIGKILL) }

// Freeze stops one backend without ending it; the returned function lets it go on.
func (c *Cluster) Freeze(t testing.TB, pid uint32) (resume func()) {
	t.Helper()
	if err := syscall.Kill(int(pid), syscall.SIGSTOP); err != nil {
		t.Fatalf("pgtest: freeze %d: %v", pid, err)
	}
	return func() { _ = syscall.Kill(int(pid), syscall.SIGCONT) }
}

// Restart starts the server again after Kill.
func (c *Cluster) Restart(ctx context.Context) error { return c.Start(ctx) }

// Logs is what the server wrote since its start.
func (c *Cluster) Logs() string {
	text, _ := os.ReadFile(c.logPath())
	return string(text)
}

func (c *Cluster) logPath() string { return filepath.Join(c.dir, "log") }

// Stop ends the server and removes its folder.
func (c *Cluster) Stop() {
	_ = c.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-c.exit:
	case <-time.After(5 * time.Second):
		c.Kill()
	}
	_ = os.RemoveAll(c.dir)
}
