// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// process names a program in a way that survives a restart of the adapter: a process ID alone may belong to somebody
// else by then.
type process struct {
	PID int `json:"pid"`
	// Start is when the process began, in ticks since the machine did; empty where the system does not tell.
	Start string `json:"start,omitempty"`
}

func identify(pid int) process { return process{PID: pid, Start: startTime(pid)} }

// startTime is the 22nd field of the process's stat, counted behind the name, which may hold anything.
func startTime(pid int) string {
	const field = 22 - 3 // the state, field 3, is the first behind the name
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	end := bytes.LastIndexByte(text, ')')
	fields := bytes.Fields(text[end+1:])
	if end < 0 || len(fields) <= field {
		return ""
	}
	return string(fields[field])
}

// Interrupted implements Driver. It kills the process group of a program whose adapter crashed, if it certainly is that
// program: same start, and started for this run.
func (c *command) Interrupted(ctx context.Context, runID string, kept json.RawMessage) {
	var p process
	if json.Unmarshal(kept, &p) != nil || p.PID <= 1 || p.Start == "" || startTime(p.PID) != p.Start {
		return
	}
	environment, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
	if err != nil || !slices.ContainsFunc(bytes.Split(environment, []byte{0}), func(e []byte) bool { return string(e) == "BOTHY_RUN_ID="+runID }) {
		return
	}
	c.log.WarnContext(ctx, "program of an interrupted run is still there, killing it", "run_id", runID, "pid", p.PID)
	_ = syscall.Kill(-p.PID, syscall.SIGKILL)
}
