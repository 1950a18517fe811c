// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
	"github.com/OWNER/bothy/services/server/internal/wire"
)

// sources are the flags that every command with a configuration has.
func (c *call) sources(set *flag.FlagSet) *wire.Sources {
	from := &wire.Sources{Environ: c.environ, Flags: map[string]string{}}
	set.StringVar(&from.File, "config", "", "configuration `file`")
	return from
}

// console is what a command of the composition root writes to.
func (c *call) console() wire.Console { return wire.Console{Out: c.stdout, Err: c.stderr} }

// outcome turns the error of a command into its exit code: what the configuration caused is a
// wrong call, a code of its own comes with the error, everything else has failed.
func (c *call) outcome(err error) int {
	var coded wire.ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return c.fail(coded.Code, coded.Err)
	case wire.IsConfigError(err):
		return c.fail(exitUsage, err)
	default:
		return c.fail(exitFailed, err)
	}
}

func serve(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	role := set.String("role", "", "api, worker or all")
	if code, ok := c.parse(set); !ok {
		return code
	}
	if *role != "" {
		from.Flags["server.role"] = *role
	}
	return wire.Serve(ctx, *from, c.console(), c.signals)
}

func migrateUp(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	bootstrap := set.Bool("bootstrap", false, "first create database and roles")
	if code, ok := c.parse(set); !ok {
		return code
	}
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.MigrateUp(ctx, *from, c.console(), *bootstrap))
}

func migrateStatus(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	if code, ok := c.parse(set); !ok {
		return code
	}
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.MigrateStatus(ctx, *from, c.console()))
}

func migrateValidate(_ context.Context, c *call) int {
	if code, ok := c.parse(c.flags()); !ok {
		return code
	}
	return c.outcome(wire.MigrateValidate(c.console()))
}

func bootstrapOwner(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	var owner wire.Owner
	set.StringVar(&owner.Handle, "handle", "", "`name` to sign in with")
	set.StringVar(&owner.DisplayName, "display-name", "", "`name` shown to others")
	set.StringVar(&owner.Email, "email", "", "`address`, optional")
	if code, ok := c.parse(set); !ok {
		return code
	}
	if owner.Handle == "" || owner.DisplayName == "" {
		return c.fail(exitUsage, errors.New("--handle and --display-name are needed"))
	}
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.BootstrapOwner(ctx, *from, c.console(), owner))
}

func issueEnrollmentCode(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	handle := set.String("handle", "", "`name` of the owner")
	promote := set.Bool("promote", false, "make the person an owner, when no owner can sign in any more")
	if code, ok := c.parse(set); !ok {
		return code
	}
	if *handle == "" {
		return c.fail(exitUsage, errors.New("--handle is needed"))
	}
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.IssueEnrollmentCode(ctx, *from, c.console(), *handle, *promote))
}

func auditVerify(ctx context.Context, c *call) int {
	set := c.flags()
	var in wire.AuditVerify
	set.Func("jwks", "`file` with a JWKS of the instance, kept from earlier; may be given more than once", func(name string) error {
		in.JWKS = append(in.JWKS, name)
		return nil
	})
	set.StringVar(&in.Key, "key", "", "`file` with one public key, in PEM form or as a JWK")
	set.StringVar(&in.Checkpoints, "checkpoints", "", "`folder` that checkpoints were deposited in")
	output := set.String("output", "text", "text or json")
	words, code, ok := c.parseArgs(set, 1)
	if !ok {
		return code
	}
	if len(words) == 0 || *output != "text" && *output != "json" {
		return c.fail(exitUsage, errors.New("name one file, or - for standard input; --output is text or json"))
	}
	in.File, in.JSON = words[0], *output == "json"
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.VerifyAuditFile(ctx, in, os.Stdin, c.console()))
}

func configCheck(_ context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	secrets := set.Bool("secrets", false, "resolve every reference to a secret")
	if code, ok := c.parse(set); !ok {
		return code
	}
	return c.outcome(wire.ConfigCheck(*from, c.console(), *secrets))
}

func configPrint(_ context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	changed := set.Bool("changed", false, "leave out what has its default")
	if code, ok := c.parse(set); !ok {
		return code
	}
	return c.outcome(wire.PrintConfig(*from, c.stdout, *changed))
}

func configReference(_ context.Context, c *call) int {
	if code, ok := c.parse(c.flags()); !ok {
		return code
	}
	return c.outcome(wire.ConfigReference(c.stdout))
}

func secretsInit(_ context.Context, c *call) int {
	set := c.flags()
	var o secrets.InitOptions
	set.StringVar(&o.Target, "target", "", "`folder` that gets _store with every secret")
	set.StringVar(&o.Source, "source", "", "`folder` with secrets that exist already")
	set.BoolVar(&o.AdoptSource, "adopt-source", false, "let the source win where both differ; the former value stays as NAME.previous")
	set.Func("owner", "`SERVICE=UID:GID` gets a folder beside _store with copies of what it uses; repeatable", func(text string) error {
		owner, err := secrets.ParseOwner(text)
		o.Owners = append(o.Owners, owner)
		return err
	})
	if code, ok := c.parse(set); !ok {
		return code
	}
	if o.Target == "" {
		return c.fail(exitUsage, errors.New("--target is needed"))
	}
	results, err := secrets.Init(o)
	for _, r := range results {
		_, _ = fmt.Fprintln(c.stdout, r.Outcome, r.Name)
	}
	return c.outcome(err)
}

func restoreFinalize(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	manifest := set.String("relocation", "", "manifest `file` of the final backup of a move")
	if code, ok := c.parse(set); !ok {
		return code
	}
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.RestoreFinalize(ctx, *from, c.console(), *manifest))
}

func devSeed(ctx context.Context, c *call) int {
	set := c.flags()
	from := c.sources(set)
	size := set.String("size", "small", "small, medium or large")
	if code, ok := c.parse(set); !ok {
		return code
	}
	ctx, cancel := c.untilSignal(ctx)
	defer cancel()
	return c.outcome(wire.DevSeed(ctx, *from, c.console(), *size))
}

func devUp(ctx context.Context, c *call) int {
	set := c.flags()
	options := wire.DevOptions{Environ: c.environ}
	set.StringVar(&options.Data, "data", ".bothy", "`folder` for everything; delete it to start anew")
	set.StringVar(&options.Listen, "listen", "127.0.0.1:8080", "`address` to open in the browser")
	set.StringVar(&options.Agent, "agent", "", "`program` of the demo agent; empty looks for bothy-agent beside this binary")
	if code, ok := c.parse(set); !ok {
		return code
	}
	return wire.DevUp(ctx, options, c.console(), c.signals)
}

func printVersion(_ context.Context, c *call) int {
	if code, ok := c.parse(c.flags()); !ok {
		return code
	}
	_, _ = fmt.Fprintln(c.stdout, wire.Version())
	return exitOK
}
