// SPDX-License-Identifier: Apache-2.0

package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// Agent is an agent with its reference adapter, which says orders back word by word.
type Agent struct {
	ID string

	binary, config string
	inst           *Installation
	process        *exec.Cmd
	exited         chan struct{}
	log            *tail
}

// AgentOptions say how the adapter works.
type AgentOptions struct {
	Handle string
	// DisplayName is the handle when it is empty.
	DisplayName string
	// Binary is the adapter; see BuildAgent.
	Binary string
	// Pause is the wait between two words, for example 50ms.
	Pause string
	// Concurrency is how many runs it works on at once.
	Concurrency int
}

// BuildAgent compiles the reference adapter into a folder, unless BOTHY_AGENT_BINARY names one.
func BuildAgent(ctx context.Context, dir string) (string, error) {
	if binary := os.Getenv("BOTHY_AGENT_BINARY"); binary != "" {
		return filepath.Abs(binary)
	}
	_, file, _, _ := runtime.Caller(0)
	binary := filepath.Join(dir, "bothy-agent")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(filepath.Dir(file), "..", "..", "..", "agent"), "-o", binary, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the adapter: %w\n%s", err, out)
	}
	return binary, nil
}

// AddAgent makes an agent that may write in a space, and the configuration of its adapter. Nothing runs yet.
func (i *Installation) AddAgent(ctx context.Context, spaceID string, o AgentOptions) (*Agent, error) {
	var created struct {
		ID    string `json:"principal_id"`
		Token struct {
			Secret string `json:"secret"`
		} `json:"token"`
	}
	err := i.session.Call(ctx, http.MethodPost, "/agents", map[string]any{
		"handle": o.Handle, "display_name": cmp.Or(o.DisplayName, o.Handle), "billing_mode": "local", "tool_class": "chat", "token": map[string]any{"name": "adapter"},
	}, &created)
	if err != nil {
		return nil, err
	}
	if _, err := i.Grant(ctx, created.ID, "space", spaceID, "write"); err != nil {
		return nil, err
	}
	folder := i.path("agent-" + o.Handle)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	token := filepath.Join(folder, "token")
	if err := os.WriteFile(token, []byte(created.Token.Secret+"\n"), 0o600); err != nil {
		return nil, err
	}
	a := &Agent{ID: created.ID, binary: o.Binary, config: filepath.Join(folder, "agent.yaml"), inst: i}
	text := fmt.Sprintf(`server: {url: %q, token_file: %q}
policy: {billing_mode: local, tool_class: chat}
state_dir: %q
limits: {concurrency: %d}
driver: {kind: echo, echo: {pause: %s}}
`, i.Address, token, filepath.Join(folder, "state"), o.Concurrency, o.Pause)
	return a, os.WriteFile(a.config, []byte(text), 0o600)
}

// Start runs the adapter.
func (a *Agent) Start() error {
	cmd, exited, log := exec.Command(a.binary, "run", "--config", a.config), make(chan struct{}), &tail{} //nolint:noctx // It ends when the test says so.
	cmd.Env, cmd.Stderr = a.inst.environ(), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	failed := make(chan error, 1)
	go func() {
		// The signal at the death of the parent fires when the starting thread ends.
		runtime.LockOSThread()
		err := cmd.Start()
		failed <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(exited)
	}()
	if err := <-failed; err != nil {
		return fmt.Errorf("start the adapter: %w", err)
	}
	a.process, a.exited, a.log = cmd, exited, log
	return nil
}

// Kill ends the adapter as a power cut would.
func (a *Agent) Kill() {
	if a.process != nil {
		_ = a.process.Process.Kill()
		<-a.exited
	}
}

// Log is the end of what the adapter wrote.
func (a *Agent) Log() string {
	if a.log == nil {
		return ""
	}
	return a.log.String()
}

// Run is what matters of a run.
type Run struct {
	ID            string `json:"id"`
	State         string `json:"state"`
	EndReason     string `json:"end_reason"`
	ErrorCode     string `json:"error_code"`
	OutputLength  int    `json:"output_length"`
	OutputMessage string `json:"output_message_id"`
	TriggeredFrom string `json:"trigger_message_id"`
	Output        struct {
		Text string `json:"text"`
	} `json:"output"`
}

// Final reports whether the run has ended.
func (r Run) Final() bool {
	return r.State == "completed" || r.State == "failed" || r.State == "cancelled"
}

// RunsOf lists the runs of a thread with their documents.
func (c *Client) RunsOf(ctx context.Context, threadID string) ([]Run, error) {
	var page struct {
		Items []Run `json:"items"`
	}
	if err := c.Call(ctx, http.MethodGet, "/threads/"+threadID+"/runs", nil, &page); err != nil {
		return nil, err
	}
	for n := range page.Items {
		if err := c.Call(ctx, http.MethodGet, "/runs/"+page.Items[n].ID, nil, &page.Items[n]); err != nil {
			return nil, err
		}
	}
	return page.Items, nil
}

// OnlyRun is the run of a thread that has one.
func (c *Client) OnlyRun(ctx context.Context, threadID string) (Run, error) {
	runs, err := c.RunsOf(ctx, threadID)
	switch {
	case err != nil:
		return Run{}, err
	case len(runs) == 0:
		return Run{}, errNoRun
	case len(runs) > 1:
		return Run{}, fmt.Errorf("the thread has %d runs", len(runs))
	}
	return runs[0], nil
}

var errNoRun = errors.New("the thread has no run")

// IsNoRun reports whether a thread has no run yet.
func IsNoRun(err error) bool { return errors.Is(err, errNoRun) }
