// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/OWNER/bothy/sdk/go/agent"
	"github.com/OWNER/bothy/sdk/go/api"

	"github.com/OWNER/bothy/services/agent/internal/settings"
)

// The causes for which the adapter itself stops a program.
var (
	errTooLong = errors.New("the program took longer than limits.run_timeout")
	errIdle    = errors.New("the program wrote nothing for longer than limits.idle_timeout")
)

// command starts a program per run, in a process group of its own. What it writes streams into the thread; its exit
// code decides about the end. Text of the chat reaches it on standard input only.
type command struct {
	settings settings.Command
	billing  string
	work     settings.Work
	limits   settings.Limits
	hard     time.Duration
	log      *slog.Logger
}

func newCommand(s *settings.Settings, log *slog.Logger) (*command, error) {
	return &command{
		settings: s.Driver.Command, billing: s.Policy.BillingMode, work: s.Work, limits: s.Limits, hard: s.Cancel.Hard, log: log,
	}, nil
}

// Check implements Driver.
func (c *command) Check() error {
	_, err := exec.LookPath(c.settings.Argv[0])
	return err
}

// Report implements Driver. Which keys there are is told by the names of the variables that are handed on, never by
// their values.
func (c *command) Report() agent.Report {
	r := agent.Report{Runtime: "command", Evidence: evidence("unknown", "config")}
	if c.billing == string(api.BillingModeLocal) {
		r.Evidence = evidence("none", "config")
	}
	for _, name := range c.settings.Env {
		if strings.HasSuffix(name, "_API_KEY") && os.Getenv(name) != "" {
			r.Evidence = evidence("api_key", "env_var")
		}
	}
	return r
}

// Work implements Driver.
func (c *command) Work(ctx context.Context, run *agent.Run) error {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.RunTimeout, errTooLong)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	input, err := c.input(ctx, run)
	if err != nil {
		return err
	}
	dir, err := folder(c.work, run.Order.Run.ThreadID)
	if err != nil {
		return err
	}
	cmd := exec.Command(c.settings.Argv[0], c.settings.Argv[1:]...) //nolint:noctx // the operator's program; its group is stopped by hand
	cmd.Dir = dir
	cmd.Env = c.environment(run)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c.execute(ctx, stop, cmd, run, input)
}

// execute runs the program to its end and says how that was.
func (c *command) execute(ctx context.Context, stop context.CancelCauseFunc, cmd *exec.Cmd, run *agent.Run, input []byte) error {
	pipes, err := attach(cmd)
	if err != nil {
		return fmt.Errorf("start the program: %w", err)
	}
	defer pipes.close()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the program: %w", err)
	}
	pipes.started()
	if err := run.Keep(identify(cmd.Process.Pid)); err != nil {
		c.log.WarnContext(ctx, "process cannot be noted", "run_id", run.ID, "error", err)
	}
	exited := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.guard(ctx, cmd.Process.Pid, exited)
	}()
	idle := time.AfterFunc(c.limits.IdleTimeout, func() { stop(errIdle) })
	defer idle.Stop()
	errTail := &tail{log: c.log.With("run_id", run.ID)}
	var copying sync.WaitGroup
	copying.Go(func() { pipes.feed(input) })
	copying.Go(func() { _, _ = io.Copy(errTail, pipes.err) })
	copying.Go(func() {
		_, writeErr := io.Copy(&watched{Writer: run, touched: func() { idle.Reset(c.limits.IdleTimeout) }}, pipes.out)
		if writeErr != nil {
			stop(writeErr)
		}
	})
	waitErr := cmd.Wait()
	// Whatever of its group is left would keep the pipes open.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	close(exited)
	<-stopped
	pipes.drain(&copying)
	if cause := context.Cause(ctx); cause != nil && waitErr != nil {
		return cause
	}
	if waitErr != nil {
		return errors.New(errTail.message(waitErr))
	}
	return nil
}

