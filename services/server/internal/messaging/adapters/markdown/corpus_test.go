// SPDX-License-Identifier: Apache-2.0

package markdown_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/markdown"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

var update = flag.Bool("update", false, "write what the parser finds into the case files; read the difference before keeping it")

var config = markdown.Config{MaxContentBytes: 65536, MaxClusterPoints: 32, MaxNesting: 32}

// mentionCase is a mention as the case files write it.
type mentionCase struct {
	Kind   string `json:"kind"`
	ID     ids.ID `json:"id,omitzero"`
	Label  string `json:"label"`
	Silent bool   `json:"silent"`
}

type corpusCase struct {
	Name  string `json:"name"`
	Input string `json:"input"`
	// Repeat makes a hostile input out of a short one.
	Repeat int `json:"repeat,omitempty"`
	// Error is the code of the fault; the other members are then absent.
	Error     string        `json:"error,omitempty"`
	Canonical string        `json:"canonical"`
	Plain     string        `json:"plain"`
	Preview   string        `json:"preview"`
	Mentions  []mentionCase `json:"mentions"`
	Warnings  []string      `json:"warnings,omitempty"`
}

type corpusFile struct {
	About string `json:"about"`
	// Handles are the members of the imagined team.
	Handles map[string]ids.ID `json:"handles"`
	// Channels are those of the space that the author may read.
	Channels map[string]ids.ID `json:"channels,omitempty"`
	Cases    []corpusCase      `json:"cases"`
}

func (f corpusFile) known() domain.Known {
	k := domain.Known{Handles: map[string]domain.Target{}, Principals: map[ids.ID]domain.Target{}, Channels: f.Channels, Refusal: domain.WarnBroadcast}
	for handle, id := range f.Handles {
		t := domain.Target{ID: id, Label: strings.ToUpper(handle[:1]) + handle[1:]}
		k.Handles[handle], k.Principals[id] = t, t
	}
	return k
}

