// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/agent"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/bothytest"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

func short(int) time.Duration { return time.Millisecond }

func wait(ctx context.Context, _ time.Duration) error { return bothy.Sleep(ctx, time.Millisecond) }

func config(s *bothytest.Server, dir string, work func(context.Context, *agent.Run) error) agent.Config {
	return agent.Config{
		URL: s.URL, Token: s.Token, StateDir: dir, Work: work,
		Policy: agent.Policy{BillingMode: api.BillingModeLocal, ToolClass: api.ToolClassChat}, StopPatience: time.Second,
		Options: []bothy.Option{bothy.WithRetry(bothy.Retry{Sleep: wait})},
		Timing: agent.Timing{
			Gateway:    gateway.Timing{Backoff: short, Wait: wait, Answer: 5 * time.Second},
			FlushEvery: time.Millisecond, Backoff: short,
		},
	}
}

// start runs an adapter until stop.
func start(t testing.TB, cfg agent.Config) (stop func()) {
	t.Helper()
	a, err := agent.Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			t.Errorf("the adapter ended: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func echo(_ context.Context, r *agent.Run) error {
	for word := range strings.SplitAfterSeq(r.Text(), " ") {
		if _, err := io.WriteString(r, word); err != nil {
			return err
		}
	}
	return nil
}

func TestAnOrderIsDoneAndAnswered(t *testing.T) {
	s := bothytest.Start(t)
	start(t, config(s, t.TempDir(), echo))
	id := s.Invoke(s.Thread(), "say héllo wörld 🎉 now")
	r := s.WaitState(id, api.RunStateCompleted)
	if r.Answer != "say héllo wörld 🎉 now" || r.Starts != 1 || r.Finishes != 1 {
		t.Errorf("answer %q, %d starts, %d ends", r.Answer, r.Starts, r.Finishes)
	}
	s.Wait("the acknowledgement", func() bool { return s.Acked() > 0 })
	s.Wait("a report", func() bool { return len(s.Heartbeats()) > 0 })
	h := s.Heartbeats()[0]
	if h.State != api.HeartbeatStateOnline || *h.BillingMode != api.BillingModeLocal || *h.ToolClass != api.ToolClassChat || *h.Details.Capabilities.Followups != api.FollowupModeQueue {
		t.Errorf("report %+v", h)
	}
}

func TestTextOfAnyOriginBecomesAMessage(t *testing.T) {
	s := bothytest.Start(t)
	start(t, config(s, t.TempDir(), func(_ context.Context, r *agent.Run) error {
		euro := []byte("€")
		for _, p := range [][]byte{[]byte("a\x1b[31mred\x00\r\n\t"), euro[:1], euro[1:], {0xff}, []byte("end"), euro[:2]} {
			if _, err := r.Write(p); err != nil {
				return err
			}
		}
		return nil
	}))
	r := s.WaitState(s.Invoke(s.Thread(), "x"), api.RunStateCompleted)
	if r.Answer != "a[31mred\n\t€\uFFFDend\uFFFD\uFFFD" {
		t.Errorf("%q", r.Answer)
	}
}

func TestALongTextArrivesWholeInManyUpdates(t *testing.T) {
	s := bothytest.Start(t)
	want := strings.Repeat("0123456789äöü", 40_000)
	start(t, config(s, t.TempDir(), func(_ context.Context, r *agent.Run) error {
		_, err := io.WriteString(r, want)
		return err
	}))
	r := s.WaitState(s.Invoke(s.Thread(), "x"), api.RunStateCompleted)
	if r.Answer != want || r.Updates < 10 {
		t.Errorf("%d bytes of %d in %d updates", len(r.Answer), len(want), r.Updates)
	}
}

func TestLostAnswersAndRefusalsForAWhileChangeNothing(t *testing.T) {
	for _, fault := range []bothytest.Fault{
		{Method: "POST", Path: "/start", Times: 2, LoseAnswer: true},
		{Method: "POST", Path: "/updates", Times: 3, LoseAnswer: true},
		{Method: "POST", Path: "/updates", Times: 3, Status: 429, Code: api.ErrorCodeRateLimited},
		{Method: "POST", Path: "/updates", Times: 3, Status: 503, Code: api.ErrorCodeUnavailable},
		{Method: "POST", Path: "/updates", Times: 1, Status: 401, Code: api.ErrorCodeTokenExpired},
		{Method: "POST", Path: "/finish", Times: 3, LoseAnswer: true},
		{Method: "POST", Path: "/finish", Times: 12, Status: 500, Code: api.ErrorCodeInternalError},
		{Method: "GET", Path: "/jwks", Times: 10, Status: 503, Code: api.ErrorCodeUnavailable},
	} {
		t.Run(fmt.Sprint(fault.Path, fault.Status, fault.LoseAnswer), func(t *testing.T) {
			s := bothytest.Start(t)
			s.Inject(fault)
			start(t, config(s, t.TempDir(), echo))
			r := s.WaitState(s.Invoke(s.Thread(), "one two three four"), api.RunStateCompleted)
			if r.Answer != "one two three four" || r.Starts != 1 || r.Finishes != 1 {
				t.Errorf("answer %q, %d starts, %d ends", r.Answer, r.Starts, r.Finishes)
			}
		})
	}
}

func TestAnErrorFailsTheRunAndKeepsItsText(t *testing.T) {
	s := bothytest.Start(t)
	start(t, config(s, t.TempDir(), func(_ context.Context, r *agent.Run) error {
		_, _ = io.WriteString(r, "half")
		if r.Text() == "panic" {
			panic("boom")
		}
		return errors.New("no model today")
	}))
	for text, want := range map[string]string{"x": "no model today", "panic": "panic: boom"} {
		r := s.WaitState(s.Invoke(s.Thread(), text), api.RunStateFailed)
		if r.Output.Text != "half" || *r.ErrorCode != "agent_error" || *r.ErrorMessage != want || r.Answer != "" {
			t.Errorf("%s: output %q, error %s %q", text, r.Output.Text, *r.ErrorCode, *r.ErrorMessage)
		}
	}
}

// patient writes a word and waits for the end of its context.
func patient(ctx context.Context, r *agent.Run) error {
	_, _ = io.WriteString(r, "working")
	if err := r.Flush(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestACancelReachesTheWork(t *testing.T) {
	s := bothytest.Start(t)
	start(t, config(s, t.TempDir(), patient))
	id := s.Invoke(s.Thread(), "x")
	s.Wait("output", func() bool { return s.State(id).Output.Text == "working" })
	s.Cancel(id)
	if r := s.WaitState(id, api.RunStateCancelled); *r.EndReason != "requested" || r.Output.Text != "working" {
		t.Errorf("%s, output %q", *r.EndReason, r.Output.Text)
	}
}

func TestACancelOfAWaitingRunNeverBeginsIt(t *testing.T) {
	s := bothytest.Start(t)
	var begun atomic.Int32
	start(t, config(s, t.TempDir(), func(ctx context.Context, r *agent.Run) error {
		begun.Add(1)
		return patient(ctx, r)
	}))
	thread := s.Thread()
	first, second := s.Invoke(thread, "x"), s.Invoke(thread, "y")
	s.WaitState(first, api.RunStateRunning)
	s.Cancel(second)
	if r := s.WaitState(second, api.RunStateCancelled); r.Starts != 0 {
		t.Errorf("%d starts", r.Starts)
	}
	s.Cancel(first)
	s.WaitState(first, api.RunStateCancelled)
	if begun.Load() != 1 {
		t.Errorf("worked %d times", begun.Load())
	}
}

func TestAThreadIsServedInOrderAndThreadsAtOnce(t *testing.T) {
	s := bothytest.Start(t)
	var mu sync.Mutex
	var order []string
	atWork, most := 0, 0
	cfg := config(s, t.TempDir(), func(ctx context.Context, r *agent.Run) error {
		mu.Lock()
		atWork++
		most = max(most, atWork)
		order = append(order, r.Text())
		mu.Unlock()
		_, err := io.WriteString(r, r.Text())
		if err == nil {
			err = r.Flush(ctx)
		}
		mu.Lock()
		atWork--
		mu.Unlock()
		return err
	})
	cfg.Concurrency = 2
	start(t, cfg)
	a, b := s.Thread(), s.Thread()
	var ids []string
	for i := range 5 {
		ids = append(ids, s.Invoke(a, fmt.Sprint("a", i)), s.Invoke(b, fmt.Sprint("b", i)), s.Invoke(s.Thread(), "c"))
	}
	for _, id := range ids {
		s.WaitState(id, api.RunStateCompleted)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > 2 {
		t.Errorf("%d at once", most)
	}
	for _, thread := range []string{"a", "b"} {
		next := 0
		for _, text := range order {
			if strings.HasPrefix(text, thread) {
				if text != fmt.Sprint(thread, next) {
					t.Errorf("order %v", order)
				}
				next++
			}
		}
	}
}

func TestFollowupsReachAWorkThatSteers(t *testing.T) {
	s := bothytest.Start(t)
	cfg := config(s, t.TempDir(), func(ctx context.Context, r *agent.Run) error {
		select {
		case f := <-r.Followups():
			_, _ = fmt.Fprint(r, "also ", f.Message.Content)
			r.Consume(f)
		case <-ctx.Done():
		}
		return nil
	})
	cfg.Report.Steer = true
	start(t, cfg)
	id := s.Invoke(s.Thread(), "x")
	s.WaitState(id, api.RunStateRunning)
	followup := s.Followup(id, "that")
	s.RepeatEvents()
	r := s.WaitState(id, api.RunStateCompleted)
	if r.Answer != "also that" || len(r.Consumed) != 1 || r.Consumed[0] != followup {
		t.Errorf("answer %q, consumed %v", r.Answer, r.Consumed)
	}
}

func TestFollowupsStayOpenForAWorkThatDoesNotSteer(t *testing.T) {
	s := bothytest.Start(t)
	start(t, config(s, t.TempDir(), patient))
	id := s.Invoke(s.Thread(), "x")
	s.WaitState(id, api.RunStateRunning)
	s.Followup(id, "that")
	s.Wait("both acknowledged", func() bool { return s.Acked() > 2 })
	s.Cancel(id)
	if r := s.WaitState(id, api.RunStateCancelled); len(r.Consumed) != 0 {
		t.Errorf("consumed %v", r.Consumed)
	}
}

func TestATokenThatFailsEndsTheRunVisibly(t *testing.T) {
	s := bothytest.Start(t)
	s.Claims = func(c map[string]any) { c["billing_mode"] = "organization" }
	start(t, config(s, t.TempDir(), func(context.Context, *agent.Run) error {
		t.Error("worked on a refused order")
		return nil
	}))
	r := s.WaitState(s.Invoke(s.Thread(), "x"), api.RunStateFailed)
	if *r.ErrorCode != "token_rejected" || *r.EndReason != "token_rejected" || r.Starts != 0 {
		t.Errorf("%s, %s", *r.ErrorCode, *r.EndReason)
	}
	s.Wait("a report of it", func() bool {
		h := s.Heartbeats()
		return len(h) > 0 && h[len(h)-1].State == api.HeartbeatStateDegraded && h[len(h)-1].Details.DegradedReasons[0] == "invocation_token_rejected"
	})
}

func TestTokensAreRenewedBeforeTheyEnd(t *testing.T) {
	s := bothytest.Start(t)
	s.TokenLife = time.Millisecond // old before it is used
	start(t, config(s, t.TempDir(), echo))
	if r := s.WaitState(s.Invoke(s.Thread(), "one two"), api.RunStateCompleted); r.Answer != "one two" {
		t.Errorf("%q", r.Answer)
	}
}

func TestARunThatTheServerEndedIsLeftAlone(t *testing.T) {
	s := bothytest.Start(t)
	causes := make(chan error, 1)
	start(t, config(s, t.TempDir(), func(ctx context.Context, r *agent.Run) error {
		for ctx.Err() == nil {
			_, _ = io.WriteString(r, ".")
			_ = bothy.Sleep(ctx, time.Millisecond)
		}
		causes <- context.Cause(ctx)
		return nil
	}))
	id := s.Invoke(s.Thread(), "x")
	s.WaitState(id, api.RunStateRunning)
	s.EndRun(id, api.RunStateCancelled)
	if cause := <-causes; !errors.Is(cause, agent.ErrEnded) {
		t.Errorf("cause %v", cause)
	}
	again := s.Invoke(s.State(id).ThreadID, "y")
	s.WaitState(again, api.RunStateRunning) // the thread is free
	s.EndRun(again, api.RunStateCancelled)
	<-causes //nolint:errcheck // Only that it ended.
	if r := s.State(id); r.Finishes != 0 {
		t.Errorf("%d ends", r.Finishes)
	}
}

func TestStoppingEndsWhatIsAtWork(t *testing.T) {
	s := bothytest.Start(t)
	stop := start(t, config(s, t.TempDir(), patient))
	id := s.Invoke(s.Thread(), "x")
	s.Wait("output", func() bool { return s.State(id).Output.Text == "working" })
	stop()
	if r := s.State(id); r.State != api.RunStateFailed || *r.ErrorCode != "interrupted" || r.Output.Text != "working" {
		t.Errorf("%s %v", r.State, r.ErrorCode)
	}
}

func TestOneAdapterPerStateFolder(t *testing.T) {
	s := bothytest.Start(t)
	dir := t.TempDir()
	start(t, config(s, dir, echo))
	if _, err := agent.Open(t.Context(), config(s, dir, echo)); !errors.Is(err, agent.ErrStateInUse) {
		t.Error(err)
	}
}

func TestAnotherInstanceOrAgentIsRefused(t *testing.T) {
	first, second := bothytest.Start(t), bothytest.Start(t)
	dir := t.TempDir()
	start(t, config(first, dir, echo))()
	if _, err := agent.Open(t.Context(), config(second, dir, echo)); !errors.Is(err, agent.ErrForeign) {
		t.Errorf("another instance: %v", err)
	}
	cfg := config(first, t.TempDir(), echo)
	cfg.InstanceID = second.InstanceID
	if _, err := agent.Open(t.Context(), cfg); !errors.Is(err, agent.ErrForeign) {
		t.Errorf("not the configured instance: %v", err)
	}
}

func TestAnotherAdapterTakesTheAgentOver(t *testing.T) {
	s := bothytest.Start(t)
	a, err := agent.Open(t.Context(), config(s, t.TempDir(), echo))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	done := make(chan error, 1)
	go func() { done <- a.Run(t.Context()) }()
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	start(t, config(s, t.TempDir(), echo))
	if err := <-done; !errors.Is(err, gateway.ErrConsumerTaken) {
		t.Error(err)
	}
	s.WaitState(s.Invoke(s.Thread(), "x"), api.RunStateCompleted)
}

// A crash is played by taking the state folder as it is at a moment, stopping the adapter without letting it speak to
// the server any more, and going on with the copy.

func TestAfterACrashNothingIsAnsweredTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := bothytest.Start(t)
		var mu sync.Mutex
		worked := map[string]int{}
		work := func(ctx context.Context, r *agent.Run) error {
			mu.Lock()
			worked[r.ID]++
			mu.Unlock()
			return echo(ctx, r)
		}
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		threads := []string{s.Thread(), s.Thread()}
		var ids []string
		stop := start(t, config(s, dir, work))
		for range rapid.IntRange(4, 20).Draw(rt, "steps") {
			switch step := rapid.SampledFrom([]string{"order", "order", "order", "drop", "repeat", "forget", "lose", "refuse", "crash"}).Draw(rt, "step"); step {
			case "order":
				ids = append(ids, s.Invoke(rapid.SampledFrom(threads).Draw(rt, "thread"), fmt.Sprintf("order %d of many words", len(ids))))
			case "drop":
				s.DropConnections()
			case "repeat":
				s.RepeatEvents()
			case "forget":
				s.ForgetAcks(0)
				s.DropConnections()
			case "lose", "refuse":
				path := rapid.SampledFrom([]string{"/start", "/updates", "/finish", "/token"}).Draw(rt, "path")
				f := bothytest.Fault{Method: "POST", Path: path, Times: rapid.IntRange(1, 3).Draw(rt, "times"), LoseAnswer: step == "lose"}
				if step == "refuse" {
					f.Status, f.Code = 503, api.ErrorCodeUnavailable
				}
				s.Inject(f)
			case "crash":
				copied := crash(rt, t, s, dir)
				stop()
				dir = copied
				s.Mute(false)
				stop = start(t, config(s, dir, work))
			}
		}
		for i, id := range ids {
			r := s.WaitState(id, api.RunStateCompleted, api.RunStateFailed)
			mu.Lock()
			n := worked[id]
			mu.Unlock()
			if n > 1 || r.Starts > 1 || r.Finishes != 1 {
				rt.Fatalf("run %d: worked %d times, %d starts, %d ends", i, n, r.Starts, r.Finishes)
			}
			if r.State == api.RunStateCompleted && r.Answer != r.Text {
				rt.Fatalf("run %d: answer %q for %q", i, r.Answer, r.Text)
			}
			if r.State == api.RunStateFailed && (*r.ErrorCode != "interrupted" || !strings.HasPrefix(r.Text, r.Output.Text)) {
				rt.Fatalf("run %d: %s with %q", i, *r.ErrorCode, r.Output.Text)
			}
		}
		stop()
	})
}

// crash makes the server deaf to the adapter and copies the state folder as it then is.
func crash(rt *rapid.T, t *testing.T, s *bothytest.Server, dir string) string {
	s.Mute(true)
	s.DropConnections()
	to, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		rt.Fatal(err)
	}
	if err := copyState(dir, to); err != nil {
		rt.Fatal(err)
	}
	return to
}

