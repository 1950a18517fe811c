// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
	"github.com/OWNER/bothy/services/server/internal/wire"
	"github.com/OWNER/bothy/services/server/test/accounting"
)

// watch is the observer of a server: it keeps the books and collects faults that no single
// answer shows.
type watch struct {
	mu      sync.Mutex
	book    *accounting.Book
	db      *pgtest.DB
	changes []func(*wire.Config)
	faults  []string
	jobs    map[string]int
	closed  map[int]int
}

func newWatch() *watch { return &watch{jobs: map[string]int{}, closed: map[int]int{}} }

func (w *watch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const most = 50
	if len(w.faults) < most {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// report fails the test with what was collected since the last report.
func (w *watch) report(t testing.TB, log string) {
	t.Helper()
	w.mu.Lock()
	faults := w.faults
	w.faults = nil
	w.mu.Unlock()
	for _, f := range faults {
		t.Error("server: " + f)
	}
	if len(faults) > 0 {
		t.Logf("log of the server:\n%s", log)
	}
}

// Answer implements wire.Observer.
func (w *watch) Answer(operation string, status int, code string) {
	w.book.Answer(operation, status, code)
	if code == "internal_error" || status == http.StatusInternalServerError {
		w.fault("%s answered %d %s", operation, status, code)
	}
}

// Op implements wire.Observer.
func (w *watch) Op(op, code string) {
	w.book.Op(op, code)
	if code == "internal_error" {
		w.fault("op %s failed with %s", op, code)
	}
}

// Event implements wire.Observer.
func (w *watch) Event(eventType string) { w.book.Event(eventType) }

// Job implements wire.Observer.
func (w *watch) Job(kind string) {
	w.book.Job(kind)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[kind]++
}

// Closed implements wire.Observer.
func (w *watch) Closed(code int) {
	w.book.Closed(code)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed[code]++
}

func (w *watch) unproven(operation string, checks []authorize.Check) {
	w.fault("%s succeeded without authorizing its action; its checks: %+v", operation, checks)
}

// parents finds what lies around the thing of a path parameter: the identifiers of which one
// must have been authorized instead.
var parents = map[string]string{
	"thread_id":  "SELECT ARRAY[channel_id] FROM threads WHERE id = $1",
	"message_id": "SELECT ARRAY[thread_id, channel_id] FROM messages WHERE id = $1",
	"run_id":     "SELECT ARRAY[thread_id, channel_id, agent_id] FROM runs WHERE id = $1",
	"grant_id":   "SELECT ARRAY[subject_id, target_id] FROM grants WHERE id = $1",
	"session_id": "SELECT ARRAY[principal_id] FROM auth_sessions WHERE id = $1",
	"token_id":   "SELECT ARRAY[principal_id] FROM api_tokens WHERE id = $1",
	"passkey_id": "SELECT ARRAY[principal_id] FROM passkey_credentials WHERE id = $1",
	"pairing_id": "SELECT ARRAY[principal_id] FROM device_pairings WHERE id = $1",
	"device_id":  "SELECT ARRAY[principal_id] FROM devices WHERE id = $1",
}

// inspect proves that every identifier in the path of a success was authorized or lies inside
// something that was.
func (w *watch) inspect(operation string, r *http.Request, log *authorize.CheckLog) {
	op := routes.ByID(operation)
	checks := log.Checks()
	if op == nil || len(checks) == 0 {
		// A stored answer is given again without new checks.
		return
	}
	for _, name := range parameters(op.Path) {
		if name == "flow_id" {
			// A flow is named by who began it; nobody is signed in yet.
			continue
		}
		if name == "identity_id" {
			// Unlinked, it has no row any more; it was found among those of the person in the check.
			continue
		}
		if name == "principal_id" && strings.Contains(op.Path, "{group_id}/members/") {
			// A membership lies in its group, whose name is in the path and is looked at too.
			continue
		}
		id, err := ids.Parse(r.PathValue(name))
		if err == nil && !log.Names(id) && !w.inside(name, id, log) {
			w.fault("%s succeeded for %s %s, which none of its checks covers: %+v", operation, name, id, checks)
		}
	}
}

func (w *watch) inside(name string, id ids.ID, log *authorize.CheckLog) bool {
	query, known := parents[name]
	if !known {
		return false
	}
	var around []*ids.ID
	if err := w.db.Pool.QueryRow(context.Background(), query, id).Scan(&around); err != nil {
		return false
	}
	for _, parent := range around {
		if parent != nil && log.Names(*parent) {
			return true
		}
	}
	return false
}

// parameters are the names in braces of a path.
func parameters(path string) []string {
	var names []string
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// JobRuns is how often a job has run to its end.
func (s *Server) JobRuns(kind string) int {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return s.watch.jobs[kind]
}

// Closed is how often connections were closed with the code.
func (s *Server) Closed(code int) int {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	return s.watch.closed[code]
}

// RunJob inserts a job that takes no arguments and waits until it has run to its end. It is for
// the periodic ones, whose next turn no test can wait for.
func (s *Server) RunJob(t testing.TB, kind string) {
	t.Helper()
	before := s.JobRuns(kind)
	s.DB.Exec(t, "INSERT INTO "+s.config.Jobs.Schema+".river_job (kind, args, max_attempts, queue) VALUES ($1, '{}', 25, 'maintenance')", kind)
	Eventually(t, kind+" has run", func() bool { return s.JobRuns(kind) > before })
}
