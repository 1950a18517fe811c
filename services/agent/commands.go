// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/agent"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/gateway"

	"github.com/OWNER/bothy/services/agent/internal/driver"
	"github.com/OWNER/bothy/services/agent/internal/settings"
)

// load parses the flags of a command that has a configuration, and reads that.
func load(name string, args []string, c console) (*settings.Settings, error) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(c.err)
	file := set.String("config", "agent.yaml", "configuration `file`")
	if err := parse(set, args); err != nil {
		return nil, err
	}
	s, err := settings.Load(*file)
	if err != nil {
		return nil, usageError{err}
	}
	return s, nil
}

func parse(set *flag.FlagSet, args []string) error {
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return usageError{err}
	case set.NArg() > 0:
		return usageError{fmt.Errorf("unexpected argument %q", set.Arg(0))}
	}
	return nil
}

func logger(s *settings.Settings, c console) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // checked with the settings
	return slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: level}))
}

// work runs the adapter until a signal or an end that needs a person.
func work(ctx context.Context, args []string, c console) error {
	s, err := load("run", args, c)
	if err != nil {
		return err
	}
	log := logger(s, c)
	cfg, err := adapter(s, log)
	if err != nil {
		return err
	}
	a, err := agent.Open(ctx, *cfg)
	if err != nil {
		return err
	}
	if s.Agent.ID != "" && s.Agent.ID != a.AgentID() {
		return errors.Join(fmt.Errorf("the token belongs to agent %s instead of %s: %w", a.AgentID(), s.Agent.ID, agent.ErrForeign), a.Close())
	}
	log.InfoContext(ctx, "working", "agent_id", a.AgentID(), "instance_id", a.InstanceID(), "driver", s.Driver.Kind, "version", programVersion())
	err = a.Run(ctx)
	return errors.Join(err, a.Close())
}

// adapter is the configuration of the SDK.
func adapter(s *settings.Settings, log *slog.Logger) (*agent.Config, error) {
	token, err := s.Token()
	if err != nil {
		return nil, usageError{err}
	}
	d, err := driver.New(s, log)
	if err != nil {
		return nil, usageError{err}
	}
	report := d.Report()
	report.Adapter = gateway.Program{Name: "bothy-agent", Version: programVersion()}
	return &agent.Config{
		URL: s.Server.URL, Token: token, StateDir: s.StateDir, InstanceID: s.Server.InstanceID, Concurrency: s.Limits.Concurrency,
		Policy: agent.Policy{
			BillingMode: api.BillingMode(s.Policy.BillingMode), HolderID: s.Policy.HolderID, ToolClass: api.ToolClass(s.Policy.ToolClass),
			AllowPeople: s.Policy.AllowPeople, AllowChannels: s.Policy.AllowChannels,
		},
		Report: report, Work: d.Work, Interrupted: d.Interrupted, Log: log,
	}, nil
}

// check looks at each thing the adapter needs and tells about it.
func check(ctx context.Context, args []string, c console) error {
	s, err := load("check", args, c)
	if err != nil {
		return err
	}
	var failed error
	tell := func(what string, err error) bool {
		if err != nil {
			failed = errors.Join(failed, err)
			_, _ = fmt.Fprintf(c.out, "FAIL  %s: %v\n", what, err)
			return false
		}
		_, _ = fmt.Fprintf(c.out, "ok    %s\n", what)
		return true
	}
	tell("configuration", nil)
	d, err := driver.New(s, logger(s, c))
	if err == nil {
		err = d.Check()
	}
	tell("driver "+s.Driver.Kind, err)
	token, err := s.Token()
	if !tell("token can be read", err) {
		return errChecks
	}
	client, err := bothy.New(s.Server.URL, bothy.WithCredential(bothy.APIToken(token)), bothy.WithRetry(bothy.Retry{Attempts: 2}))
	if err != nil {
		return err
	}
	found, err := look(ctx, client)
	if !tell("instance answers, token is good", err) {
		if exitCode(err) == exitCredentials {
			return err
		}
		return errChecks
	}
	tell("instance", same(s.Server.InstanceID, found.instanceID))
	tell("agent @"+found.handle, same(s.Agent.ID, found.agentID))
	if failed != nil {
		return errChecks
	}
	return nil
}

var errChecks = errors.New("not everything is in place")

func same(want, got string) error {
	if want != "" && want != got {
		return fmt.Errorf("is %s instead of %s", got, want)
	}
	return nil
}

// found is where address and token lead.
type found struct{ instanceID, agentID, handle string }

func look(ctx context.Context, client *bothy.Client) (*found, error) {
	discovery, err := client.Discovery(ctx)
	if err != nil {
		return nil, err
	}
	self, err := client.Self(ctx)
	if err != nil {
		return nil, err
	}
	if self.Kind != api.PrincipalKindAgent {
		return nil, fmt.Errorf("the token belongs to a %s, not to an agent", self.Kind)
	}
	return &found{instanceID: discovery.InstanceID, agentID: self.ID, handle: self.Handle}, nil
}

