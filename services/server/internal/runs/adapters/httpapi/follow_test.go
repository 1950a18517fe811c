// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

var now = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// follower applies patches as a client does: merge, then append.
type follower struct{ doc map[string]any }

func (f *follower) apply(t *rapid.T, patch json.RawMessage, list []domain.Append) {
	if len(patch) > 0 {
		var p map[string]any
		if err := json.Unmarshal(patch, &p); err != nil {
			t.Fatal(err)
		}
		f.doc = merge(f.doc, p).(map[string]any)
	}
	for _, a := range list {
		target := f.doc["output"].(map[string]any)
		text, length := "text", "length"
		if a.Target != "output" {
			key := a.Target[len("steps.") : len(a.Target)-len(".output")]
			target = f.doc["steps"].(map[string]any)[key].(map[string]any)
			text, length = "output", "output_length"
		}
		before, _ := target[text].(string)
		if n := len([]rune(before)); n != a.Offset {
			t.Fatalf("told to append to %s at %d of %d", a.Target, a.Offset, n)
		}
		target[text] = before + a.Text
		target[length] = float64(a.Offset + len([]rune(a.Text)))
	}
}

// merge is RFC 7396.
func merge(to, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := to.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for key, v := range p {
		if v == nil {
			delete(out, key)
		} else {
			out[key] = merge(out[key], v)
		}
	}
	return out
}

// plain is a value as JSON without nulls, which a merge patch cannot carry.
func plain(t *rapid.T, v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return stripped(out)
}

func stripped(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, value := range m {
		if value != nil {
			out[key] = stripped(value)
		}
	}
	return out
}

var (
	texts  = rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'ß', '漢', '😀', '\u0301'}), 0, 12, -1)
	titles = rapid.StringOfN(rapid.RuneFrom([]rune{'a', '漢', '😀'}), 1, 5, -1)
	keys   = rapid.SampledFrom([]string{"a", "b", "c"})
)

func drawPatch(t *rapid.T) domain.Patch {
	var p domain.Patch
	optional := func(name string, to **string) {
		if rapid.Bool().Draw(t, "has "+name) {
			v := titles.Draw(t, name)
			*to = &v
		}
	}
	optional("title", &p.Title)
	optional("status", &p.StatusLine)
	optional("model", &p.Model)
	optional("output", &p.Output)
	if rapid.Bool().Draw(t, "has plan") {
		p.HasPlan = true
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			p.Plan = append(p.Plan, domain.PlanEntry{Key: keys.Draw(t, "entry"), Text: titles.Draw(t, "text"), State: "pending"})
		}
	}
	p.Steps = map[string]domain.StepPatch{}
	for range rapid.IntRange(0, 2).Draw(t, "steps") {
		title := titles.Draw(t, "step title")
		s := domain.StepPatch{Title: &title}
		if rapid.Bool().Draw(t, "has output") {
			s.HasOutput = true
			if rapid.Bool().Draw(t, "output is text") {
				v := texts.Draw(t, "step output")
				s.Output = &v
			}
		}
		if rapid.Bool().Draw(t, "has input") {
			s.Input = json.RawMessage(fmt.Sprintf(`{"%s":{"%s":1},"n":%d}`, keys.Draw(t, "member"), keys.Draw(t, "inner"), rapid.IntRange(0, 3).Draw(t, "n")))
		}
		p.Steps[keys.Draw(t, "step")] = s
	}
	p.Artifacts = map[string]*domain.ArtifactPatch{}
	for range rapid.IntRange(0, 2).Draw(t, "artifacts") {
		key := keys.Draw(t, "artifact")
		p.Artifacts[key] = nil
		if rapid.Bool().Draw(t, "set artifact") {
			kind, title := "link", titles.Draw(t, "artifact title")
			a := &domain.ArtifactPatch{Kind: &kind, Title: &title, HasText: rapid.Bool().Draw(t, "has text")}
			if a.HasText && rapid.Bool().Draw(t, "text is text") {
				a.Text = &title
			}
			p.Artifacts[key] = a
		}
	}
	p.Usage = map[string]domain.UsagePatch{}
	if rapid.Bool().Draw(t, "has usage") {
		n := int64(rapid.IntRange(0, 100).Draw(t, "tokens"))
		p.Usage["acme/"+keys.Draw(t, "model name")] = domain.UsagePatch{Input: &n}
	}
	return p
}

func TestWhoFollowsThePatchesHasTheDocumentOfTheServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := domain.Queue(domain.NewRun{ID: ids.New(), AgentID: ids.New(), TriggeredBy: ids.New(), TriggerKind: domain.TriggerMessage}, now)
		if err := run.Start(now); err != nil {
			t.Fatal(err)
		}
		steps := map[string]*domain.Step{}
		f := follower{doc: plain(t, toRun(run, nil)).(map[string]any)}
		for range rapid.IntRange(1, 12).Draw(t, "updates") {
			r := run
			raw, err := json.Marshal(run.Document) // The update works on a copy, as on a row.
			if err != nil {
				t.Fatal(err)
			}
			title, status, model := r.Document.Title, r.Document.StatusLine, r.Document.Model
			r.Document = domain.Document{}
			if err := json.Unmarshal(raw, &r.Document); err != nil {
				t.Fatal(err)
			}
			r.Document.Title, r.Document.StatusLine, r.Document.Model = title, status, model
			copied := map[string]*domain.Step{}
			for key, s := range steps {
				c := *s
				copied[key] = &c
			}
			w := domain.Work{Run: &r, Steps: copied, StepCount: len(copied), Now: now, Limits: domain.Limits{Output: 1 << 16, Document: 1 << 16, Steps: 10}}
			patch := drawPatch(t)
			var list []domain.Append
			if rapid.Bool().Draw(t, "has append") {
				list = append(list, domain.Append{Target: "output", Offset: r.OutputLength, Text: texts.Draw(t, "append")})
				if patch.Output != nil {
					list[0].Offset = len([]rune(*patch.Output))
				}
			}
			if key := keys.Draw(t, "append to"); rapid.Bool().Draw(t, "has step append") && copied[key] != nil {
				offset := copied[key].OutputLength
				if p := patch.Steps[key]; p.HasOutput {
					offset = 0
					if p.Output != nil {
						offset = len([]rune(*p.Output))
					}
				}
				list = append(list, domain.Append{Target: "steps." + key + ".output", Offset: offset, Text: texts.Draw(t, "step append")})
			}
			c, err := w.Apply(patch, list)
			if err != nil {
				continue
			}
			run, steps = r, copied
			merged, err := Presenter{}.Patch(w, c)
			if err != nil {
				t.Fatal(err)
			}
			f.apply(t, merged, c.Appended)
		}
		var all []domain.Step
		for _, s := range steps {
			all = append(all, *s)
		}
		want := plain(t, toRun(run, all)).(map[string]any)
		for _, member := range []string{"title", "status_line", "model", "plan", "steps", "artifacts", "output", "usage", "input_tokens"} {
			if got := stripped(f.doc[member]); !reflect.DeepEqual(got, want[member]) {
				t.Fatalf("%s is %v, the server has %v", member, got, want[member])
			}
		}
	})
}
