// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

var limits = domain.Limits{Output: 64 << 10, Document: 64 << 10, Steps: 100}

func running() domain.Run {
	r := queued()
	_ = r.Start(begin) // A queued run starts.
	return r
}

func work(r *domain.Run) *domain.Work {
	return &domain.Work{Run: r, Steps: map[string]*domain.Step{}, Limits: limits, Now: begin}
}

// server is the run of the model test; apply is one updateRun.
type server struct{ run domain.Run }

func (s *server) apply(base int64, list []domain.Append) (domain.Changes, bool) {
	r := s.run
	if !r.CheckBase(base) {
		return domain.Changes{}, false
	}
	c, err := work(&r).Apply(domain.Patch{}, list)
	if err != nil {
		return domain.Changes{}, false
	}
	s.run = r
	return c, true
}

var piece = rapid.StringOfN(rapid.RuneFrom([]rune{'a', 'ß', '\n', '漢', '😀', '\u0301', '\u200d', '👩'}), 0, 8, -1)

func TestTextArrivesOnceWhateverIsLostOrRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := server{run: running()}
		var (
			meant  string // what the agent has written, by its own account
			known  = s.run.DocVersion
			reader string
		)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				text := piece.Draw(t, "text")
				update := []domain.Append{{Target: "output", Offset: utf8.RuneCountInString(meant), Text: text}}
				tries := rapid.IntRange(1, 3).Draw(t, "tries") // Answers of all but the last are lost.
				for range tries {
					c, ok := s.apply(known, update)
					for _, a := range c.Appended {
						reader += a.Text
					}
					// A refused repeat shows by the length that the update had arrived.
					if !ok && s.run.OutputLength != utf8.RuneCountInString(meant+text) {
						t.Fatalf("refused at version %d of %d", known, s.run.DocVersion)
					}
				}
				meant += text
				known = s.run.DocVersion
			},
			"mark": func(*rapid.T) { s.run.DocVersion++ }, // The server's own change.
			"old worker": func(t *rapid.T) {
				if known <= 2 {
					t.Skip("there is no older version")
				}
				if _, ok := s.apply(s.run.AgentDocVersion-1, []domain.Append{{Target: "output", Offset: 0, Text: "x"}}); ok {
					t.Fatal("a worker with an old version has written")
				}
			},
			"": func(t *rapid.T) {
				if s.run.Output != meant || reader != meant || s.run.OutputLength != utf8.RuneCountInString(meant) {
					t.Fatalf("the run holds %q (%d), a reader %q, meant %q", s.run.Output, s.run.OutputLength, reader, meant)
				}
			},
		})
	})
}

