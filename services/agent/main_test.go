// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/bothytest"

	"github.com/OWNER/bothy/services/agent/internal/settings"
)

// asProgram makes the test binary be the adapter, so that tests can kill it.
const asProgram = "BOTHY_AGENT_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// bench is an instance and a configuration for it.
type bench struct {
	*bothytest.Server
	t      *testing.T
	dir    string
	config string
}

func setup(t *testing.T, rest string) *bench {
	t.Helper()
	b := &bench{Server: bothytest.Start(t), t: t, dir: t.TempDir()}
	b.config = filepath.Join(b.dir, "agent.yaml")
	b.write("token", b.Token+"\n")
	b.write("agent.yaml", fmt.Sprintf("server: {url: %q, token_file: %q}\npolicy: {billing_mode: local, tool_class: chat}\nstate_dir: %q\nlog_level: debug\n%s\n",
		b.URL, filepath.Join(b.dir, "token"), filepath.Join(b.dir, "state"), rest))
	return b
}

func (b *bench) write(name, text string) string {
	b.t.Helper()
	name = filepath.Join(b.dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return name
}

func (b *bench) script(name, text string) string {
	b.t.Helper()
	name = b.write(name, "#!/bin/sh\n"+text)
	if err := os.Chmod(name, 0o700); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// program starts the adapter as a process of its own.
func (b *bench) program() *exec.Cmd {
	b.t.Helper()
	cmd := exec.Command(os.Args[0], "run", "--config", b.config)
	cmd.Env = append(os.Environ(), asProgram+"=1", "SECRET_OF_THE_ADAPTER=x")
	cmd.Stderr = &logged{t: b.t}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return cmd
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// logged gives what the adapter logs to the test.
type logged struct {
	t  *testing.T
	mu sync.Mutex
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

const fastEcho = "driver: {kind: echo, echo: {pause: 1ms}}"

func TestEchoSaysTheOrderBack(t *testing.T) {
	b := setup(t, fastEcho)
	b.program()
	r := b.WaitState(b.Invoke(b.Thread(), "<@"+b.AgentID+"> say this back"), api.RunStateCompleted)
	if r.Answer != "say this back" {
		t.Errorf("%q", r.Answer)
	}
	r = b.WaitState(b.Invoke(b.Thread(), "please fail now"), api.RunStateFailed)
	if r.Output.Text != "please fail" || *r.ErrorCode != "agent_error" {
		t.Errorf("%q, %s", r.Output.Text, *r.ErrorCode)
	}
	id := b.Invoke(b.Thread(), "sleep 600 and wake")
	b.Wait("sleep", func() bool { return strings.HasPrefix(b.State(id).StatusLine, "Sleeping") })
	f := b.Followup(id, "are you there")
	b.Wait("the follow-up", func() bool { return len(b.State(id).Consumed) == 1 })
	b.Cancel(id)
	if r = b.WaitState(id, api.RunStateCancelled); r.Output.Text != "sleep 600\n\nare you there" || r.Consumed[0] != f {
		t.Errorf("%q", r.Output.Text)
	}
}

// TestKilledInTheMiddle kills the adapter without warning: what was at work ends as failed and keeps its text, what
// waited is done once, and nothing is answered twice.
func TestKilledInTheMiddle(t *testing.T) {
	b := setup(t, fastEcho+"\nlimits: {concurrency: 1}")
	first := b.program()
	thread := b.Thread()
	sleeping := b.Invoke(thread, "sleep 600 and wake")
	b.Wait("text", func() bool { return b.State(sleeping).Output.Text == "sleep 600" })
	waiting, elsewhere := b.Invoke(thread, "after it"), b.Invoke(b.Thread(), "beside it")
	b.Wait("all acknowledged", func() bool { return b.Acked() >= 5 })
	kill(t, first)
	b.ForgetAcks(0) // the worst case: the server had not saved one
	later := b.Invoke(thread, "while it was away")
	b.program()
	r := b.WaitState(sleeping, api.RunStateFailed)
	if *r.ErrorCode != "interrupted" || r.Output.Text != "sleep 600" || r.Starts != 1 || r.Finishes != 1 {
		t.Errorf("%s with %q, %d starts, %d ends", *r.ErrorCode, r.Output.Text, r.Starts, r.Finishes)
	}
	for id, want := range map[string]string{waiting: "after it", elsewhere: "beside it", later: "while it was away"} {
		if r := b.WaitState(id, api.RunStateCompleted); r.Answer != want || r.Starts != 1 || r.Finishes != 1 {
			t.Errorf("%q, %d starts, %d ends", r.Answer, r.Starts, r.Finishes)
		}
	}
}

func TestACommandGetsTheOrderAndLittleElse(t *testing.T) {
	t.Setenv("HANDED_ON", "yes")
	b := setup(t, "")
	script := b.script("tool", `order=$(cat); echo "order: $order"; echo "secret: $SECRET_OF_THE_ADAPTER, token: $BOTHY_AGENT_AS_PROGRAM, handed on: $HANDED_ON"
echo "run: $BOTHY_RUN_ID"; basename "$PWD"`)
	b.write("agent.yaml", read(t, b.config)+fmt.Sprintf("driver: {kind: command, command: {argv: [%q], input: text, env: [HANDED_ON]}}\n", script))
	b.program()
	id := b.Invoke(b.Thread(), "$(touch /tmp/x); `x`")
	r := b.WaitState(id, api.RunStateCompleted)
	want := fmt.Sprintf("order: $(touch /tmp/x); `x`\nsecret: , token: , handed on: yes\nrun: %s\n%s\n", id, r.ThreadID)
	if r.Answer != want {
		t.Errorf("answer %q\nwant %q", r.Answer, want)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func command(t *testing.T, script, rest string) *bench {
	t.Helper()
	b := setup(t, "")
	name := b.script("tool", script)
	b.write("agent.yaml", read(t, b.config)+fmt.Sprintf("driver: {kind: command, command: {argv: [%q]}}\n%s\n", name, rest))
	return b
}

func TestACommandThatFailsShowsTheEndOfItsErrors(t *testing.T) {
	b := command(t, `echo partial; echo "no such model" >&2; exit 3`, "")
	b.program()
	r := b.WaitState(b.Invoke(b.Thread(), "x"), api.RunStateFailed)
	if *r.ErrorMessage != "no such model" || r.Output.Text != "partial\n" {
		t.Errorf("%q, output %q", *r.ErrorMessage, r.Output.Text)
	}
}

func TestACommandThatIgnoresAStopIsKilledWithItsChildren(t *testing.T) {
	b := command(t, `trap '' TERM INT; sh -c 'trap "" TERM INT; sleep 600' & echo $!; wait; sleep 600`, "cancel: {hard: 100ms}")
	b.program()
	id := b.Invoke(b.Thread(), "x")
	b.Wait("text", func() bool { return strings.HasSuffix(b.State(id).Output.Text, "\n") })
	b.Cancel(id)
	r := b.WaitState(id, api.RunStateCancelled)
	child, err := strconv.Atoi(strings.TrimSpace(r.Output.Text))
	if err != nil {
		t.Fatal(err)
	}
	gone(t, child)
}

// gone waits for the end of a process that is not ours to wait for.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) || zombie(pid) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
		time.Sleep(time.Millisecond)
	}
}

func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && bytes.Contains(text, []byte(") Z "))
}

func TestACommandThatIsSilentForTooLongIsStopped(t *testing.T) {
	b := command(t, `echo begun; exec sleep 600`, "limits: {idle_timeout: 300ms}")
	b.program()
	r := b.WaitState(b.Invoke(b.Thread(), "x"), api.RunStateFailed)
	if !strings.Contains(*r.ErrorMessage, "idle_timeout") || r.Output.Text != "begun\n" {
		t.Errorf("%q, output %q", *r.ErrorMessage, r.Output.Text)
	}
}

func TestACommandThatOutlivesItsAdapterIsKilledAfterTheRestart(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes cannot be recognised here")
	}
	b := command(t, `echo $$; exec sleep 600`, "")
	first := b.program()
	id := b.Invoke(b.Thread(), "x")
	b.Wait("text", func() bool { return strings.HasSuffix(b.State(id).Output.Text, "\n") })
	kill(t, first)
	pid, err := strconv.Atoi(strings.TrimSpace(b.State(id).Output.Text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the program went with the adapter: %v", err)
	}
	b.program()
	b.WaitState(id, api.RunStateFailed)
	gone(t, pid)
}

// call runs a command in this process.
func call(t *testing.T, input string, args ...string) (code int, out string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	code = run(ctx, args, console{strings.NewReader(input), &stdout, &stderr})
	return code, stdout.String() + stderr.String()
}

func TestExitCodes(t *testing.T) {
	b := setup(t, fastEcho)
	for _, args := range [][]string{{}, {"dance"}, {"run", "--nonsense"}, {"run", "more"}, {"run", "--config", b.dir + "/missing"}} {
		if code, out := call(t, "", args...); code != exitUsage {
			t.Errorf("%v: exit code %d, %s", args, code, out)
		}
	}
	if code, _ := call(t, "", "version"); code != exitOK {
		t.Errorf("version: exit code %d", code)
	}
	first := b.program()
	b.Wait("a connection", func() bool { return b.Connected() == 1 })
	if code, out := call(t, "", "run", "--config", b.config); code != exitStateInUse {
		t.Errorf("second process: exit code %d, %s", code, out)
	}
	other := b.write("other.yaml", strings.Replace(read(t, b.config), "/state", "/state2", 1))
	second := exec.Command(os.Args[0], "run", "--config", other)
	second.Env = append(os.Environ(), asProgram+"=1")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Process.Kill(); _ = second.Wait() }()
	if err := first.Wait(); first.ProcessState.ExitCode() != exitTakenOver {
		t.Errorf("taken over: %v", err)
	}
	b.write("token", "bothy_agent_revoked\n")
	third := b.write("third.yaml", strings.Replace(read(t, b.config), "/state", "/state3", 1))
	if code, out := call(t, "", "run", "--config", third); code != exitCredentials {
		t.Errorf("refused token: exit code %d, %s", code, out)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("asked to stop: %v", err)
	}
}

func TestInitPinsAndCheckCompares(t *testing.T) {
	b := setup(t, fastEcho)
	name := filepath.Join(b.dir, "new", "agent.yaml")
	code, out := call(t, b.URL+"\n"+b.Token+"\n\n", "init", "--config", name)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, out)
	}
	s, err := settings.Load(name)
	if err != nil || s.Server.InstanceID != b.InstanceID || s.Agent.ID != b.AgentID || s.Driver.Kind != "echo" {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, file := range []string{name, s.Server.TokenFile} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if strings.Contains(read(t, name), b.Token) {
		t.Error("the token is in the configuration")
	}
	if code, out = call(t, "", "check", "--config", name); code != exitOK {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, _ = call(t, "", "init", "--config", name); code != exitUsage {
		t.Errorf("a file that is there: exit code %d", code)
	}
	other := bothytest.Start(t)
	text := strings.Replace(read(t, name), b.URL, other.URL, 1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out = call(t, "", "check", "--config", name); code != exitError || !strings.Contains(out, "FAIL  instance") {
		t.Errorf("another instance: exit code %d: %s", code, out)
	}
}
