// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/sdk/go/api"
)

// The causes for which the context of Work ends before the work does.
var (
	// ErrCancelled means that somebody asked the run to stop.
	ErrCancelled = errors.New("cancelled")
	// ErrEnded means that the server has ended the run.
	ErrEnded = errors.New("the run has ended")
	// ErrFenced means that another process works on the run.
	ErrFenced = errors.New("another process works on the run")
	// ErrRevoked means that the right to work on the run was taken away.
	ErrRevoked = errors.New("the right to work on the run was taken away")
	// ErrStopping means that the adapter stops.
	ErrStopping = errors.New("the adapter stops")
)

// Followup is a further message for a run that is at work.
type Followup struct {
	// ID is empty for a correction of the message that began the run.
	ID      string                `json:"id"`
	Message api.InvocationMessage `json:"message"`
	// Correction means that the text replaces an earlier one of the same message.
	Correction bool `json:"correction,omitempty"`
	// EventID is the event it came with.
	EventID string `json:"event_id"`
}

// Run is one order at work. It is an io.Writer: what is written streams into the thread. Its methods may be used by
// many goroutines.
type Run struct {
	// ID is the run.
	ID string
	// Order is what came with the order, without the token.
	Order api.AgentInvocationData

	agent     *Agent
	stream    *stream
	tokens    *tokens
	followups chan Followup

	mu      sync.Mutex
	offered map[string]bool
}

// Text is the text of the order.
func (r *Run) Text() string {
	if r.Order.Message == nil {
		return ""
	}
	return r.Order.Message.Content
}

// Write streams text into the thread, soon and in pieces of its own choosing. Control characters that no message may
// hold are left out, and bytes that are no UTF-8 become U+FFFD. It returns the cause once the run has ended.
func (r *Run) Write(p []byte) (int, error) {
	if err := r.stream.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Status shows in one line what the run is doing.
func (r *Run) Status(line string) {
	line = oneLine(line)
	r.stream.patch(func(p *api.RunPatch) { p.StatusLine = &line })
}

// Title names the run.
func (r *Run) Title(line string) {
	line = oneLine(line)
	r.stream.patch(func(p *api.RunPatch) { p.Title = &line })
}

// Model names the model at work.
func (r *Run) Model(name string) { r.stream.patch(func(p *api.RunPatch) { p.Model = &name }) }

// Plan shows the plan, as a whole.
func (r *Run) Plan(entries []api.PlanEntryInput) {
	r.stream.patch(func(p *api.RunPatch) { p.Plan = entries })
}

// Step shows one step; a later call with the same key changes it.
func (r *Run) Step(key string, step api.RunStepPatch) {
	r.stream.patch(func(p *api.RunPatch) {
		if p.Steps == nil {
			p.Steps = map[string]api.RunStepPatch{}
		}
		p.Steps[key] = mergeStep(p.Steps[key], step)
	})
}

// Usage reports tokens per "provider/model", as sums over the run.
func (r *Run) Usage(usage map[string]api.ModelUsageInput) {
	r.stream.patch(func(p *api.RunPatch) { p.Usage = usage })
}

// Flush returns after everything written so far is at the server.
func (r *Run) Flush(ctx context.Context) error { return r.stream.flush(ctx) }

// Followups gives further messages while the run is at work, when the adapter reports that it steers. It is never
// closed. What was not confirmed with Consume when the run ends becomes a run of its own.
func (r *Run) Followups() <-chan Followup { return r.followups }

// Consume confirms that a follow-up was taken up, together with the text written up to here.
func (r *Run) Consume(f Followup) {
	if f.ID != "" {
		r.stream.consume(f.ID)
	}
}

// Context reads what the agent may know about the thread, newest last. before is the cursor of an earlier answer, or
// empty.
func (r *Run) Context(ctx context.Context, before string, limit int) (*api.RunContext, error) {
	var out *api.RunContext
	err := r.tokens.with(ctx, func(token string) error {
		var err error
		out, err = r.agent.client.RunContext(ctx, r.ID, before, limit, withToken(token))
		return err
	})
	return out, err
}

// Keep stores what the work needs to clean up after a crash; Config.Interrupted gets it back.
func (r *Run) Keep(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return r.agent.journal.change(r.ID, func(rec *record) { rec.Work = raw })
}

func mergeStep(old, change api.RunStepPatch) api.RunStepPatch {
	out := old
	for _, apply := range []func(){
		func() { set(&out.Kind, change.Kind) }, func() { set(&out.ToolKind, change.ToolKind) },
		func() { set(&out.Title, change.Title) }, func() { set(&out.State, change.State) },
		func() { set(&out.Output, change.Output) }, func() { set(&out.ParentKey, change.ParentKey) },
		func() { set(&out.StartedAt, change.StartedAt) }, func() { set(&out.EndedAt, change.EndedAt) },
	} {
		apply()
	}
	if change.Input != nil {
		out.Input = change.Input
	}
	return out
}

func set[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

// oneLine makes a text fit for a line of at most 200 code points.
func oneLine(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(strings.Map(lineRune, s)), " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// lineRune drops what names and titles may not hold: control characters and those that reorder text.
func lineRune(r rune) rune {
	switch {
	case r == '\n', r == '\t', r == '\r', r == 0x2028, r == 0x2029:
		return ' '
	case r < 0x20, r >= 0x7f && r <= 0x9f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return -1
	}
	return r
}

// cleaner turns bytes of any origin into text a message may hold. A character that is cut between two writes is kept
// until the rest comes.
type cleaner struct{ rest []byte }

// clean takes bytes and gives text; last says that nothing more comes.
func (c *cleaner) clean(p []byte, last bool) string {
	in := append(c.rest, p...)
	c.rest = nil
	var out strings.Builder
	for len(in) > 0 {
		if !utf8.FullRune(in) && !last {
			c.rest = append([]byte(nil), in...)
			break
		}
		r, size := utf8.DecodeRune(in)
		in = in[size:]
		switch {
		case r == '\n', r == '\t':
			out.WriteRune(r)
		case r == '\r', r < 0x20, r >= 0x7f && r <= 0x9f:
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// tokens is the invocation token of a run, renewed in time.
type tokens struct {
	agent *Agent
	runID string

	mu      sync.Mutex
	token   string
	renewAt time.Time
}

func newTokens(a *Agent, runID, token string, expires time.Time) *tokens {
	t := &tokens{agent: a, runID: runID}
	if token != "" {
		t.keep(token, expires)
	}
	return t
}

// keep takes a token; two thirds of its life it is used without a question.
func (t *tokens) keep(token string, expires time.Time) {
	const share, of = 2, 3
	now := time.Now()
	t.token, t.renewAt = token, now.Add(expires.Sub(now)*share/of)
}

func (t *tokens) get(ctx context.Context, renew bool) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !renew && t.token != "" && time.Now().Before(t.renewAt) {
		return t.token, nil
	}
	fresh, err := t.agent.client.RenewRunToken(ctx, t.runID)
	if err != nil {
		return "", err
	}
	t.keep(fresh.Token, fresh.ExpiresAt)
	return t.token, nil
}

// with makes a call with a token, once more with a fresh one when it had expired.
func (t *tokens) with(ctx context.Context, do func(token string) error) error {
	token, err := t.get(ctx, false)
	if err != nil {
		return err
	}
	err = do(token)
	if !expired(err) {
		return err
	}
	if token, err = t.get(ctx, true); err != nil {
		return err
	}
	return do(token)
}
