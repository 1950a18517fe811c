// SPDX-License-Identifier: Apache-2.0

// Command testrun runs the steps of "make test" one after the other, goes on after a failure, and ends with one line
// that a machine and a person can read: "N passed, M failed".
//
// A step is a make target. It may leave JUnit reports in the folder RESULTS/<step>; their cases are counted one by
// one. A step without reports counts as one check, and a step that fails without a failed case adds one failure, so
// that no red step can hide behind green tests.
//
// Usage: testrun -results DIR step ...
package main

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	results := flag.String("results", "", "folder for the reports of the steps; emptied first")
	vital := flag.String("vital", "setup", "step without which the others make no sense")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	r := runner{results: *results, vital: *vital, out: os.Stdout, make: makeTarget}
	failed, err := r.run(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// makeTarget runs a target of the Makefile in the working folder, with a folder for its reports.
func makeTarget(ctx context.Context, target, results string) error {
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", target, "RESULTS="+results)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd.Run()
}

type runner struct {
	results, vital string
	out            io.Writer
	make           func(ctx context.Context, target, results string) error
}

// outcome is what one step added to the sum.
type outcome struct {
	step                    string
	passed, failed, skipped int
	took                    time.Duration
}

// run executes the steps and returns the number of failures.
func (r runner) run(ctx context.Context, steps []string) (int, error) {
	if r.results == "" || len(steps) == 0 {
		return 0, errors.New("usage: testrun -results DIR step ...")
	}
	if err := os.RemoveAll(r.results); err != nil {
		return 0, fmt.Errorf("empty the results: %w", err)
	}
	var all []outcome
	for i, step := range steps {
		dir, err := filepath.Abs(filepath.Join(r.results, step))
		if err != nil {
			return 0, err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return 0, err
		}
		fmt.Fprintf(r.out, "\n=== %s\n", step)
		started := time.Now()
		stepErr := r.make(ctx, step, dir)
		o, err := count(dir, stepErr != nil)
		if err != nil {
			return 0, err
		}
		o.step, o.took = step, time.Since(started)
		all = append(all, o)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if stepErr != nil && step == r.vital {
			fmt.Fprintf(r.out, "%s failed, so these did not run: %s\n", step, strings.Join(steps[i+1:], " "))
			break
		}
	}
	return r.summary(all), nil
}

func (r runner) summary(all []outcome) int {
	var passed, failed int
	fmt.Fprintln(r.out)
	for _, o := range all {
		skipped := ""
		if o.skipped > 0 {
			skipped = fmt.Sprintf(", %d skipped", o.skipped)
		}
		fmt.Fprintf(r.out, "%-14s %d passed, %d failed%s (%s)\n", o.step, o.passed, o.failed, skipped, o.took.Round(100*time.Millisecond))
		passed += o.passed
		failed += o.failed
	}
	fmt.Fprintf(r.out, "%d passed, %d failed\n", passed, failed)
	return failed
}

// suite is the part of a JUnit report that is counted. Suites nest in some dialects.
type suite struct {
	Suites []suite `xml:"testsuite"`
	Cases  []struct {
		Failure *struct{} `xml:"failure"`
		Error   *struct{} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	} `xml:"testcase"`
}

func (s suite) add(o *outcome) {
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil || c.Error != nil:
			o.failed++
		case c.Skipped != nil:
			o.skipped++
		default:
			o.passed++
		}
	}
	for _, inner := range s.Suites {
		inner.add(o)
	}
}

func count(dir string, broken bool) (outcome, error) {
	var o outcome
	reports, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		return o, err
	}
	for _, f := range reports {
		data, err := os.ReadFile(f)
		if err != nil {
			return o, err
		}
		var s suite
		if err := xml.Unmarshal(data, &s); err != nil {
			return o, fmt.Errorf("%s: %w", f, err)
		}
		s.add(&o)
	}
	switch {
	case broken && o.failed == 0:
		o.failed = 1
	case len(reports) == 0:
		o.passed = 1
	}
	return o, nil
}
