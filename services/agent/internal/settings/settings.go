// SPDX-License-Identifier: Apache-2.0

// Package settings reads the configuration of the adapter: one YAML file without secrets. Unknown keys are refused,
// ${NAME} in a value stands for a variable of the environment, and every fault is reported at once.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/OWNER/bothy/sdk/go/api"
)

// Settings is the file.
type Settings struct {
	Server Server `yaml:"server"`
	Agent  Agent  `yaml:"agent,omitempty"`
	Policy Policy `yaml:"policy"`
	// StateDir is the folder of what survives a restart. One adapter per folder.
	StateDir string `yaml:"state_dir"`
	Work     Work   `yaml:"work,omitempty"`
	Limits   Limits `yaml:"limits,omitempty"`
	Cancel   Cancel `yaml:"cancel,omitempty"`
	Driver   Driver `yaml:"driver"`
	// LogLevel is debug, info, warn or error. With debug, what a program writes to standard error is logged.
	LogLevel string `yaml:"log_level,omitempty"`
}

// Server is where the instance is and what the adapter proves itself with.
type Server struct {
	URL string `yaml:"url"`
	// TokenFile or TokenEnv says where the API token of the agent is.
	TokenFile string `yaml:"token_file,omitempty"`
	TokenEnv  string `yaml:"token_env,omitempty"`
	// InstanceID is the only instance that is spoken to.
	InstanceID string `yaml:"instance_id,omitempty"`
}

// Agent is whom the adapter works for.
type Agent struct {
	// ID, when set, is the only agent the token may belong to.
	ID string `yaml:"id,omitempty"`
}

// Policy is what each order is checked against, whatever the server says.
type Policy struct {
	BillingMode string `yaml:"billing_mode"`
	// HolderID is the person of a personal agent.
	HolderID      string   `yaml:"holder_id,omitempty"`
	ToolClass     string   `yaml:"tool_class"`
	AllowPeople   []string `yaml:"allow_people,omitempty"`
	AllowChannels []string `yaml:"allow_channels,omitempty"`
}

// Work says in which folders programs run.
type Work struct {
	// Root holds one folder per thread; "work" below the state folder when empty.
	Root string `yaml:"root,omitempty"`
	// Mode is thread, for a folder per thread, or fixed, for Root itself.
	Mode string `yaml:"mode,omitempty"`
}

// Limits bound the work.
type Limits struct {
	// Concurrency is how many runs are at work at once, over all threads.
	Concurrency int `yaml:"concurrency,omitempty"`
	// RunTimeout ends a run that takes longer, IdleTimeout one that writes nothing for so long.
	RunTimeout  time.Duration `yaml:"run_timeout,omitempty"`
	IdleTimeout time.Duration `yaml:"idle_timeout,omitempty"`
}

// Cancel says how a program is stopped.
type Cancel struct {
	// Hard is how long after SIGTERM the whole process group gets SIGKILL.
	Hard time.Duration `yaml:"hard,omitempty"`
}

// Driver says what does the work.
type Driver struct {
	// Kind is echo or command.
	Kind    string  `yaml:"kind"`
	Echo    Echo    `yaml:"echo,omitempty"`
	Command Command `yaml:"command,omitempty"`
}

// Echo is the driver that says the order back.
type Echo struct {
	// Pause is the wait between two words.
	Pause time.Duration `yaml:"pause,omitempty"`
}

// Command is the driver that starts a program per run.
type Command struct {
	// Argv is the program and its arguments. No shell is involved and nothing of the order is in it.
	Argv []string `yaml:"argv,omitempty"`
	// Input is json, for order and context, or text, for the order alone.
	Input string `yaml:"input,omitempty"`
	// Env names variables that are handed on besides the usual few.
	Env []string `yaml:"env,omitempty"`
	// ContextMessages is how many messages of the thread come with the order.
	ContextMessages int `yaml:"context_messages,omitempty"`
}

