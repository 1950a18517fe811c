// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrSupervised means that another process supervises the cluster. It may be connected to.
var ErrSupervised = errors.New("another process supervises this cluster")

// lockSupervisor takes the exclusive lock of the one supervisor and notes the holder.
func (f folder) lockSupervisor() (*os.File, error) {
	file, err := os.OpenFile(f.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the supervisor's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(f.lock())
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: process %s", ErrSupervised, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("take the supervisor's lock: %w", err)
	}
	if err := file.Truncate(0); err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("note the supervisor: %w", err)
		}
	}
	return file, nil
}

// stopOrphan ends a server whose supervisor was killed, so it starts as an own child.
func (f folder) stopOrphan(ctx context.Context, limit time.Duration) error {
	text, err := os.ReadFile(filepath.Join(f.cluster(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !isPostgres(pid) {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the server %d that lost its supervisor: %w", pid, err)
	}
	for deadline := time.Now().Add(limit); isPostgres(pid); {
		if time.Now().After(deadline) {
			return fmt.Errorf("the server %d that lost its supervisor does not stop", pid)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// isPostgres guards against a process that got the number of a server long gone.
func isPostgres(pid int) bool {
	if !alive(pid) {
		return false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err != nil || strings.TrimSpace(string(name)) == "postgres"
}
