// SPDX-License-Identifier: Apache-2.0

// Command smoke plays a story of two people and an agent against the real programs, in a folder of its own and on
// free ports. It knows the product only as a stranger's program could: by the commands of the binaries and the SDK.
//
// It prints a line per step and at the end "N passed, M failed", and exits with 0 when none failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	const failed, wrongCall = 1, 2
	set := flag.NewFlagSet("smoke", flag.ContinueOnError)
	set.SetOutput(problems)
	binary := set.String("binary", "", "the `program` bothy")
	adapter := set.String("agent", "", "the `program` bothy-agent; the one beside bothy when empty")
	junit := set.String("junit", "", "`file` for a report in the form of JUnit")
	keep := set.Bool("keep", false, "leave the folder of the instance, with the logs, where it is")
	const patience = 3 * time.Minute
	timeout := set.Duration("timeout", patience, "longest `time` for everything")
	if err := set.Parse(args); err != nil {
		return wrongCall
	}
	in, err := prepare(*binary, *adapter)
	if err != nil {
		_, _ = fmt.Fprintln(problems, "smoke:", err)
		return wrongCall
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	s := &story{in: in}
	result := play(ctx, out, s.steps())
	s.close()
	bad := result.Failures > 0
	if bad {
		in.explain(problems)
	}
	if *junit != "" {
		if err := result.write(*junit); err != nil {
			_, _ = fmt.Fprintln(problems, "smoke: report:", err)
			bad = true
		}
	}
	if *keep || bad {
		_, _ = fmt.Fprintln(problems, "the instance is in", in.dir)
	} else if err := os.RemoveAll(in.dir); err != nil {
		_, _ = fmt.Fprintln(problems, "smoke:", err)
	}
	_, _ = fmt.Fprintf(out, "%d passed, %d failed\n", result.Tests-result.Failures, result.Failures)
	if bad {
		return failed
	}
	return 0
}

func prepare(binary, adapter string) (*instance, error) {
	if binary == "" {
		return nil, errors.New("-binary is needed")
	}
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	if adapter == "" {
		adapter = filepath.Join(filepath.Dir(binary), "bothy-agent")
	} else if adapter, err = filepath.Abs(adapter); err != nil {
		return nil, err
	}
	for _, program := range []string{binary, adapter} {
		if _, err := os.Stat(program); err != nil {
			return nil, fmt.Errorf("%w; make build makes it", err)
		}
	}
	return newInstance(binary, adapter)
}

// step is one thing that must work.
type step struct {
	what string
	do   func(context.Context) error
	// basis means that nothing after it makes sense when it fails.
	basis bool
}

// play does the steps in order. A step that fails does not keep the others from being tried.
func play(ctx context.Context, out io.Writer, steps []step) *report {
	const patience = 30 * time.Second
	result := &report{}
	for _, s := range steps {
		began := time.Now()
		stepCtx, cancel := context.WithTimeout(ctx, patience)
		err := attempt(stepCtx, s.do)
		cancel()
		took := time.Since(began).Round(time.Millisecond)
		result.add(s.what, took, err)
		if err == nil {
			_, _ = fmt.Fprintf(out, "ok    %8s  %s\n", took, s.what)
			continue
		}
		_, _ = fmt.Fprintf(out, "FAIL  %8s  %s: %v\n", took, s.what, err)
		if s.basis {
			break
		}
	}
	return result
}

// attempt keeps a step that relied on one that failed from ending everything.
func attempt(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do(ctx)
}
