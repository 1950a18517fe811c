// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/internal/durable"
)

// ErrStateInUse means that another process works with the same state folder.
var ErrStateInUse = errors.New("another process uses the state folder")

type phase string

const (
	phaseAccepted  phase = "accepted"
	phaseStarted   phase = "started"
	phaseFinishing phase = "finishing"
)

// record is what the journal knows of one run. The invocation token is not in it: a new one can be had.
type record struct {
	RunID   string                  `json:"run_id"`
	EventID string                  `json:"event_id"`
	Seq     int64                   `json:"seq"`
	Phase   phase                   `json:"phase"`
	Order   api.AgentInvocationData `json:"order"`
	// StartKey repeats the start, so that a start whose answer a crash swallowed is recognised as our own.
	StartKey  string     `json:"start_key"`
	Followups []Followup `json:"followups,omitempty"`
	// Work is what the program stored with Run.Keep.
	Work   json.RawMessage `json:"work,omitempty"`
	Finish *finish         `json:"finish,omitempty"`
}

// finish is the end of a run on its way to the server.
type finish struct {
	Key  string               `json:"key"`
	Body api.FinishRunRequest `json:"body"`
	// Bare ends need no invocation token.
	Bare bool `json:"bare"`
}

// pin is what the adapter was set up with and never leaves.
type pin struct {
	InstanceID string `json:"instance_id"`
	Issuer     string `json:"issuer"`
	AgentID    string `json:"agent_id"`
}

// journal keeps the records of all runs that are not over, one file each.
type journal struct {
	dir  string
	lock *os.File

	mu      sync.Mutex
	records map[string]*record
}

func openJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(filepath.Join(dir, "runs"), durable.DirMode); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, durable.FileMode)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrStateInUse)
		}
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	j := &journal{dir: dir, lock: lock, records: map[string]*record{}}
	if err := j.load(); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return j, nil
}

func (j *journal) load() error {
	entries, err := os.ReadDir(filepath.Join(j.dir, "runs"))
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") {
			continue // a temporary file that a crash left
		}
		r := new(record)
		if _, err := durable.ReadJSON(filepath.Join(j.dir, "runs", entry.Name()), r); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		j.records[r.RunID] = r
	}
	return nil
}

func (j *journal) close() error { return j.lock.Close() }

// all are the records in the order in which their orders came.
func (j *journal) all() []*record {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]*record, 0, len(j.records))
	for _, r := range j.records {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *record) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// runs are the IDs of all runs that are not over.
func (j *journal) runs() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]string, 0, len(j.records))
	for id := range j.records {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func (j *journal) find(runID string) *record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records[runID]
}

var runName = regexp.MustCompile(`^[0-9a-f-]{36}$`)

// add writes a new record; false means that the run is in the journal already.
func (j *journal) add(r *record) (bool, error) {
	if !runName.MatchString(r.RunID) {
		return false, fmt.Errorf("journal: %q is no ID of a run", r.RunID)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.records[r.RunID]; known {
		return false, nil
	}
	if err := j.write(r); err != nil {
		return false, err
	}
	j.records[r.RunID] = r
	return true, nil
}

// change applies the change and writes the record. A run that is over meanwhile is left alone.
func (j *journal) change(runID string, change func(*record)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.records[runID]
	if r == nil {
		return nil
	}
	next := *r
	next.Followups = slices.Clone(r.Followups)
	change(&next)
	if err := j.write(&next); err != nil {
		return err
	}
	j.records[runID] = &next
	return nil
}

func (j *journal) remove(runID string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := durable.Remove(j.file(runID)); err != nil {
		return err
	}
	delete(j.records, runID)
	return nil
}

func (j *journal) write(r *record) error { return durable.WriteJSON(j.file(r.RunID), r) }

func (j *journal) file(runID string) string { return filepath.Join(j.dir, "runs", runID+".json") }

// pinned reads the pin; false means that the adapter was never set up.
func (j *journal) pinned() (pin, bool, error) {
	var p pin
	ok, err := durable.ReadJSON(filepath.Join(j.dir, "pin.json"), &p)
	return p, ok, err
}

func (j *journal) setPin(p pin) error { return durable.WriteJSON(filepath.Join(j.dir, "pin.json"), p) }