// initialise writes a configuration after it has made sure that address and token are good. The token never is an
// argument, where other users of the machine could read it.
func initialise(ctx context.Context, args []string, c console) error {
	set := flag.NewFlagSet("init", flag.ContinueOnError)
	set.SetOutput(c.err)
	var s settings.Settings
	file := set.String("config", "agent.yaml", "`file` to write")
	set.StringVar(&s.Server.URL, "url", os.Getenv("BOTHY_URL"), "`address` of the instance (BOTHY_URL)")
	set.StringVar(&s.Server.TokenFile, "token-file", "", "`file` with the API token; otherwise the token is asked for, or taken from BOTHY_AGENT_TOKEN")
	set.StringVar(&s.StateDir, "state-dir", "", "`folder` of what survives a restart; beside the configuration when empty")
	set.StringVar(&s.Policy.BillingMode, "billing-mode", string(api.BillingModeLocal), "personal, organization or local")
	set.StringVar(&s.Policy.HolderID, "holder-id", "", "`ID` of the person of a personal agent")
	set.StringVar(&s.Policy.ToolClass, "tool-class", string(api.ToolClassChat), "chat, sandboxed or host")
	set.StringVar(&s.Driver.Kind, "driver", "", "echo or command")
	force := set.Bool("force", false, "replace a file that is there")
	set.Func("command", "the program of the driver command; give it once per `argument`", func(arg string) error {
		s.Driver.Command.Argv = append(s.Driver.Command.Argv, arg)
		return nil
	})
	if err := parse(set, args); err != nil {
		return err
	}
	name, err := filepath.Abs(*file)
	if err != nil {
		return err
	}
	if _, err := os.Stat(name); err == nil && !*force {
		return usageError{fmt.Errorf("%s is there already; --force replaces it", name)}
	}
	ask := bufio.NewScanner(c.in)
	token, err := complete(&s, name, ask, c)
	if err != nil {
		return err
	}
	client, err := bothy.New(s.Server.URL, bothy.WithCredential(bothy.APIToken(token)), bothy.WithRetry(bothy.Retry{Attempts: 2}))
	if err != nil {
		return usageError{err}
	}
	at, err := look(ctx, client)
	if err != nil {
		return err
	}
	s.Server.InstanceID, s.Agent.ID = at.instanceID, at.agentID
	if err := write(name, &s); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.out, "%s: agent @%s of instance %s\nnext: bothy-agent check --config %s\n", name, at.handle, at.instanceID, name)
	return nil
}

// complete asks for what is missing and puts the token into a file of its own.
func complete(s *settings.Settings, name string, ask *bufio.Scanner, c console) (token string, err error) {
	question := func(value *string, text, standard string) {
		if *value != "" {
			return
		}
		_, _ = fmt.Fprintf(c.err, "%s: ", text)
		if ask.Scan() {
			*value = strings.TrimSpace(ask.Text())
		}
		if *value == "" {
			*value = standard
		}
	}
	question(&s.Server.URL, "Address of the instance", "")
	if s.Server.TokenFile == "" {
		token = os.Getenv("BOTHY_AGENT_TOKEN")
		question(&token, "API token of the agent", "")
		if token == "" {
			return "", usageError{errors.New("a token is needed")}
		}
		s.Server.TokenFile = filepath.Join(filepath.Dir(name), "token")
		if err := private(s.Server.TokenFile, []byte(token+"\n")); err != nil {
			return "", err
		}
	} else if s.Server.TokenFile, err = filepath.Abs(s.Server.TokenFile); err != nil {
		return "", err
	}
	question(&s.Driver.Kind, "Driver, echo or command [echo]", "echo")
	if s.Driver.Kind == "command" && len(s.Driver.Command.Argv) == 0 {
		var program string
		question(&program, "Program with its full path", "")
		s.Driver.Command.Argv = []string{program}
	}
	if s.StateDir == "" {
		s.StateDir = filepath.Join(filepath.Dir(name), "state")
	}
	if s.StateDir, err = filepath.Abs(s.StateDir); err != nil {
		return "", err
	}
	token, err = s.Token()
	if err != nil {
		return "", usageError{err}
	}
	return token, nil
}

// write checks the settings by reading back what is to be written.
func write(name string, s *settings.Settings) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := settings.Parse(text, os.LookupEnv); err != nil {
		return usageError{err}
	}
	return private(name, text)
}

// private writes a file that only its user can read, whatever it was before.
func private(name string, text []byte) error {
	const fileMode, dirMode = 0o600, 0o700
	if err := os.MkdirAll(filepath.Dir(name), dirMode); err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
