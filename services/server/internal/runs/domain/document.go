// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// Limits of a document that are not configuration.
const (
	maxLine      = 200
	maxPlan      = 100
	maxPlanText  = 300
	maxArtifacts = 100
	maxUsage     = 16
	maxStepInput = 8 << 10
	// A long output of a step keeps its head and its tail.
	maxStepOutput = 16 << 10
	stepHead      = 4 << 10
)

// Limits are the sizes that the operator sets, in bytes and counts.
type Limits struct{ Output, Document, Steps int }

// Document is what an agent writes beside steps and output.
type Document struct {
	Title      string              `json:"-"`
	StatusLine string              `json:"-"`
	Model      string              `json:"-"`
	Plan       []PlanEntry         `json:"plan,omitempty"`
	Artifacts  map[string]Artifact `json:"artifacts,omitempty"`
	Usage      map[string]Usage    `json:"usage,omitempty"`
	// LastArtifact counts the artifacts ever made, so ordinals are not used twice.
	LastArtifact int `json:"last_artifact,omitempty"`
}

// PlanEntry is one line of the plan.
type PlanEntry struct {
	Key      string `json:"key"`
	Text     string `json:"text"`
	State    string `json:"state"`
	Priority string `json:"priority,omitempty"`
}

// Artifact is something the run has produced.
type Artifact struct {
	Ordinal int     `json:"ordinal"`
	Kind    string  `json:"kind"`
	Title   string  `json:"title"`
	URL     *string `json:"url,omitempty"`
	Text    *string `json:"text,omitempty"`
}

// Usage counts the tokens of one model, cumulative over the run.
type Usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"`
	CacheWrite int64 `json:"cache_write_tokens"`
}

// Total adds the usage of all models.
func (d Document) Total() Usage {
	var t Usage
	for _, u := range d.Usage {
		t.Input, t.Output, t.CacheRead, t.CacheWrite = t.Input+u.Input, t.Output+u.Output, t.CacheRead+u.CacheRead, t.CacheWrite+u.CacheWrite
	}
	return t
}

// Step is one thing the agent did.
type Step struct {
	Key       string
	Ordinal   int
	ParentKey string
	Kind      string
	ToolKind  string
	Title     string
	State     string
	StartedAt *time.Time
	EndedAt   *time.Time
	Input     json.RawMessage
	Output    *string
	// OutputLength is in code points of everything that was written, also of what was cut.
	OutputLength int
	Truncated    bool
}

// Patch is the merge patch of an agent; nil members are absent.
type Patch struct {
	State, Title, StatusLine, Model *string
	Plan                            []PlanEntry
	HasPlan                         bool
	Steps                           map[string]StepPatch
	// Artifacts with a nil value are removed.
	Artifacts map[string]*ArtifactPatch
	Usage     map[string]UsagePatch
	Output    *string
}

// StepPatch changes one step.
type StepPatch struct {
	ParentKey, Kind, ToolKind, Title, State *string
	StartedAt, EndedAt                      *time.Time
	Input                                   json.RawMessage
	// Output is set when HasOutput; nil clears it.
	Output    *string
	HasOutput bool
}

// ArtifactPatch changes one artifact; URL and Text are set when their Has member is true.
type ArtifactPatch struct {
	Kind, Title     *string
	URL, Text       *string
	HasURL, HasText bool
}

// UsagePatch changes the usage of one model.
type UsagePatch struct{ Input, Output, CacheRead, CacheWrite *int64 }

// Append adds text at an offset in code points.
type Append struct {
	Target string
	Offset int
	Text   string
}

// Changes says what an update has changed, for the patch that others receive.
type Changes struct {
	Title, StatusLine, Model, Plan, Output bool
	Steps, Artifacts, Usage                []string
	// Appended are the texts that were new; repeats are left out.
	Appended []Append
	// ReplacedInputs are the inputs of steps before they were replaced, by key. Whoever merges
	// needs to know what is gone.
	ReplacedInputs map[string]json.RawMessage
}

// Any reports whether there is anything to tell.
func (c Changes) Any() bool {
	return c.Title || c.StatusLine || c.Model || c.Plan || c.Output || len(c.Steps)+len(c.Artifacts)+len(c.Usage)+len(c.Appended) > 0
}

// OffsetError refuses an append that is neither the next text nor a repeat. Length is the
// true length of the target in code points.
type OffsetError struct {
	Target string
	Length int
}

// Error implements error.
func (e *OffsetError) Error() string { return "the offset does not fit the length of " + e.Target }

