// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Shared is one server for all tests of a package that need none of their own.
type Shared struct {
	options []Option
	once    sync.Once
	server  *Server
	owner   *outside
}

// NewShared prepares a shared server, which starts with its first use. Call Main in TestMain.
func NewShared(options ...Option) *Shared { return &Shared{options: options} }

// Use gives the server to a test. What goes wrong inside the server fails that test.
func (s *Shared) Use(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() {
		s.owner = &outside{name: "shared"}
		s.server = Start(s.owner, s.options...)
	})
	if s.server == nil {
		t.Fatalf("the shared server did not start: %s", s.owner.said())
	}
	t.Cleanup(func() { s.server.watch.report(t, s.server.logText()) })
	return s.server
}

// Main runs the tests and stops the server after them.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.owner == nil {
		return code
	}
	s.owner.finish()
	if text := s.owner.said(); text != "" {
		fmt.Fprintln(os.Stderr, "shared server:", text)
		code = max(code, 1)
	}
	return code
}

// outside stands for the test that a server belongs to when it outlives every test.
type outside struct {
	testing.TB
	name     string
	mu       sync.Mutex
	cleanups []func()
	failures []string
}

// Helper implements testing.TB.
func (*outside) Helper() {}

// Name implements testing.TB.
func (o *outside) Name() string { return o.name }

// Cleanup implements testing.TB.
func (o *outside) Cleanup(fn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cleanups = append(o.cleanups, fn)
}

// TempDir implements testing.TB.
func (o *outside) TempDir() string {
	dir, err := os.MkdirTemp("", "bothy-test-")
	if err != nil {
		o.Fatalf("%v", err)
	}
	o.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Error implements testing.TB.
func (o *outside) Error(args ...any) { o.fail(fmt.Sprint(args...)) }

// Errorf implements testing.TB.
func (o *outside) Errorf(format string, args ...any) { o.fail(fmt.Sprintf(format, args...)) }

// Fatal implements testing.TB.
func (o *outside) Fatal(args ...any) {
	o.fail(fmt.Sprint(args...))
	runtime.Goexit()
}

// Fatalf implements testing.TB.
func (o *outside) Fatalf(format string, args ...any) {
	o.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Logf implements testing.TB; what is logged matters only beside a failure.
func (o *outside) Logf(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.failures) > 0 {
		o.failures = append(o.failures, fmt.Sprintf(format, args...))
	}
}

func (o *outside) fail(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures = append(o.failures, text)
}

func (o *outside) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprint(slices.Clone(o.failures))[1:max(1, len(fmt.Sprint(o.failures))-1)]
}

// finish runs the cleanups, the newest first.
func (o *outside) finish() {
	o.mu.Lock()
	cleanups := o.cleanups
	o.cleanups = nil
	o.mu.Unlock()
	for _, fn := range slices.Backward(cleanups) {
		fn()
	}
}