func run(p *markdown.Parser, k domain.Known, c corpusCase) corpusCase {
	out := corpusCase{Name: c.Name, Input: c.Input, Repeat: c.Repeat}
	d, err := p.Parse(strings.Repeat(c.Input, max(1, c.Repeat)))
	var text domain.Text
	if err == nil {
		text, err = domain.Canonicalise(d, k, domain.Limits{MaxMentions: 50})
	}
	if err != nil {
		out.Error = errs.As(err).Fields[0].Code
		return out
	}
	if c.Repeat == 0 {
		out.Canonical, out.Plain, out.Preview = text.Content, text.Plain, text.Preview
	}
	out.Mentions = []mentionCase{}
	for _, m := range text.Mentions {
		out.Mentions = append(out.Mentions, mentionCase(m))
	}
	for _, w := range text.Warnings {
		out.Warnings = append(out.Warnings, w.Code)
	}
	return out
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../testdata/markdown/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files: %v", err)
	}
	p := markdown.New(config)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var f corpusFile
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		known := f.known()
		for i, c := range f.Cases {
			got := run(p, known, c)
			if *update {
				f.Cases[i] = got
				continue
			}
			t.Run(filepath.Base(name)+"/"+c.Name, func(t *testing.T) {
				if a, b := encode(t, c), encode(t, got); !bytes.Equal(a, b) {
					t.Errorf("want %s\ngot  %s", a, b)
				}
				if c.Error == "" && c.Repeat == 0 {
					again := run(p, known, corpusCase{Input: got.Canonical})
					if again.Canonical != got.Canonical || !slices.Equal(again.Mentions, got.Mentions) {
						t.Errorf("a second pass gives %q with %v", again.Canonical, again.Mentions)
					}
				}
			})
		}
		if *update {
			if err := os.WriteFile(name, append(encodeIndented(t, f), '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func encodeIndented(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

// TestHostileContentsTakeLinearTime gives the parser what is known to make parsers slow, in two
// sizes. Four times the length may take about four times the time; quadratic work takes
// sixteen. The quickest of some runs counts, because the machine may be busy.
func TestHostileContentsTakeLinearTime(t *testing.T) {
	p := markdown.New(config)
	quickest := func(part string, size, runs int) time.Duration {
		content, best := strings.Repeat(part, size/len(part)), time.Hour
		for range runs {
			start := time.Now()
			_, _ = p.Parse(content)
			best = min(best, time.Since(start))
		}
		return best
	}
	for _, part := range []string{
		"[", "]", "*", "_", ">", "> ", "|", "||", "`", "~", "<", "&", "\\", "@", "@a", "<@", "![", "](", "[](", "*a ", "a* ", "*a_ ", "**a *a ", "_a__b ",
		"[a](", "[a", "a]", "![[]()", "`a``b```c", "||a ", "a|| ", "~~a ", "- ", "1. ", "* *", "a\n", ">\n", "> a\n", "- a\n", "|a", "|a|b|\n|-|-|\n", "http://a ", "(http://a", "@a.",
		"<a@b ", "&amp;", "`\n", "\n\n", "#", "# a\n", "  ", "\t", "[a](b)", "*a*", "[*a", "a**b", "x<@here>", "e`", "**", "***a ", "_*", "&#0;", "é", "👍🏽", "||a||", "[ ] ", "- [ ] a\n",
		"http://-", "||a ~~ ",
	} {
		if quickest(part, 65536, 1) < 200*time.Millisecond {
			continue
		}
		large, small := quickest(part, 65536, 3), quickest(part, 16384, 3)
		if large > 100*time.Millisecond && large > 13*small {
			t.Errorf("%q repeated takes %v for 16 KiB and %v for 64 KiB", part, small, large)
		}
	}
}

// A wide table of short rows is filled up by the parser underneath: what it may grow to is
// bounded, so that one message cannot take the memory of the process.
func TestAWideTableDoesNotGrow(t *testing.T) {
	p := markdown.New(config)
	parse := func(columns, rows int) (allocated uint64, plain string) {
		content := strings.Repeat("|a", columns) + "|\n" + strings.Repeat("|-", columns) + "|\n" + strings.Repeat("|b\n", rows)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		doc, err := p.Parse(content)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("%d columns, %d rows: %v", columns, rows, err)
		}
		for _, piece := range doc.Plain {
			plain += piece.Text
		}
		return after.TotalAlloc - before.TotalAlloc, plain
	}
	if _, plain := parse(20, 500); strings.Contains(plain, "|") {
		t.Error("a long table of a person is no table any more")
	}
	const limit = 64 << 20
	if allocated, _ := parse(10_000, 8_000); allocated > limit {
		t.Errorf("a table of 60 KB takes %d bytes", allocated)
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	p := markdown.New(config)
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"hello", 3, "hel"}, {"👩‍👩‍👧‍👦👍🏽x", 2, "👩‍👩‍👧‍👦👍🏽"}, {"é́a", 1, "é́"}, {"ab", 5, "ab"}, {"", 2, ""}} {
		if got := p.Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestLimitsOfContents(t *testing.T) {
	t.Parallel()
	p := markdown.New(config)
	for name, c := range map[string]struct{ content, code string }{
		"too large":            {strings.Repeat("a", 65537), ""},
		"empty":                {"  \n\t", "empty"},
		"only invisible":       {"\u200b\u2060", "empty"},
		"NUL":                  {"a\x00b", "control_character"},
		"escape":               {"a\x1bb", "control_character"},
		"C1":                   {"a\u0085b", "control_character"},
		"noncharacter":         {"a\ufffeb", "noncharacter"},
		"stacked marks":        {"a" + strings.Repeat("\u0301", 40), "cluster_too_long"},
		"invalid UTF-8":        {"a\xffb", "invalid_utf8"},
		"quotes in quotes":     {strings.Repeat("> ", 200) + "a", "too_deep"},
		"lists in lists":       {strings.Repeat("- ", 200) + "a", "too_deep"},
		"emphasis in emphasis": {strings.Repeat("*a _b ", 30) + strings.Repeat(" c_ d*", 30), "too_deep"},
	} {
		_, err := p.Parse(c.content)
		if c.code == "" {
			if !errs.Is(err, errs.CodePayloadTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errs.Is(err, errs.CodeValidationFailed) || errs.As(err).Fields[0].Code != c.code {
			t.Errorf("%s: want %s, got %v", name, c.code, err)
		}
	}
}

// FuzzCanonicalise holds that a second pass changes nothing, that taking the tokens out of
// the result leaves the source, and that no run of the parser panics.
func FuzzCanonicalise(f *testing.F) {
	for _, seed := range []string{
		"hi @anna, `@bob`", "> @anna\n\n**@bob**", "[@anna](http://x.org) <@0199c2a0-0001-7000-8000-000000000001>", "||@_anna||", "| @anna | b |\n|---|---|\n| c | @bob |",
		"\\@anna \\\\@bob", "@anna.lee. @here", "~~@anna~~ _@bob_", "- [ ] @anna\n  - @bob", "```\n@anna\n```", "é@anna 你好 @anna", "x\r\n@anna", "#general. @anna#general",
	} {
		f.Add(seed)
	}
	p := markdown.New(config)
	known := corpusFile{Channels: map[string]ids.ID{"general": ids.MustParse("0199c2a0-0006-7000-8000-000000000006")}, Handles: map[string]ids.ID{
		"anna": ids.MustParse("0199c2a0-0001-7000-8000-000000000001"), "bob": ids.MustParse("0199c2a0-0002-7000-8000-000000000002"),
	}}.known()
	f.Fuzz(func(t *testing.T, content string) {
		d, err := p.Parse(content)
		if err != nil {
			return
		}
		text, err := domain.Canonicalise(d, known, domain.Limits{MaxMentions: 1000})
		if err != nil {
			t.Fatal(err)
		}
		d2, err := p.Parse(text.Content)
		if err != nil {
			if errs.Is(err, errs.CodePayloadTooLarge) {
				return
			}
			t.Fatalf("second pass of %q: %v", text.Content, err)
		}
		again, err := domain.Canonicalise(d2, known, domain.Limits{MaxMentions: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if again.Content != text.Content {
			t.Fatalf("%q becomes %q and then %q", content, text.Content, again.Content)
		}
		if !slices.Equal(again.Mentions, text.Mentions) {
			t.Fatalf("%q names %v and then %v", content, text.Mentions, again.Mentions)
		}
		if len(text.Mentions)+len(text.Links.ChannelIDs) == 0 && text.Content != d.Source {
			t.Fatalf("%q has changed to %q without a mention", d.Source, text.Content)
		}
	})
}