// SizeError refuses what would be larger than allowed.
type SizeError struct{ What string }

// Error implements error.
func (e *SizeError) Error() string { return e.What + " is too large" }

// Work is a run with the steps that an update touches.
type Work struct {
	Run *Run
	// Steps are the touched ones that exist, by key; StepCount is the number of all.
	Steps     map[string]*Step
	StepCount int
	Limits    Limits
	Now       time.Time
}

var (
	keyForm   = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)
	modelForm = regexp.MustCompile(`^[^/\s]{1,64}/\S{1,128}$`)
)

// TouchedSteps are the keys of the steps that a patch and appends name.
func TouchedSteps(p Patch, list []Append) []string {
	var out []string
	for key := range p.Steps {
		out = append(out, key)
	}
	for _, a := range list {
		if key, ok := stepTarget(a.Target); ok && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

func stepTarget(target string) (key string, ok bool) {
	rest, isStep := strings.CutPrefix(target, "steps.")
	if !isStep {
		return "", false
	}
	return strings.CutSuffix(rest, ".output")
}

// CheckBase compares the version an update was made from. The agent's own changes conflict,
// marks of the server do not.
func (r *Run) CheckBase(base int64) bool { return r.AgentDocVersion <= base && base <= r.DocVersion }

// Apply makes one update of the agent. On an error the run must be thrown away. An update
// counts as activity and takes the mark of a stall back.
func (w *Work) Apply(p Patch, list []Append) (Changes, error) {
	var (
		c      Changes
		faults errs.Validation
	)
	w.applyFields(p, &c, &faults)
	w.applySteps(p.Steps, &c, &faults)
	w.applyArtifacts(p.Artifacts, &c, &faults)
	w.applyUsage(p.Usage, &c, &faults)
	if err := faults.Err(); err != nil {
		return c, err
	}
	if p.Output != nil {
		if err := w.setOutput(*p.Output, &c); err != nil {
			return c, err
		}
	}
	for _, a := range list {
		if err := w.append(a, &c); err != nil {
			return c, err
		}
	}
	if raw, err := json.Marshal(w.Run.Document); err != nil || len(raw) > w.Limits.Document {
		return c, &SizeError{What: "the document"}
	}
	w.Run.DocVersion++
	w.Run.AgentDocVersion = w.Run.DocVersion
	w.Run.LastActivityAt, w.Run.StallWarnedAt = w.Now, nil
	return c, nil
}

func (w *Work) applyFields(p Patch, c *Changes, faults *errs.Validation) {
	d := &w.Run.Document
	line := func(name string, from *string, to *string, changed *bool) {
		if from == nil {
			return
		}
		if utf8.RuneCountInString(*from) > maxLine || *from != "" && textcheck.Name(*from) != nil {
			faults.Addf("/patch/"+name, "invalid", "One line of at most %d characters.", maxLine)
			return
		}
		*to, *changed = *from, true
	}
	line("title", p.Title, &d.Title, &c.Title)
	line("status_line", p.StatusLine, &d.StatusLine, &c.StatusLine)
	line("model", p.Model, &d.Model, &c.Model)
	if p.State != nil && State(*p.State) != w.Run.State {
		faults.Add("/patch/state", "no_open_component", "A run waits for input only while a card of it is open.")
	}
	if !p.HasPlan {
		return
	}
	if len(p.Plan) > maxPlan {
		faults.Addf("/patch/plan", "too_long", "At most %d entries.", maxPlan)
		return
	}
	for _, e := range p.Plan {
		if !keyForm.MatchString(e.Key) || utf8.RuneCountInString(e.Text) > maxPlanText || textcheck.Body(e.Text) != nil {
			faults.Addf("/patch/plan", "invalid", "An entry has a key and at most %d characters.", maxPlanText)
			return
		}
	}
	d.Plan, c.Plan = slices.Clone(p.Plan), true
}

func (w *Work) applyArtifacts(patches map[string]*ArtifactPatch, c *Changes, faults *errs.Validation) {
	d := &w.Run.Document
	for _, key := range sortedKeys(patches) {
		p, at := patches[key], "/patch/artifacts/"+key
		if p == nil {
			delete(d.Artifacts, key)
			c.Artifacts = append(c.Artifacts, key)
			continue
		}
		a, known := d.Artifacts[key]
		switch {
		case !keyForm.MatchString(key):
			faults.Add(at, "invalid", "A key has 1 to 64 letters, digits and ._:-")
			continue
		case !known && (p.Kind == nil || p.Title == nil):
			faults.Add(at, "required", "A new artifact needs kind and title.")
			continue
		case !known && len(d.Artifacts) >= maxArtifacts:
			faults.Addf(at, "too_long", "At most %d artifacts.", maxArtifacts)
			continue
		case p.URL != nil && !acceptableURL(*p.URL):
			faults.Add(at+"/url", "invalid", "Only https addresses.")
			continue
		case p.Title != nil && textcheck.Name(*p.Title) != nil, p.Text != nil && textcheck.Body(*p.Text) != nil:
			faults.Add(at, "invalid", "The text holds control characters.")
			continue
		}
		if !known {
			d.LastArtifact++
			a.Ordinal = d.LastArtifact
		}
		set(&a.Kind, p.Kind)
		set(&a.Title, p.Title)
		if p.HasURL {
			a.URL = p.URL
		}
		if p.HasText {
			a.Text = p.Text
		}
		if d.Artifacts == nil {
			d.Artifacts = map[string]Artifact{}
		}
		d.Artifacts[key] = a
		c.Artifacts = append(c.Artifacts, key)
	}
}

func acceptableURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

func (w *Work) applyUsage(patches map[string]UsagePatch, c *Changes, faults *errs.Validation) {
	d := &w.Run.Document
	for _, model := range sortedKeys(patches) {
		_, known := d.Usage[model]
		if !modelForm.MatchString(model) || !known && len(d.Usage) >= maxUsage {
			faults.Addf("/patch/usage", "invalid", "At most %d models, each named provider/model.", maxUsage)
			return
		}
		u, p := d.Usage[model], patches[model]
		set(&u.Input, p.Input)
		set(&u.Output, p.Output)
		set(&u.CacheRead, p.CacheRead)
		set(&u.CacheWrite, p.CacheWrite)
		if d.Usage == nil {
			d.Usage = map[string]Usage{}
		}
		d.Usage[model] = u
		c.Usage = append(c.Usage, model)
	}
}

func (w *Work) setOutput(text string, c *Changes) error {
	if len(text) > w.Limits.Output {
		return &SizeError{What: "the output"}
	}
	if textcheck.Body(text) != nil {
		return errs.Invalid("/patch/output/text", "invalid", "The text holds control characters.")
	}
	w.Run.Output, w.Run.OutputLength, c.Output = text, utf8.RuneCountInString(text), true
	return nil
}

func (w *Work) append(a Append, c *Changes) error {
	if textcheck.Body(a.Text) != nil {
		return errs.Invalid("/append", "invalid", "The text holds control characters.")
	}
	if a.Target == "output" {
		return w.appendOutput(a, c)
	}
	key, ok := stepTarget(a.Target)
	if !ok {
		return errs.Invalid("/append", "unknown_target", "Append to output or to steps.<key>.output.")
	}
	s := w.Steps[key]
	if s == nil {
		return errs.Invalid("/append", "unknown_step", "There is no step "+key+".")
	}
	return s.append(a, c)
}

func (w *Work) appendOutput(a Append, c *Changes) error {
	repeat, err := fits(w.Run.Output, w.Run.OutputLength, a)
	if err != nil || repeat {
		return err
	}
	if len(w.Run.Output)+len(a.Text) > w.Limits.Output {
		return &SizeError{What: "the output"}
	}
	w.Run.Output += a.Text
	w.Run.OutputLength += utf8.RuneCountInString(a.Text)
	// A replaced output already holds the text in the patch that others receive.
	if a.Text != "" && !c.Output {
		c.Appended = append(c.Appended, a)
	}
	return nil
}

// fits tells the next text (false, nil) from a repeat (true, nil) and from a gap.
func fits(text string, length int, a Append) (repeat bool, err error) {
	if a.Offset == length {
		return false, nil
	}
	if a.Offset >= 0 && a.Offset < length && strings.HasPrefix(fromRune(text, a.Offset), a.Text) {
		return true, nil
	}
	return false, &OffsetError{Target: a.Target, Length: length}
}

// fromRune is the text from the n-th code point on.
func fromRune(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// ChangedSteps are the keys of the steps that an update has written to.
func ChangedSteps(c Changes) []string {
	out := slices.Clone(c.Steps)
	for _, a := range c.Appended {
		if key, ok := stepTarget(a.Target); ok && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// OutputChanged reports whether an update has written to the output.
func OutputChanged(c Changes) bool {
	return c.Output || slices.ContainsFunc(c.Appended, func(a Append) bool { return a.Target == "output" })
}
