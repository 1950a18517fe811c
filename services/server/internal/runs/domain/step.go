// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// reportedTimeWindow is how far a time the agent gives may be from the server's clock.
const reportedTimeWindow = time.Hour

const maxPreview = 512

// stepRank orders the states of a step; they only move forward.
func stepRank(state string) int {
	return slices.Index([]string{"pending", "running", "completed", "failed", "cancelled"}, state)
}

func forward(from, to string) bool {
	a, b := stepRank(from), stepRank(to)
	return from == to || b > a && a < stepRank("completed")
}

func (w *Work) applySteps(patches map[string]StepPatch, c *Changes, faults *errs.Validation) {
	for _, key := range sortedKeys(patches) {
		p, at := patches[key], "/patch/steps/"+key
		s := w.Steps[key]
		if s == nil {
			if s = w.newStep(key, p, at, faults); s == nil {
				continue
			}
		}
		if before := s.Input; len(p.Input) > 0 && len(before) > 0 {
			if c.ReplacedInputs == nil {
				c.ReplacedInputs = map[string]json.RawMessage{}
			}
			c.ReplacedInputs[key] = before
		}
		s.apply(p, at, w.Now, faults)
		if !slices.Contains(c.Steps, key) {
			c.Steps = append(c.Steps, key)
		}
	}
}

func (w *Work) newStep(key string, p StepPatch, at string, faults *errs.Validation) *Step {
	switch {
	case !keyForm.MatchString(key):
		faults.Add(at, "invalid", "A key has 1 to 64 letters, digits and ._:-")
		return nil
	case w.StepCount >= w.Limits.Steps:
		faults.Addf(at, "too_long", "A run has at most %d steps.", w.Limits.Steps)
		return nil
	case p.Title == nil:
		faults.Add(at+"/title", "required", "A new step needs a title.")
		return nil
	}
	w.StepCount++
	s := &Step{Key: key, Ordinal: w.StepCount, Kind: "step", State: "pending"}
	if w.Steps == nil {
		w.Steps = map[string]*Step{}
	}
	w.Steps[key] = s
	return s
}

func (s *Step) apply(p StepPatch, at string, now time.Time, faults *errs.Validation) {
	if p.Title != nil && (utf8.RuneCountInString(*p.Title) > maxLine || textcheck.Name(*p.Title) != nil) {
		faults.Addf(at+"/title", "invalid", "One line of at most %d characters.", maxLine)
		return
	}
	set(&s.Title, p.Title)
	set(&s.Kind, p.Kind)
	set(&s.ToolKind, p.ToolKind)
	set(&s.ParentKey, p.ParentKey)
	if p.State != nil {
		if !forward(s.State, *p.State) {
			faults.Addf(at+"/state", "backward", "A step that is %s does not become %s.", s.State, *p.State)
			return
		}
		s.State = *p.State
		s.stamp(p, now)
	}
	if len(p.Input) > 0 {
		s.Input = boundedInput(p.Input)
	}
	if !p.HasOutput {
		return
	}
	if p.Output != nil && textcheck.Body(*p.Output) != nil {
		faults.Add(at+"/output", "invalid", "The text holds control characters.")
		return
	}
	s.Output, s.OutputLength, s.Truncated = p.Output, 0, false
	if p.Output != nil {
		s.OutputLength = utf8.RuneCountInString(*p.Output)
		s.cut()
	}
}

// stamp sets the times: those of the agent when they are near the server's clock.
func (s *Step) stamp(p StepPatch, now time.Time) {
	at := func(given *time.Time) *time.Time {
		if given != nil && given.Sub(now).Abs() <= reportedTimeWindow {
			return given
		}
		return &now
	}
	if s.StartedAt == nil && s.State != "pending" {
		s.StartedAt = at(p.StartedAt)
	}
	if s.EndedAt == nil && stepRank(s.State) >= stepRank("completed") {
		s.EndedAt = at(p.EndedAt)
	}
}

func (s *Step) append(a Append, c *Changes) error {
	text := ""
	if s.Output != nil {
		text = *s.Output
	}
	if s.Truncated && a.Offset < s.OutputLength {
		// What was cut cannot be compared; a text that ends inside the known length is a repeat.
		if a.Offset+utf8.RuneCountInString(a.Text) <= s.OutputLength {
			return nil
		}
		return &OffsetError{Target: a.Target, Length: s.OutputLength}
	}
	repeat, err := fits(text, s.OutputLength, a)
	if err != nil || repeat || a.Text == "" {
		return err
	}
	text += a.Text
	s.Output, s.OutputLength = &text, s.OutputLength+utf8.RuneCountInString(a.Text)
	if s.cut(); s.Truncated {
		// Others cannot follow the cut with appends, so they get the step as it is now.
		c.Appended = slices.DeleteFunc(c.Appended, func(b Append) bool { return b.Target == a.Target })
		if !slices.Contains(c.Steps, s.Key) {
			c.Steps = append(c.Steps, s.Key)
		}
		return nil
	}
	if !slices.Contains(c.Steps, s.Key) {
		c.Appended = append(c.Appended, a)
	}
	return nil
}

// cut keeps the head and the tail of an output that has become too long.
func (s *Step) cut() {
	text := *s.Output
	if len(text) <= maxStepOutput {
		return
	}
	head := text[:stepHead]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	tail := text[len(text)-(maxStepOutput-stepHead):]
	for !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	short := head + tail
	s.Output, s.Truncated = &short, true
}

// boundedInput replaces an input that is too long by its beginning.
func boundedInput(raw json.RawMessage) json.RawMessage {
	// The database stores no NUL in a document, so such an input is shown as its source text.
	if len(raw) <= maxStepInput && !bytes.Contains(raw, []byte(`\u0000`)) {
		return raw
	}
	preview := string(raw[:min(maxPreview, len(raw))])
	for !utf8.ValidString(preview) {
		preview = preview[:len(preview)-1]
	}
	short, err := json.Marshal(map[string]any{"truncated": true, "preview": preview})
	if err != nil { // Texts and booleans always encode.
		return nil
	}
	return short
}