func TestOffsetsCountCodePoints(t *testing.T) {
	for name, c := range map[string]struct {
		offset  int
		text    string
		want    string
		refused bool
	}{
		"the next text":                 {3, "!", "a😀e!", false},
		"a repeat":                      {1, "😀", "a😀e", false},
		"another text at the place":     {1, "x", "a😀e", true},
		"a gap":                         {4, "!", "a😀e", true},
		"a repeat that reaches further": {1, "😀e!", "a😀e", true},
		"bytes instead of code points":  {6, "!", "a😀e", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := running()
			r.Output, r.OutputLength = "a😀e", 3
			_, err := work(&r).Apply(domain.Patch{}, []domain.Append{{Target: "output", Offset: c.offset, Text: c.text}})
			var offset *domain.OffsetError
			if errors.As(err, &offset) != c.refused {
				t.Fatalf("%v", err)
			}
			if c.refused && offset.Length != 3 {
				t.Errorf("length %d", offset.Length)
			}
			if r.Output != c.want {
				t.Errorf("%q", r.Output)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestStepsMoveForwardAndKeepTheirPlace(t *testing.T) {
	r := running()
	w := work(&r)
	patch := func(key string, p domain.StepPatch) error {
		_, err := w.Apply(domain.Patch{Steps: map[string]domain.StepPatch{key: p}}, nil)
		return err
	}
	if err := patch("a", domain.StepPatch{Title: ptr("Read"), State: ptr("running")}); err != nil {
		t.Fatal(err)
	}
	if err := patch("b", domain.StepPatch{Title: ptr("Write")}); err != nil {
		t.Fatal(err)
	}
	if err := patch("a", domain.StepPatch{State: ptr("completed")}); err != nil {
		t.Fatal(err)
	}
	if a := w.Steps["a"]; a.Ordinal != 1 || w.Steps["b"].Ordinal != 2 || a.StartedAt == nil || a.EndedAt == nil {
		t.Errorf("%+v", a)
	}
	if err := patch("a", domain.StepPatch{State: ptr("running")}); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("backward: %v", err)
	}
	if err := patch("c", domain.StepPatch{}); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("without a title: %v", err)
	}
}

func TestALongOutputOfAStepKeepsHeadAndTail(t *testing.T) {
	r := running()
	w := work(&r)
	long := strings.Repeat("漢", 8<<10)
	c, err := w.Apply(domain.Patch{Steps: map[string]domain.StepPatch{"a": {Title: ptr("Read"), Output: ptr("begin"), HasOutput: true}}},
		[]domain.Append{{Target: "steps.a.output", Offset: 5, Text: long}})
	if err != nil {
		t.Fatal(err)
	}
	s := w.Steps["a"]
	if !s.Truncated || len(*s.Output) > 16<<10 || !utf8.ValidString(*s.Output) || !strings.HasPrefix(*s.Output, "begin") || s.OutputLength != 5+8<<10 {
		t.Errorf("truncated %v, %d bytes, %d code points", s.Truncated, len(*s.Output), s.OutputLength)
	}
	if len(c.Appended) != 0 {
		t.Error("others would append what was cut")
	}
}

func TestWhatIsTooLargeOrDeceivesIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		patch  domain.Patch
		append []domain.Append
	}{
		"output beyond the limit":        {append: []domain.Append{{Target: "output", Text: strings.Repeat("x", limits.Output+1)}}},
		"a title of two lines":           {patch: domain.Patch{Title: ptr("a\nb")}},
		"a title that turns around":      {patch: domain.Patch{Title: ptr("a\u202eb")}},
		"a state without a card":         {patch: domain.Patch{State: ptr("waiting_input")}},
		"an artifact on a plain address": {patch: domain.Patch{Artifacts: map[string]*domain.ArtifactPatch{"a": {Kind: ptr("link"), Title: ptr("x"), URL: ptr("http://10.0.0.1"), HasURL: true}}}},
		"an unknown target":              {append: []domain.Append{{Target: "title", Text: "x"}}},
		"a step that is not there":       {append: []domain.Append{{Target: "steps.x.output", Text: "x"}}},
		"a model without a provider":     {patch: domain.Patch{Usage: map[string]domain.UsagePatch{"large": {Input: ptr(int64(1))}}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := running()
			if _, err := work(&r).Apply(c.patch, c.append); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestArtifactsAreMergedAndRemoved(t *testing.T) {
	r := running()
	w := work(&r)
	apply := func(p *domain.ArtifactPatch) {
		t.Helper()
		if _, err := w.Apply(domain.Patch{Artifacts: map[string]*domain.ArtifactPatch{"pr": p}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	apply(&domain.ArtifactPatch{Kind: ptr("link"), Title: ptr("One"), URL: ptr("https://example.org/1"), HasURL: true})
	apply(&domain.ArtifactPatch{Title: ptr("Two")})
	if a := r.Document.Artifacts["pr"]; a.Title != "Two" || a.URL == nil || a.Ordinal != 1 {
		t.Errorf("%+v", a)
	}
	apply(nil)
	if len(r.Document.Artifacts) != 0 {
		t.Error("still there")
	}
}
