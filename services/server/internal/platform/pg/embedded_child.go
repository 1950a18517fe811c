// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// tailLines is how much of the server's log an error quotes.
const tailLines = 20

// killGrace is the wait between the immediate stop and the end by force.
const killGrace = 5 * time.Second

// child is one run of the server.
type child struct {
	cmd  *exec.Cmd
	exit chan struct{} // closed when the process has ended
}

// launch starts the server from a thread that lives as long as it: the signal of the
// parent's death is bound to the starting thread.
func (e *Embedded) launch() (*child, error) {
	e.tail.reset()
	args := []string{"-D", e.folder.cluster()}
	for _, setting := range e.cfg.serverSettings(e.socketDir) {
		args = append(args, "-c", setting)
	}
	cmd := exec.Command(e.binaries.Postgres(), args...) //nolint:noctx // It outlives every context; stop ends it.
	e.folder.user.Apply(cmd)
	cmd.Dir = "/"
	// A pipe of our own: waiting for the process must not wait for its children's output.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the server's log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	started := make(chan error, 1)
	c := &child{cmd: cmd, exit: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer close(c.exit)
		err := cmd.Start()
		_ = write.Close()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	go e.tail.follow(read, e.log)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return c, nil
}

// answers waits until the server accepts the superuser, has ended, or ctx ends.
func (e *Embedded) answers(ctx context.Context, c *child) bool {
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		conn, err := pgx.Connect(attempt, e.AdminDSN())
		cancel()
		if err == nil {
			closeConn(conn)
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-c.exit:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *child) ended() bool {
	select {
	case <-c.exit:
		return true
	default:
		return false
	}
}

func (c *child) fastStop()      { _ = c.cmd.Process.Signal(syscall.SIGINT) }
func (c *child) immediateStop() { _ = c.cmd.Process.Signal(syscall.SIGQUIT) }

// stop ends the server, less and less gently, and returns when it has ended.
func (c *child) stop(limit time.Duration) {
	c.fastStop()
	select {
	case <-c.exit:
		return
	case <-time.After(limit):
	}
	c.immediateStop()
	select {
	case <-c.exit:
		return
	case <-time.After(killGrace):
	}
	_ = c.cmd.Process.Kill()
	<-c.exit
}

// logTail passes the server's log on and keeps its end.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

func (t *logTail) follow(r io.ReadCloser, log *slog.Logger) {
	defer func() { _ = r.Close() }()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mebibyte)
	for lines.Scan() {
		line := lines.Text()
		t.mu.Lock()
		t.lines = append(t.lines, line)
		if len(t.lines) > tailLines {
			t.lines = t.lines[1:]
		}
		t.mu.Unlock()
		level, text := mapLine(line)
		log.Log(context.Background(), level, text)
	}
	_, _ = io.Copy(io.Discard, r) // A line beyond the buffer must not block the server.
}

func (t *logTail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = nil
}

func (t *logTail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// ordinary says what is fatal for one session only and belongs to every start and stop.
var ordinary = map[string]bool{
	"terminating connection due to administrator command": true,
	"the database system is starting up":                  true,
	"the database system is shutting down":                true,
	"connection to client lost":                           true,
}

// mapLine takes the severity out of a line such as
// "2026-01-31 10:00:00.000 UTC [12] WARNING:  text".
func mapLine(line string) (slog.Level, string) {
	for _, s := range []struct {
		word  string
		level slog.Level
	}{
		{"PANIC", slog.LevelError}, {"FATAL", slog.LevelError}, {"ERROR", slog.LevelWarn}, {"WARNING", slog.LevelWarn},
		{"LOG", slog.LevelInfo}, {"NOTICE", slog.LevelInfo}, {"INFO", slog.LevelInfo}, {"HINT", slog.LevelInfo},
		{"DETAIL", slog.LevelInfo}, {"CONTEXT", slog.LevelInfo}, {"STATEMENT", slog.LevelDebug},
	} {
		if before, text, found := strings.Cut(line, s.word+":  "); found && (before == "" || strings.HasSuffix(before, "] ")) {
			if ordinary[text] {
				return slog.LevelInfo, text
			}
			return s.level, text
		}
	}
	return slog.LevelInfo, line
}
