// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/OWNER/bothy/sdk/go/agent"
	"github.com/OWNER/bothy/sdk/go/api"
)

// echo says the order back, word by word, in one step. "sleep N" waits N seconds and "fail" fails the run. Follow-ups
// are taken up at once, in the same way.
type echo struct{ pause time.Duration }

var errAskedToFail = errors.New("the order asked for a failure")

// Work implements Driver.
func (e *echo) Work(ctx context.Context, run *agent.Run) error {
	kind, state, title := api.StepKindTool, api.StepStateRunning, "Say it back"
	run.Status("Saying it back")
	run.Step("echo", api.RunStepPatch{Kind: &kind, State: &state, Title: &title})
	err := e.say(ctx, run, order(run.Text(), run.Order.Run.AgentID))
	for err == nil {
		select {
		case f := <-run.Followups():
			err = e.take(ctx, run, f)
			continue
		default:
		}
		break
	}
	end := api.StepStateCompleted
	if err != nil {
		end = api.StepStateFailed
	}
	run.Step("echo", api.RunStepPatch{State: &end})
	return err
}

func (e *echo) say(ctx context.Context, run *agent.Run, text string) error {
	words := strings.Fields(text)
	for i, word := range words {
		if i > 0 {
			word = " " + word
		}
		if _, err := io.WriteString(run, word); err != nil {
			return err
		}
		wait := e.pause
		switch strings.ToLower(strings.Trim(words[i], ".,!?")) {
		case "fail":
			return errAskedToFail
		}
		if i > 0 && strings.EqualFold(words[i-1], "sleep") {
			wait += seconds(words[i])
		}
		if err := e.wait(ctx, run, wait); err != nil {
			return err
		}
	}
	return nil
}

// seconds reads the number behind sleep; anything else is no time.
func seconds(word string) time.Duration {
	const longest = 3600
	n, err := strconv.Atoi(strings.Trim(word, ".,!?s"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, longest)) * time.Second
}

// wait waits, and takes up what comes meanwhile.
func (e *echo) wait(ctx context.Context, run *agent.Run, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	if d >= time.Second {
		run.Status(fmt.Sprintf("Sleeping for %s", d.Round(time.Second)))
	}
	for {
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case f := <-run.Followups():
			if err := e.take(ctx, run, f); err != nil {
				return err
			}
		}
	}
}

func (e *echo) take(ctx context.Context, run *agent.Run, f agent.Followup) error {
	if _, err := io.WriteString(run, "\n\n"); err != nil {
		return err
	}
	run.Consume(f)
	return e.say(ctx, run, order(f.Message.Content, run.Order.Run.AgentID))
}

// Interrupted implements Driver. Nothing is left behind.
func (*echo) Interrupted(context.Context, string, json.RawMessage) {}

// Check implements Driver.
func (*echo) Check() error { return nil }

// Report implements Driver.
func (*echo) Report() agent.Report {
	return agent.Report{Runtime: "echo", Evidence: evidence("none", "config"), Steer: true}
}
