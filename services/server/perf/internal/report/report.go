// SPDX-License-Identifier: Apache-2.0

// Package report holds the thresholds, judges figures by them, and writes what was measured, how, and on what machine.
package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/OWNER/bothy/services/server/perf/internal/load"
	"github.com/OWNER/bothy/services/server/perf/internal/profile"
)

// Verdict is what a figure amounts to.
type Verdict string

// The verdicts. Invalid means that the generator was at fault; TooFew that the figure rests on too few values.
const (
	Pass    Verdict = "pass"
	Fail    Verdict = "fail"
	Invalid Verdict = "invalid"
	TooFew  Verdict = "too_few"
)

// Check is a figure beside its target.
type Check struct {
	Target
	// Value is the median of the runs.
	Value   float64   `json:"value"`
	Runs    []float64 `json:"runs"`
	Verdict Verdict   `json:"verdict"`
}

// Report is the file of one test.
type Report struct {
	Schema   int             `json:"schema"`
	Test     string          `json:"test"`
	Commit   string          `json:"commit"`
	Dirty    bool            `json:"dirty"`
	Start    time.Time       `json:"start"`
	Duration float64         `json:"duration_s"`
	Profile  profile.Profile `json:"profile"`
	// Settings are those that differ from the defaults, as the server prints them.
	Settings []string `json:"settings"`
	// Load says what was done to the server.
	Load map[string]any `json:"load"`
	// Runs are the measurements one by one.
	Runs []Run `json:"runs"`
	// Invariants are the contradictions the ledger found; none is what must be.
	Invariants []string `json:"invariants"`
	Checks     []Check  `json:"checks"`
}

// Run is one measurement.
type Run struct {
	Name    string         `json:"name"`
	Latency *load.Summary  `json:"latency,omitempty"`
	Rate    float64        `json:"rate_per_s,omitempty"`
	Counts  map[string]any `json:"counts,omitempty"`
	// Late is how late the generator itself was, 99th percentile in milliseconds.
	Late float64 `json:"generator_late_p99_ms,omitempty"`
	// ServerCPU, DatabaseCPU and GeneratorCPU are cores used on average.
	ServerCPU    float64 `json:"server_cpu_cores,omitempty"`
	DatabaseCPU  float64 `json:"database_cpu_cores,omitempty"`
	GeneratorCPU float64 `json:"generator_cpu_cores,omitempty"`
}

const schema = 1

// New begins a report.
func New(test string, p profile.Profile, settings []string) *Report {
	r := &Report{Schema: schema, Test: test, Start: time.Now().UTC(), Profile: p, Settings: settings, Load: map[string]any{}, Invariants: []string{}}
	r.Commit, r.Dirty = revision()
	return r
}

// minSamples is what a 99th percentile needs to mean something.
const minSamples = 1000

// Judge adds the median of the figures of several runs. samples is the number of values behind each figure, or 0 where
// the figure is no percentile; valid is false when the generator did not keep its schedule.
func (r *Report) Judge(name string, figures []float64, samples int64, valid bool) Check {
	t, known := target(name)
	if !known {
		panic("there is no target " + name) // a fault of the test, found in its first run
	}
	c := Check{Target: t, Value: load.Median(figures), Runs: figures, Verdict: Pass}
	switch {
	case !valid:
		c.Verdict = Invalid
	case samples > 0 && samples < minSamples:
		c.Verdict = TooFew
	case t.AtLeast && c.Value < t.Limit, !t.AtLeast && c.Value > t.Limit:
		c.Verdict = Fail
	}
	r.Checks = append(r.Checks, c)
	return c
}

// String is the line for people.
func (c Check) String() string {
	word := "at most"
	if c.AtLeast {
		word = "at least"
	}
	return fmt.Sprintf("%-22s %8.2f%s (%s %g%s) %s, runs %.2f", c.Name, c.Value, c.Unit, word, c.Limit, c.Unit, c.Verdict, c.Runs)
}

// Write stores the report as FOLDER/<test>.json and returns the path.
func (r *Report) Write() (string, error) {
	r.Duration = time.Since(r.Start).Seconds()
	folder := Folder()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, r.Test+".json")
	return name, os.WriteFile(name, append(text, '\n'), 0o644)
}

// Folder is where reports go: BOTHY_PERF_OUT, or .data/perf in the repository.
func Folder() string {
	if dir := os.Getenv("BOTHY_PERF_OUT"); dir != "" {
		return dir
	}
	return filepath.Join(Root(), ".data", "perf")
}

// Root is the root of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "..")
}

func revision() (commit string, dirty bool) {
	git := func(args ...string) string {
		out, err := exec.CommandContext(context.Background(), "git", append([]string{"-C", Root()}, args...)...).Output() // #nosec G204 -- fixed words
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	return git("rev-parse", "HEAD"), git("status", "--porcelain", "--untracked-files=no") != ""
}