// Load reads the file, completes it with defaults and checks it.
func Load(name string) (*Settings, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	s, err := Parse(text, os.LookupEnv)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Parse is Load of a text, with the variables of an environment.
func Parse(text []byte, lookup func(string) (string, bool)) (*Settings, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if err := expand(&doc, lookup); err != nil {
		return nil, err
	}
	expanded, err := yaml.Marshal(&doc)
	if err != nil {
		return nil, err
	}
	var s Settings
	d := yaml.NewDecoder(bytes.NewReader(expanded))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.complete()
	return &s, s.check()
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces variables in values, never in keys.
func expand(n *yaml.Node, lookup func(string) (string, bool)) error {
	var faults []error
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		faults = append(faults, expand(child, lookup))
	}
	if n.Kind == yaml.ScalarNode {
		n.Value = variable.ReplaceAllStringFunc(n.Value, func(match string) string {
			name := match[2 : len(match)-1]
			value, ok := lookup(name)
			if !ok {
				faults = append(faults, fmt.Errorf("line %d: the environment has no %s", n.Line, name))
			}
			return value
		})
	}
	return errors.Join(faults...)
}

func (s *Settings) complete() {
	const (
		concurrency = 4
		run, idle   = time.Hour, 15 * time.Minute
		hard        = 20 * time.Second
		pause       = 30 * time.Millisecond
		messages    = 20
	)
	fill(&s.Work.Mode, "thread")
	fill(&s.LogLevel, "info")
	fill(&s.Limits.Concurrency, concurrency)
	fill(&s.Limits.RunTimeout, run)
	fill(&s.Limits.IdleTimeout, idle)
	fill(&s.Cancel.Hard, hard)
	fill(&s.Driver.Echo.Pause, pause)
	fill(&s.Driver.Command.Input, "json")
	fill(&s.Driver.Command.ContextMessages, messages)
	if s.StateDir != "" {
		fill(&s.Work.Root, filepath.Join(s.StateDir, "work"))
	}
}

func fill[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

// check collects every fault.
func (s *Settings) check() error {
	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	one := func(key, value string, allowed ...string) {
		fault(slices.Contains(allowed, value), "%s: %q is none of %s", key, value, strings.Join(allowed, ", "))
	}
	fault(strings.HasPrefix(s.Server.URL, "http://") || strings.HasPrefix(s.Server.URL, "https://"), "server.url: an address like https://chat.example.org is needed")
	fault((s.Server.TokenFile == "") != (s.Server.TokenEnv == ""), "server: exactly one of token_file and token_env is needed")
	one("policy.billing_mode", s.Policy.BillingMode, string(api.BillingModePersonal), string(api.BillingModeOrganization), string(api.BillingModeLocal))
	one("policy.tool_class", s.Policy.ToolClass, string(api.ToolClassChat), string(api.ToolClassSandboxed), string(api.ToolClassHost))
	fault((s.Policy.BillingMode == string(api.BillingModePersonal)) == (s.Policy.HolderID != ""), "policy.holder_id: needed exactly with personal")
	fault(filepath.IsAbs(s.StateDir), "state_dir: an absolute path is needed")
	fault(s.Work.Root == "" || filepath.IsAbs(s.Work.Root), "work.root: an absolute path is needed")
	one("work.mode", s.Work.Mode, "thread", "fixed")
	one("log_level", s.LogLevel, "debug", "info", "warn", "error")
	const most = 64
	fault(s.Limits.Concurrency > 0 && s.Limits.Concurrency <= most, "limits.concurrency: must be between 1 and %d", most)
	fault(s.Limits.RunTimeout > 0 && s.Limits.IdleTimeout > 0 && s.Cancel.Hard > 0 && s.Driver.Echo.Pause > 0, "limits, cancel, driver.echo.pause: times must be positive")
	one("driver.kind", s.Driver.Kind, "echo", "command")
	if s.Driver.Kind == "command" {
		fault(len(s.Driver.Command.Argv) > 0 && s.Driver.Command.Argv[0] != "", "driver.command.argv: a program is needed")
		one("driver.command.input", s.Driver.Command.Input, "json", "text")
		fault(s.Server.TokenEnv == "" || !slices.Contains(s.Driver.Command.Env, s.Server.TokenEnv), "driver.command.env: must not hand on the adapter's token")
		const page = 200
		fault(s.Driver.Command.ContextMessages > 0 && s.Driver.Command.ContextMessages <= page, "driver.command.context_messages: must be between 1 and %d", page)
	}
	return errors.Join(faults...)
}

// Token reads the secret from where the settings say.
func (s *Settings) Token() (string, error) {
	if s.Server.TokenEnv != "" {
		token := os.Getenv(s.Server.TokenEnv)
		if token == "" {
			return "", fmt.Errorf("the environment has no %s", s.Server.TokenEnv)
		}
		return token, nil
	}
	info, err := os.Stat(s.Server.TokenFile)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	const others = 0o077
	if info.Mode().Perm()&others != 0 {
		return "", fmt.Errorf("token: %s can be read by others; chmod 600 it", s.Server.TokenFile)
	}
	text, err := os.ReadFile(s.Server.TokenFile)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("token: %s is empty", s.Server.TokenFile)
	}
	return token, nil
}
