// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is one life of the server process.
type Server struct {
	// ReadyAfter is the time from the start of the process to the first answer that says ready.
	ReadyAfter time.Duration

	cmd    *exec.Cmd
	exited chan struct{}
	log    *tail
}

// startLimit bounds the wait for a server to become ready.
const startLimit = 60 * time.Second

// readyPoll is how often a starting server is asked; it bounds the error of ReadyAfter.
const readyPoll = 2 * time.Millisecond

// Start runs the server and waits until it is ready.
func (i *Installation) Start(ctx context.Context) (*Server, error) {
	s := &Server{exited: make(chan struct{}), log: &tail{}}
	s.cmd = exec.Command(i.options.Binary, "serve", "--config", i.file) //nolint:noctx // It ends when the test says so.
	s.cmd.Env = i.environ()
	s.cmd.Stderr = s.log
	if i.options.Log != nil {
		s.cmd.Stderr = io.MultiWriter(s.log, i.options.Log)
	}
	// The server must not outlive a test that is killed. The signal fires when the starting thread ends, so that thread
	// stays for as long as the child.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := s.cmd.Start()
		failed <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
		close(s.exited)
	}()
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("start the server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := i.waitReady(ctx, s.exited); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%w\n%s", err, s.log)
	}
	s.ReadyAfter = time.Since(began)
	return s, nil
}

// Ready reports whether the server says so now.
func (i *Installation) Ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.internal+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (i *Installation) waitReady(ctx context.Context, exited <-chan struct{}) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for !i.Ready(ctx) {
		select {
		case <-exited:
			return errors.New("the server ended before it was ready")
		case <-ctx.Done():
			return errors.New("the server is not ready in time")
		case <-tick.C:
		}
	}
	return nil
}

// WaitReady waits until the server is ready again.
func (i *Installation) WaitReady(ctx context.Context) error { return i.waitReady(ctx, nil) }

// PID is the process of the server.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the process as a power cut would and waits until it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// Stop asks the server to end and waits for it. A server that takes longer than the context is killed.
func (s *Server) Stop(ctx context.Context) error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-ctx.Done():
		s.Kill()
		return fmt.Errorf("the server did not stop in time\n%s", s.log)
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("the server ended with code %d\n%s", code, s.log)
	}
	return nil
}

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Log is the end of what the server wrote.
func (s *Server) Log() string { return s.log.String() }

// Resident is the memory the process holds, in bytes.
func (s *Server) Resident() (int64, error) {
	fields, err := procFields(s.PID(), "statm")
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}

// clockTicks is the unit of processor time in /proc, the same on every Linux that Go runs on.
const clockTicks = 100

// CPU is the processor time the process has used.
func (s *Server) CPU() (time.Duration, error) { return CPUOf(s.PID()) }

// CPUOf is the processor time that a process has used.
func CPUOf(pid int) (time.Duration, error) {
	fields, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	return ticks(fields[utime]) + ticks(fields[stime]), nil
}

// DatabaseCPU is the processor time of all processes of the database, also of those that have ended.
func (i *Installation) DatabaseCPU() (time.Duration, error) {
	pid, err := i.Postmaster()
	if err != nil {
		return 0, err
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, name := range all {
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		fields, err := statOf(process)
		switch {
		case err != nil:
			continue // it has ended meanwhile
		case process == pid:
			sum += ticks(fields[utime]) + ticks(fields[stime]) + ticks(fields[cutime]) + ticks(fields[cstime])
		case fields[ppid] == strconv.Itoa(pid):
			sum += ticks(fields[utime]) + ticks(fields[stime])
		}
	}
	return sum, nil
}

// Postmaster is the main process of the embedded database.
func (i *Installation) Postmaster() (int, error) {
	text, err := os.ReadFile(filepath.Join(i.DataDir(), "pg18", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strconv.Atoi(strings.TrimSpace(first))
}

// The places in /proc/PID/stat behind the name, which stands in brackets and may hold blanks.
const (
	ppid   = 1
	utime  = 11
	stime  = 12
	cutime = 13
	cstime = 14
)

func statOf(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= cstime {
		return nil, fmt.Errorf("/proc/%d/stat is too short", pid)
	}
	return fields, nil
}

func ticks(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second / clockTicks
}

func procFields(pid int, name string) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return strings.Fields(string(text)), err
}

// tail keeps the end of a log.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailBytes = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if len(t.text) > tailBytes {
		t.text = t.text[len(t.text)-tailBytes:]
	}
	return len(b), nil
}

// String implements fmt.Stringer.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
