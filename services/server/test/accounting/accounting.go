// SPDX-License-Identifier: Apache-2.0

// Package accounting keeps the books of the tests: which operation answered what, which event
// reached somebody, which op and which job ran. At the end of a whole test run the books are
// compared with the contract, and what nobody exercised fails by name.
package accounting

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/OWNER/bothy/services/server/api/routes"
)

// EnvDir names the folder of the books. Without it nothing is kept.
const EnvDir = "BOTHY_ACCOUNTING"

// Book notes what one process exercised. It is safe for concurrent use; a nil book keeps
// nothing.
type Book struct {
	mu   sync.Mutex
	file *os.File
	seen map[string]bool
}

var (
	once sync.Once
	own  *Book
)

// Open gives the book of this process, or nil when no books are kept.
func Open() *Book {
	once.Do(func() {
		dir := os.Getenv(EnvDir)
		if dir == "" {
			return
		}
		name := filepath.Join(dir, fmt.Sprintf("%s-%d.txt", filepath.Base(os.Args[0]), os.Getpid()))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(fmt.Sprintf("accounting: %v", err))
		}
		own = &Book{file: f, seen: map[string]bool{}}
	})
	return own
}

func (b *Book) note(words ...string) {
	if b == nil {
		return
	}
	line := strings.Join(words, " ")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[line] {
		return
	}
	b.seen[line] = true
	// A line is written at once, because a test process may end by being killed.
	_, _ = b.file.WriteString(line + "\n")
}

// Answer notes an answer of a REST operation; code is empty for a success.
func (b *Book) Answer(operation string, status int, code string) {
	if operation == "" {
		return
	}
	if status < 400 {
		b.note("operation", operation, "success")
		return
	}
	b.note("operation", operation, code)
}

// Op notes an op of the gateway; code is empty for a success.
func (b *Book) Op(op, code string) {
	if code == "" {
		code = "success"
	}
	b.note("op", op, code)
}

// Event notes an event that was put into the queue of a connection.
func (b *Book) Event(eventType string) { b.note("event", eventType) }

// Job notes a job that ran to its end.
func (b *Book) Job(kind string) { b.note("job", kind) }

// Registered notes that a server has a job, which therefore some test must see run.
func (b *Book) Registered(kind string) { b.note("registered", kind) }

// Closed notes a close code of the gateway.
func (b *Book) Closed(code int) { b.note("close", fmt.Sprint(code)) }

// pending are the entries whose cause is not built, with what is missing. One that is seen all
// the same is named as well, so that the list cannot grow old.
var pending = map[string]string{
	"operation archiveChannel conflict":     "there are no direct channels",
	"operation setChannelOperator conflict": "there are no direct channels",
	"event thread.updated":                  "nothing changes a thread",
}

// ErrNoBooks means that no server under test has kept a book, so nothing can be said.
var ErrNoBooks = errors.New("there are no books of a server")

// Missing reads the books of a folder and names everything of the contract that nobody
// exercised. The jobs are those that the servers under test had registered.
func Missing(dir string) ([]string, error) {
	seen, err := read(dir)
	if err != nil {
		return nil, err
	}
	var jobs []string
	for line := range seen {
		if kind, ok := strings.CutPrefix(line, "registered "); ok {
			jobs = append(jobs, kind)
		}
	}
	if len(jobs) == 0 {
		return nil, ErrNoBooks
	}
	var missing []string
	want := func(line string) {
		why, excused := pending[line]
		switch {
		case seen[line] && excused:
			missing = append(missing, line+" (it was seen, although "+why+": take it off the list)")
		case !seen[line] && !excused:
			missing = append(missing, line)
		}
	}
	for _, o := range routes.Operations {
		if !o.AuthorizedInBand {
			want("operation " + o.ID + " success")
		}
		for _, code := range o.ErrorCodes {
			want("operation " + o.ID + " " + code)
		}
	}
	for _, op := range routes.Ops {
		want("op " + op.Name + " success")
	}
	for _, e := range routes.Events {
		want("event " + e.Type)
	}
	for _, kind := range jobs {
		want("job " + kind)
	}
	slices.Sort(missing)
	return missing, nil
}

func read(dir string) (map[string]bool, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			seen[lines.Text()] = true
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return seen, nil
}
