// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// DevOptions say where a look around happens.
type DevOptions struct {
	// Data is the folder of everything that is made; deleting it starts anew.
	Data string
	// Listen is the address to open in the browser.
	Listen string
	// Agent is the program of the demo agent.
	Agent   string
	Environ []string
}

// errNotDev refuses demo data in an installation that people work in.
var errNotDev = errors.New("only in instance.environment = dev")

const notDevCode = 3

// DevUp brings up everything for a look around, in one process tree: database, schema, owner,
// demo team, server and demo agent. It gives the exit code of the server.
func DevUp(ctx context.Context, o DevOptions, console Console, signals <-chan os.Signal) int {
	if environment := lookup(o.Environ, "BOTHY_INSTANCE__ENVIRONMENT"); environment != "" && environment != "dev" {
		_, _ = fmt.Fprintln(console.Err, "bothy dev up:", errNotDev)
		return notDevCode
	}
	d := &devUp{options: o, console: console}
	if err := d.prepare(ctx); err != nil {
		_, _ = fmt.Fprintln(console.Err, "bothy dev up:", err)
		return lifecycle.ExitFailure
	}
	return d.run(ctx, signals)
}

type devUp struct {
	options DevOptions
	console Console
	data    string
	from    Sources
	team    *demoTeam
}

// prepare makes the folder, its secrets, the database, the owner and the demo data. Every step
// looks at what is there, so that the next start takes seconds.
func (d *devUp) prepare(ctx context.Context) error {
	var err error
	if d.data, err = filepath.Abs(d.options.Data); err != nil {
		return err
	}
	// The folder itself lists nothing to others, but lets the user pass who runs PostgreSQL
	// when this process is root.
	if err := os.MkdirAll(d.data, 0o711); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	for _, folder := range []string{d.path("keys"), d.path("secrets")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make the folder: %w", err)
		}
	}
	if _, err := secrets.Init(secrets.InitOptions{Target: d.path("secrets")}); err != nil {
		return fmt.Errorf("make the secrets: %w", err)
	}
	password, err := d.password()
	if err != nil {
		return err
	}
	d.from = Sources{Environ: nil, Flags: d.keys()}
	quiet := Console{Out: discard{}, Err: d.console.Err}
	if err := MigrateUp(ctx, d.from, quiet, true); err != nil {
		return fmt.Errorf("prepare the database: %w", err)
	}
	return withModules(ctx, d.from, d.console, func(ctx context.Context, r *commandRun) error {
		d.team, err = r.seedDemo(ctx, password)
		return err
	})
}

func (d *devUp) path(name string) string { return filepath.Join(d.data, name) }

// keys are the configuration of a look around: everything below one folder, on loopback.
func (d *devUp) keys() map[string]string {
	return map[string]string{
		"instance.environment":        "dev",
		"server.listen_addr":          d.options.Listen,
		"server.internal_listen_addr": "127.0.0.1:0",
		"server.public_url":           "http://" + strings.Replace(d.options.Listen, "127.0.0.1", "localhost", 1),
		"secrets.dir":                 filepath.Join(d.path("secrets"), secrets.StoreFolder),
		"secrets.signing_key_dir":     d.path("keys"),
		"database.mode":               "embedded",
		"database.embedded.data_dir":  d.databaseFolder(),
		// A provider of the same machine, for trying out how people sign in by one.
		"egress.allowed_hosts": `[{"host":"127.0.0.1","ports":[9400],"allow_private":true}]`,
		"shutdown.drain_delay": "0s",
		"log.level":            "warn",
	}
}

// databaseFolder is below the data, or where temporary files are kept when root works in a
// home that only root may pass: PostgreSQL runs as another user.
func (d *devUp) databaseFolder() string {
	inside := d.path("postgres")
	if os.Geteuid() != 0 {
		return inside
	}
	for dir := d.data; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 {
			sum := sha256.Sum256([]byte(d.data))
			return filepath.Join("/var/tmp", fmt.Sprintf("bothy-dev-%x", sum[:6]))
		}
	}
	return inside
}

