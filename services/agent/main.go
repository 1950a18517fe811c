// SPDX-License-Identifier: Apache-2.0

// Command bothy-agent is the reference adapter: the program between an instance and what does the work of an agent.
//
// Exit codes: 0 done; 1 error; 2 wrong call or configuration; 3 the credentials are refused; 4 another adapter has taken
// the agent over; 5 another process uses the state folder. After 3, 4 and 5 a restart alone helps nobody.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/agent"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

// version is set when the program is built.
var version string

const (
	exitOK = iota
	exitError
	exitUsage
	exitCredentials
	exitTakenOver
	exitStateInUse
)

const usage = `bothy-agent connects a program to an agent of a Bothy instance.

  bothy-agent init  --config FILE    ask for address, token and driver, and write the file
  bothy-agent check --config FILE    look whether everything is in place
  bothy-agent run   --config FILE    work
  bothy-agent version
`

// console is what a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], console{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, c console) int {
	if len(args) == 0 {
		_, _ = io.WriteString(c.err, usage)
		return exitUsage
	}
	commands := map[string]func(context.Context, []string, console) error{"init": initialise, "check": check, "run": work}
	switch command := commands[args[0]]; {
	case command != nil:
		err := command(ctx, args[1:], c)
		if err != nil && !errors.Is(err, flag.ErrHelp) {
			_, _ = fmt.Fprintf(c.err, "bothy-agent %s: %v\n", args[0], err)
		}
		return exitCode(err)
	case args[0] == "version":
		_, _ = fmt.Fprintln(c.out, "bothy-agent", programVersion())
		return exitOK
	case args[0] == "help", args[0] == "-h", args[0] == "--help":
		_, _ = io.WriteString(c.out, usage)
		return exitOK
	}
	_, _ = fmt.Fprintf(c.err, "bothy-agent: no command %q\n\n%s", args[0], usage)
	return exitUsage
}

// usageError is a wrong call or configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &wrong):
		return exitUsage
	case errors.Is(err, agent.ErrStateInUse):
		return exitStateInUse
	case errors.Is(err, gateway.ErrConsumerTaken):
		return exitTakenOver
	case errors.Is(err, gateway.ErrCredentials), errors.Is(err, gateway.ErrForbidden), bothy.HasCode(err, api.ErrorCodeUnauthenticated):
		return exitCredentials
	}
	return exitError
}

// programVersion is the version the build was told, else that of the module.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