func TestTheInterruptedHookGetsWhatWasKept(t *testing.T) {
	s := bothytest.Start(t)
	dir := t.TempDir()
	stop := start(t, config(s, dir, func(ctx context.Context, r *agent.Run) error {
		if err := r.Keep(map[string]int{"pid": 42}); err != nil {
			return err
		}
		return patient(ctx, r)
	}))
	id := s.Invoke(s.Thread(), "x")
	s.Wait("output", func() bool { return s.State(id).Output.Text == "working" })
	s.Mute(true)
	copied := t.TempDir()
	if err := copyState(dir, copied); err != nil {
		t.Fatal(err)
	}
	s.DropConnections()
	stop()
	s.Mute(false)
	kept := make(chan string, 1)
	cfg := config(s, copied, echo)
	cfg.Interrupted = func(_ context.Context, runID string, raw json.RawMessage) { kept <- runID + string(raw) }
	start(t, cfg)
	if got := <-kept; got != id+`{"pid":42}` {
		t.Errorf("kept %s", got)
	}
	r := s.WaitState(id, api.RunStateFailed)
	if *r.ErrorCode != "interrupted" || r.Output.Text != "working" || r.Starts != 1 {
		t.Errorf("%s, output %q, %d starts", *r.ErrorCode, r.Output.Text, r.Starts)
	}
}
