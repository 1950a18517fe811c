// SPDX-License-Identifier: Apache-2.0

// Command bothy is the server and everything an operator does with it.
//
// Exit codes of all commands: 0 done, 1 failed or a negative result, 2 called or configured
// wrongly. From 3 on they belong to the command and stand in its help. What a script reads
// stands alone on standard output; everything else goes to standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// command is one subcommand.
type command struct {
	// name is one word or two, as typed.
	name string
	// usage is what stands behind the name.
	usage string
	help  string
	run   func(ctx context.Context, c *call) int
}

// call is one invocation of a command.
type call struct {
	args           []string
	stdout, stderr io.Writer
	environ        []string
	signals        <-chan os.Signal
	command        *command
}

var commands = []command{
	{name: "serve", usage: "[--role api|worker|all] [--config FILE]", run: serve,
		help: "start the server: requests and connections (api), jobs and consumers (worker), or both (all). Exit 3: ended by a second signal."},
	{name: "migrate up", usage: "[--bootstrap] [--config FILE]", run: migrateUp,
		help: "bring the database up to this version; --bootstrap first creates the database and its five roles."},
	{name: "migrate status", usage: "[--config FILE]", run: migrateStatus,
		help: "list the steps of the schema. Exit 3: steps are pending. Exit 4: the database is newer than this binary."},
	{name: "migrate validate", usage: "", run: migrateValidate, help: "check the embedded steps without a database."},
	{name: "setup bootstrap-owner", usage: "--handle H --display-name N [--email E] [--config FILE]", run: bootstrapOwner,
		help: "prepare the first owner and print the enrollment code. Repeatable until it is redeemed. Exit 3: the setup is complete."},
	{name: "setup issue-enrollment-code", usage: "--handle H [--promote] [--config FILE]", run: issueEnrollmentCode,
		help: "print a recovery code for an owner. Exit 4: the setup is not complete yet."},
	{name: "config check", usage: "[--secrets] [--config FILE]", run: configCheck,
		help: "load and check the configuration; --secrets also resolves every reference to a secret."},
	{name: "config print", usage: "[--changed] [--config FILE]", run: configPrint,
		help: "print the effective configuration with the source of each value; --changed leaves defaults out."},
	{name: "config reference", usage: "", run: configReference, help: "print the reference of all keys as Markdown."},
	{name: "secrets init", usage: "--target DIR [--source DIR] [--owner SERVICE=UID:GID ...] [--adopt-source]", run: secretsInit,
		help: "make the secrets that are missing in DIR/_store, which is the folder for secrets.dir, and give each named service a folder with copies of its own; repeating changes nothing. Needs no configuration."},
	{name: "audit verify", usage: "FILE [--jwks FILE ...] [--key FILE] [--checkpoints DIR] [--output text|json]", run: auditVerify,
		help: "verify an export of the audit log (- for standard input) against keys and deposited checkpoints that did not come with it. Needs no configuration, database or server. Exit 1: broken. Exit 3: no readable export. Exit 4: nothing is broken, and no trusted key vouches for it."},
	{name: "restore finalize", usage: "[--relocation MANIFEST] [--config FILE]", run: restoreFinalize,
		help: "end a restore: a new epoch for clients and consumers, or with a manifest prove that nothing was lost. No server may run."},
	{name: "healthcheck", usage: "--url URL [--timeout 5s]", run: healthcheck,
		help: "ask a health endpoint on loopback; for containers without a shell."},
	{name: "dev seed", usage: "[--size small|medium|large] [--config FILE]", run: devSeed,
		help: "add demo data. Exit 3: the environment is not dev."},
	{name: "dev up", usage: "[--data DIR] [--listen ADDR] [--agent PROGRAM]", run: devUp,
		help: "everything for a look around in one process tree: database, demo team, server and demo agent. Exit 3: the environment is not dev."},
	{name: "version", usage: "", run: printVersion, help: "print version, commit and versions of Go and the schema."},
}

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr, signals))
}

func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		writeHelp(stdout)
		if len(args) == 0 {
			return exitUsage
		}
		return exitOK
	}
	for i := range commands {
		words := strings.Fields(commands[i].name)
		if len(args) < len(words) || strings.Join(args[:len(words)], " ") != commands[i].name {
			continue
		}
		c := &call{args: args[len(words):], stdout: stdout, stderr: stderr, environ: environ, signals: signals, command: &commands[i]}
		return commands[i].run(ctx, c)
	}
	_, _ = fmt.Fprintf(stderr, "bothy: there is no command %q; see bothy help\n", strings.Join(args, " "))
	return exitUsage
}

func writeHelp(w io.Writer) {
	_, _ = fmt.Fprintln(w, "bothy is a team chat in which agents are members.\n\nCommands:")
	for _, c := range commands {
		_, _ = fmt.Fprintf(w, "\n  bothy %s %s\n      %s\n", c.name, c.usage, c.help)
	}
}

// flags makes the flag set of a command; parse it with parse.
func (c *call) flags() *flag.FlagSet {
	set := flag.NewFlagSet("bothy "+c.command.name, flag.ContinueOnError)
	set.SetOutput(c.stderr)
	set.Usage = func() {
		_, _ = fmt.Fprintf(c.stderr, "usage: bothy %s %s\n%s\n", c.command.name, c.command.usage, c.command.help)
		set.PrintDefaults()
	}
	return set
}

// parse reads the flags; ok is false when the command is not to run, with the exit code.
func (c *call) parse(set *flag.FlagSet) (code int, ok bool) {
	_, code, ok = c.parseArgs(set, 0)
	return code, ok
}

// parseArgs is parse for a command that takes words beside its flags, before or behind them.
func (c *call) parseArgs(set *flag.FlagSet, most int) (words []string, code int, ok bool) {
	for rest := c.args; ; rest = set.Args()[1:] {
		err := set.Parse(rest)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return nil, exitOK, false
		case err != nil:
			return nil, exitUsage, false
		case set.NArg() == 0:
			return words, exitOK, true
		case len(words) == most:
			_, _ = fmt.Fprintf(c.stderr, "bothy %s: unexpected argument %q\n", c.command.name, set.Arg(0))
			return nil, exitUsage, false
		}
		words = append(words, set.Arg(0))
	}
}

// fail reports an error and gives the code. What was wrong with which value stands in the fields
// of a validation alone, so they are told too.
func (c *call) fail(code int, err error) int {
	_, _ = fmt.Fprintf(c.stderr, "bothy %s: %v\n", c.command.name, err)
	if fault := (*errs.Error)(nil); errors.As(err, &fault) {
		for _, f := range fault.Fields {
			_, _ = fmt.Fprintf(c.stderr, "  %s: %s\n", f.Pointer, f.Message)
		}
	}
	return code
}

// untilSignal gives a context that ends with the first signal, for commands that are no
// servers: they end within seconds and leave nothing half done.
func (c *call) untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
