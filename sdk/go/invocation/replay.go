// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/OWNER/bothy/sdk/go/internal/durable"
)

// Replay remembers on disk which tokens were used for which event, until they have expired.
type Replay struct {
	name string
	now  func() time.Time

	mu    sync.Mutex
	used  map[string]use
	lines int
	file  *os.File
}

type use struct {
	ID      string    `json:"jti"`
	EventID string    `json:"event_id"`
	Until   time.Time `json:"until"`
}

// OpenReplay opens the memory in the named file. Close it at the end.
func OpenReplay(name string) (*Replay, error) {
	if err := os.MkdirAll(filepath.Dir(name), durable.DirMode); err != nil {
		return nil, fmt.Errorf("memory of tokens: %w", err)
	}
	r := &Replay{name: name, now: time.Now, used: map[string]use{}}
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("memory of tokens: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		var u use
		// A line that a crash cut short was never relied upon.
		if json.Unmarshal(lines.Bytes(), &u) == nil && r.now().Before(u.Until) {
			r.used[u.ID] = u
		}
	}
	return r, r.rewrite()
}

// rewrite leaves out what has expired.
func (r *Replay) rewrite() error {
	var content bytes.Buffer
	r.lines = 0
	for id, u := range r.used {
		if !r.now().Before(u.Until) {
			delete(r.used, id)
			continue
		}
		line, err := json.Marshal(u)
		if err != nil {
			return fmt.Errorf("memory of tokens: %w", err)
		}
		content.Write(append(line, '\n'))
		r.lines++
	}
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
	if err := durable.Write(r.name, content.Bytes()); err != nil {
		return err
	}
	file, err := os.OpenFile(r.name, os.O_APPEND|os.O_WRONLY, durable.FileMode)
	if err != nil {
		return fmt.Errorf("memory of tokens: %w", err)
	}
	r.file = file
	return nil
}

// take notes that the token is used for the event; false means that it was used for another one.
func (r *Replay) take(id, eventID string, until time.Time) (bool, error) {
	const slack = 1000
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.used[id]; ok {
		return known.EventID == eventID, nil
	}
	u := use{ID: id, EventID: eventID, Until: until}
	line, err := json.Marshal(u)
	if err != nil {
		return false, fmt.Errorf("memory of tokens: %w", err)
	}
	if r.file == nil {
		return false, errors.New("memory of tokens: closed")
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return false, fmt.Errorf("memory of tokens: %w", err)
	}
	if err := r.file.Sync(); err != nil {
		return false, fmt.Errorf("memory of tokens: %w", err)
	}
	r.used[id] = u
	if r.lines++; r.lines > slack && r.lines > 2*r.live() {
		return true, r.rewrite()
	}
	return true, nil
}

func (r *Replay) live() int {
	n := 0
	for _, u := range r.used {
		if r.now().Before(u.Until) {
			n++
		}
	}
	return n
}

// Close closes the file.
func (r *Replay) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