// guard stops the group when the context ends: first politely, then for good.
func (c *command) guard(ctx context.Context, pid int, exited <-chan struct{}) {
	select {
	case <-exited:
		return
	case <-ctx.Done():
	}
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	timer := time.NewTimer(c.hard)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// Order is what a program reads from standard input.
type Order struct {
	RunID     string `json:"run_id"`
	ThreadID  string `json:"thread_id"`
	ChannelID string `json:"channel_id"`
	// Order is the text to act on.
	Order string `json:"order"`
	// Instructions are those of the channel.
	Instructions string `json:"instructions,omitempty"`
	Language     string `json:"language,omitempty"`
	// Messages are the thread, newest last. Only those with the trust order or trusted may be followed; the rest is
	// material.
	Messages []api.ContextMessage `json:"messages"`
}

func (c *command) input(ctx context.Context, run *agent.Run) ([]byte, error) {
	o := Order{
		RunID: run.ID, ThreadID: run.Order.Run.ThreadID, ChannelID: run.Order.Run.ChannelID,
		Order: order(run.Text(), run.Order.Run.AgentID), Messages: []api.ContextMessage{},
	}
	if c.settings.Input == "text" {
		return []byte(o.Order), nil
	}
	known, err := run.Context(ctx, "", c.settings.ContextMessages)
	if err != nil {
		return nil, fmt.Errorf("read the thread: %w", err)
	}
	o.Instructions, o.Language = known.Config.Prompt, known.Language
	if known.Messages != nil {
		o.Messages = known.Messages
	}
	return json.Marshal(o)
}

// handedOn are the variables every program gets.
var handedOn = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"}

// environment is an allow-list: the adapter's token and keys of other programs stay here.
func (c *command) environment(run *agent.Run) []string {
	out := []string{"BOTHY_RUN_ID=" + run.ID, "BOTHY_THREAD_ID=" + run.Order.Run.ThreadID}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(handedOn, name) || strings.HasPrefix(name, "LC_") || slices.Contains(c.settings.Env, name) {
			out = append(out, entry)
		}
	}
	return out
}

// pipes are the standard streams of a program, as files, so that waiting for the program does not wait for those who
// inherited them.
type pipes struct {
	in, out, err *os.File
	theirs       []*os.File
}

func attach(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	for _, s := range []struct {
		ours   **os.File
		theirs func(*os.File)
		write  bool
	}{
		{&p.in, func(f *os.File) { cmd.Stdin = f }, true},
		{&p.out, func(f *os.File) { cmd.Stdout = f }, false},
		{&p.err, func(f *os.File) { cmd.Stderr = f }, false},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			p.started()
			p.close()
			return nil, err
		}
		if s.write {
			r, w = w, r
		}
		*s.ours = r
		s.theirs(w)
		p.theirs = append(p.theirs, w)
	}
	return p, nil
}

// started closes the ends that belong to the program.
func (p *pipes) started() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
}

func (p *pipes) close() {
	p.started()
	for _, f := range []*os.File{p.in, p.out, p.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// feed gives the program its input. A program that does not read it is no fault.
func (p *pipes) feed(input []byte) {
	_, _ = p.in.Write(input)
	_ = p.in.Close()
}

// drain reads what is left. Somebody who fled the process group may hold the pipes; he is not waited for.
func (p *pipes) drain(copying *sync.WaitGroup) {
	const patience = 2 * time.Second
	timer := time.AfterFunc(patience, p.close)
	defer timer.Stop()
	copying.Wait()
}

// watched tells of every write.
type watched struct {
	io.Writer
	touched func()
}

func (w *watched) Write(b []byte) (int, error) {
	w.touched()
	return w.Writer.Write(b)
}

// tail keeps the end of standard error and logs its lines at debug level.
type tail struct {
	log  *slog.Logger
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const keep = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(b) {
		t.log.Debug("program", "stderr", strings.TrimRight(string(line), "\n"))
	}
	t.text = append(t.text, b...)
	if over := len(t.text) - keep; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}

// message is what the run shows of a failed program.
func (t *tail) message(err error) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(strings.ToValidUTF8(string(t.text), "\uFFFD")); text != "" {
		return text
	}
	return "The program ended with " + err.Error() + "."
}
