// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
)

// instance is an installation in a folder of its own: its configuration and its processes.
type instance struct {
	binary, adapter string
	dir             string
	url             string
	environ         []string
	server          *process
}

// The secrets an installation needs, as random texts.
var secretNames = []string{
	"auth_code_hmac_key", "audit_ip_key", "database_app_password", "database_owner_password", "database_maint_password",
	"database_backup_password", "database_monitor_password", "database_bootstrap_password",
}

func newInstance(binary, adapter string) (*instance, error) {
	dir, err := os.MkdirTemp("", "bothy-smoke-")
	if err != nil {
		return nil, err
	}
	in := &instance{binary: binary, adapter: adapter, dir: dir}
	const private, passage, file = 0o700, 0o711, 0o600
	// When this is root, PostgreSQL runs as somebody else, who has to get to its folder.
	if err := os.Chmod(dir, passage); err != nil {
		return nil, err
	}
	for _, folder := range []string{"secrets", "keys", "logs", "agent"} {
		if err := os.Mkdir(in.path(folder), private); err != nil {
			return nil, err
		}
	}
	for _, name := range secretNames {
		if err := os.WriteFile(in.path("secrets", name), []byte(randomText()+"\n"), file); err != nil {
			return nil, err
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	in.url = fmt.Sprintf("http://localhost:%d", port)
	in.environ = append(os.Environ(),
		"BOTHY_INSTANCE__ENVIRONMENT=dev",
		fmt.Sprintf("BOTHY_SERVER__LISTEN_ADDR=127.0.0.1:%d", port),
		"BOTHY_SERVER__INTERNAL_LISTEN_ADDR=127.0.0.1:0",
		"BOTHY_SERVER__PUBLIC_URL="+in.url,
		"BOTHY_SECRETS__DIR="+in.path("secrets"),
		"BOTHY_SECRETS__SIGNING_KEY_DIR="+in.path("keys"),
		"BOTHY_DATABASE__MODE=embedded",
		"BOTHY_DATABASE__EMBEDDED__DATA_DIR="+in.path("postgres"),
		"BOTHY_SHUTDOWN__DRAIN_DELAY=0s",
	)
	return in, nil
}

func (in *instance) path(parts ...string) string {
	return filepath.Join(append([]string{in.dir}, parts...)...)
}

func randomText() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// command runs a command of the server to its end and gives its standard output.
func (in *instance) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, in.binary, args...)
	cmd.Env = in.environ
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	// Its database must be ended in order.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	const patience = 10 * time.Second
	cmd.WaitDelay = patience
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("bothy %s: %w\n%s", strings.Join(args, " "), err, problems.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// serve starts the server and waits until it answers.
func (in *instance) serve(ctx context.Context) error {
	p, err := in.start("server", in.environ, in.binary, "serve")
	if err != nil {
		return err
	}
	in.server = p
	client, err := bothy.New(in.url, bothy.WithRetry(bothy.Retry{Attempts: 1}))
	if err != nil {
		return err
	}
	for {
		_, err := client.Discovery(ctx)
		if err == nil {
			return nil
		}
		const pause = 50 * time.Millisecond
		select {
		case <-p.done:
			return fmt.Errorf("the server ended: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(pause):
		}
	}
}

// process is a program that runs beside the story.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// start starts a program whose output goes to a file of that name.
func (in *instance) start(name string, environ []string, program string, args ...string) (*process, error) {
	const file = 0o600
	log, err := os.OpenFile(in.path("logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{})} //nolint:noctx // ended by stop or kill
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = environ, log, log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop asks the program to end and gives its exit code.
func (p *process) stop(ctx context.Context) (int, error) {
	if p == nil {
		return 0, errors.New("was not started")
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait(ctx)
}

func (p *process) wait(ctx context.Context) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-ctx.Done():
		return 0, errors.New("does not end")
	}
}

// kill ends the program without a warning.
func (p *process) kill() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// explain shows the ends of the logs.
func (in *instance) explain(out io.Writer) {
	const lines = 25
	logs, err := filepath.Glob(in.path("logs", "*.log"))
	if err != nil {
		return
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		_, _ = fmt.Fprintf(out, "--- %s\n%s\n", filepath.Base(name), strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
}