// password is one random word of the data folder, readable by its owner alone.
func (d *devUp) password() (string, error) {
	name := d.path("demo-password")
	if raw, err := os.ReadFile(name); err == nil {
		return strings.TrimSpace(string(raw)), nil
	}
	var random [15]byte
	_, _ = rand.Read(random[:])
	password := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
	if err := os.WriteFile(name, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the demo password: %w", err)
	}
	return password, nil
}

func (d *devUp) run(ctx context.Context, signals <-chan os.Signal) int {
	c, _, err := LoadConfig(d.from)
	if err != nil {
		_, _ = fmt.Fprintln(d.console.Err, "bothy dev up:", err)
		return lifecycle.ExitConfig
	}
	agentCtx, stopAgent := context.WithCancel(ctx)
	defer stopAgent()
	agentDone := make(chan struct{})
	close(agentDone)
	ready := func(address, _ string) {
		d.announce(address)
		done := make(chan struct{})
		agentDone = done
		go func() {
			defer close(done)
			d.runAgent(agentCtx)
		}()
	}
	code := NewServer(c, Options{Console: d.console, Ready: ready}).Run(ctx, signals)
	stopAgent()
	<-agentDone
	return code
}

func (d *devUp) announce(address string) {
	_, port, _ := strings.Cut(address, ":")
	password, err := d.password()
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(d.console.Out, "\nBothy is up:     http://localhost:%s\nsign in as       %s or %s\npassword         %s\nagent            @%s (mention it in #general)\n\nStop with Ctrl-C. Everything lies in %s.\n\n",
		port, d.team.Owner, d.team.Member, password, d.team.Agent, d.data)
}

// agentPause is the wait before a demo agent that ended is started again.
const agentPause = 2 * time.Second

// runAgent keeps the demo agent running beside the server. Without its program the demo goes
// on with people alone.
func (d *devUp) runAgent(ctx context.Context) {
	program := d.options.Agent
	if program == "" {
		own, err := os.Executable()
		if err != nil {
			return
		}
		program = filepath.Join(filepath.Dir(own), "bothy-agent")
	}
	if _, err := os.Stat(program); err != nil {
		_, _ = fmt.Fprintf(d.console.Err, "demo agent: %s is not there; build it with make build\n", program)
		return
	}
	for ctx.Err() == nil {
		if err := d.startAgent(ctx, program); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(d.console.Err, "demo agent ended:", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(agentPause):
		}
	}
}

func (d *devUp) startAgent(ctx context.Context, program string) error {
	config, err := d.agentConfig()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "run", "--config", config)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.data}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		_, _ = fmt.Fprintln(d.console.Err, "demo agent:", lines.Text())
	}
	return cmd.Wait()
}

// agentConfig writes what the reference adapter reads: the address, its token in a file of its
// own, and the driver that gives back what it is told.
func (d *devUp) agentConfig() (string, error) {
	folder := d.path("agent")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	token := filepath.Join(folder, "token")
	if d.team.AgentToken != "" {
		if err := os.WriteFile(token, []byte(d.team.AgentToken+"\n"), 0o600); err != nil {
			return "", err
		}
	}
	name := filepath.Join(folder, "agent.yaml")
	text := fmt.Sprintf("server:\n  url: http://localhost:%s\n  token_file: %s\npolicy:\n  billing_mode: local\n  tool_class: chat\nstate_dir: %s\ndriver:\n  kind: echo\n",
		port(d.options.Listen), token, filepath.Join(folder, "state"))
	return name, os.WriteFile(name, []byte(text), 0o600)
}

func port(address string) string {
	_, p, _ := strings.Cut(address, ":")
	return p
}

type discard struct{}

// Write implements io.Writer.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// DevSeed adds demo data to an installation for development.
func DevSeed(ctx context.Context, from Sources, console Console, size string) error {
	return withModules(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		if r.config.Instance.Environment != "dev" {
			return ExitError{notDevCode, errNotDev}
		}
		return r.seedTalk(ctx, size)
	})
}
