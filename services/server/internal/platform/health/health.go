// SPDX-License-Identifier: Apache-2.0

// Package health answers an orchestrator's two questions, whether the process lives and
// whether it may get requests, on the internal listener.
//
// An answer names the checks and their codes and nothing else: whoever reaches the port
// learns no version of a dependency, no address and no error text. Checks run at most once
// a second however often they are asked, so a busy prober costs no database query each.
package health

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

const (
	// maxAge is how old the answer of a check may be.
	maxAge = time.Second
	// checkTimeout bounds one check; one that takes longer counts as failed.
	checkTimeout = 2 * time.Second
)

// Check tells whether something holds. It must return when its context ends; the reason of
// a failure goes to the log of its owner, never into the answer.
type Check func(ctx context.Context) bool

// Info describes the process in both answers.
type Info struct {
	Role, Version string
	StartedAt     time.Time
	// Maintenance is off or read_only.
	Maintenance string
}

// Checker collects the checks and serves the two paths. Checks are shown in the order of
// their registration; that of the process itself come first.
type Checker struct {
	info  Info
	clock clock.Clock

	mu     sync.Mutex
	checks []namedCheck

	refresh sync.Mutex
	cached  []result
	at      time.Time
}

type namedCheck struct {
	name string
	run  Check
}

type result struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Code string `json:"code,omitempty"`
}

// New makes a checker without checks.
func New(info Info, clk clock.Clock) *Checker { return &Checker{info: info, clock: clk} }

// Register adds a check. Its name is also the code of its failure.
func (c *Checker) Register(name string, check Check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks = append(c.checks, namedCheck{name, check})
}

// Gate is a check that is opened and closed by hand, such as startup and shutting_down.
type Gate struct {
	mu sync.Mutex
	ok bool
}

// NewGate makes a gate that is open or closed.
func NewGate(open bool) *Gate { return &Gate{ok: open} }

// Set opens or closes the gate.
func (g *Gate) Set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ok = open
}

// Check implements Check.
func (g *Gate) Check(context.Context) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ok
}

// Invalidate makes the next question run the checks whatever the age of the last answer;
// whoever closes a gate calls it, so that a stopping process is unready at once.
func (c *Checker) Invalidate() {
	c.refresh.Lock()
	defer c.refresh.Unlock()
	c.cached = nil
}

// Ready runs the checks, or gives their results of the last second.
func (c *Checker) Ready(ctx context.Context) bool {
	_, ready := c.results(ctx)
	return ready
}

func (c *Checker) results(ctx context.Context) ([]result, bool) {
	c.refresh.Lock()
	defer c.refresh.Unlock()
	if c.cached == nil || c.clock.Now().Sub(c.at) >= maxAge {
		c.cached, c.at = c.run(ctx), c.clock.Now()
	}
	for _, r := range c.cached {
		if !r.OK {
			return c.cached, false
		}
	}
	return c.cached, true
}

// run asks all checks side by side, so that one which hangs costs its own time alone. The
// context of the prober does not end them: the answer serves the next prober as well.
func (c *Checker) run(ctx context.Context) []result {
	c.mu.Lock()
	checks := append([]namedCheck(nil), c.checks...)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	out := make([]result, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() {
			out[i] = result{Name: check.name, OK: check.run(ctx)}
			if !out[i].OK {
				out[i].Code = check.name
			}
		})
	}
	wg.Wait()
	return out
}

// Handler serves /healthz and /readyz.
func (c *Checker) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", readOnly(c.live))
	mux.HandleFunc("/readyz", readOnly(c.ready))
	return mux
}

func (c *Checker) live(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, struct {
		Status    string `json:"status"`
		Role      string `json:"role"`
		Version   string `json:"version"`
		StartedAt string `json:"started_at"`
	}{"alive", c.info.Role, c.info.Version, c.info.StartedAt.UTC().Format("2006-01-02T15:04:05.000Z")})
}

func (c *Checker) ready(w http.ResponseWriter, r *http.Request) {
	results, ready := c.results(r.Context())
	status, code := "ready", http.StatusOK
	if !ready {
		status, code = "not_ready", http.StatusServiceUnavailable
	}
	write(w, code, struct {
		Status      string   `json:"status"`
		Role        string   `json:"role"`
		Maintenance string   `json:"maintenance"`
		Checks      []result `json:"checks"`
	}{status, c.info.Role, c.info.Maintenance, results})
}

func readOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		next(w, r)
	}
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A prober that went away needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}
