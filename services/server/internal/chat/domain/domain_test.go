// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestKeysKeepTheOrderOfMoves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var keys []string
		for range rapid.IntRange(1, 200).Draw(t, "moves") {
			at := rapid.IntRange(0, len(keys)).Draw(t, "at")
			before, after := "", ""
			if at > 0 {
				before = keys[at-1]
			}
			if at < len(keys) {
				after = keys[at]
			}
			var key string
			var err error
			if after == "" {
				key, err = domain.KeyAfter(before)
			} else {
				key, err = domain.KeyBetween(before, after)
			}
			if errors.Is(err, domain.ErrKeysFull) {
				keys = domain.FreshKeys(len(keys))
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(key) > domain.MaxKey || before >= key || after != "" && key >= after {
				t.Fatalf("%q does not lie between %q and %q", key, before, after)
			}
			keys = slices.Insert(keys, at, key)
		}
		if !slices.IsSorted(keys) {
			t.Fatalf("not in order: %v", keys)
		}
	})
}

func TestTheSamePlaceTakesManyElementsBeforeItIsFull(t *testing.T) {
	t.Parallel()
	before, after := "1000", "1001"
	for n := 0; ; n++ {
		key, err := domain.KeyBetween(before, after)
		if errors.Is(err, domain.ErrKeysFull) {
			if n < 300 {
				t.Errorf("full after %d elements", n)
			}
			return
		}
		after = key
	}
}

func TestPlaceAfterNamesSiblings(t *testing.T) {
	t.Parallel()
	a, b := ids.New(), ids.New()
	siblings := []domain.Sibling{{ID: a, Key: "1000"}, {ID: b, Key: "1001", Archived: true}}
	for name, c := range map[string]struct {
		after ids.ID
		ok    bool
		low   string
		high  string
	}{
		"at the end":        {ids.ID{}, true, "1001", "~"},
		"behind the first":  {a, true, "1000", "1001"},
		"behind the last":   {b, true, "1001", "~"},
		"behind a stranger": {ids.New(), false, "", ""},
	} {
		key, ok, err := domain.PlaceAfter(siblings, c.after)
		if err != nil || ok != c.ok || ok && (key <= c.low || key >= c.high) {
			t.Errorf("%s: %q %v %v", name, key, ok, err)
		}
	}
	if domain.Present(siblings) != 1 {
		t.Error("archived siblings count")
	}
}

func TestOperatorOfAChannel(t *testing.T) {
	t.Parallel()
	own, of := ids.New(), ids.New()
	for mode, want := range map[string]ids.ID{domain.OperatorOwn: own, domain.OperatorInherit: of, domain.OperatorNone: {}} {
		c := domain.Channel{OperatorMode: mode, OwnOperatorID: own, SpaceOperatorID: of}
		if got := c.Operator(); got != want {
			t.Errorf("%s: %s", mode, got)
		}
	}
	c := domain.Channel{OperatorMode: domain.OperatorInherit}
	if c.SetOperator(domain.OperatorInherit, ids.ID{}) || !c.SetOperator(domain.OperatorOwn, own) || c.SetOperator(domain.OperatorOwn, own) {
		t.Error("a change is told wrongly")
	}
}

func TestVersionsOfAChannel(t *testing.T) {
	t.Parallel()
	c := domain.Channel{Version: 1, ConfigVersion: 1, BehaviorVersion: 1}
	c.Touch(time.Now(), false)
	c.Touch(time.Now(), true)
	c.TouchBehavior(time.Now())
	if c.Version != 4 || c.ConfigVersion != 3 || c.BehaviorVersion != 2 {
		t.Errorf("versions %d %d %d", c.Version, c.ConfigVersion, c.BehaviorVersion)
	}
}

func TestWhoReopensAThread(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, author string
		want         bool
	}{{"message", "person", true}, {"message", "app", true}, {"message", "webhook", true}, {"message", "agent", false}, {"system", "system", false}, {"run", "agent", false}} {
		if got := domain.Reopens(c.kind, c.author); got != c.want {
			t.Errorf("%s of %s: %v", c.kind, c.author, got)
		}
	}
}

// runes counts code points; the real measure is tested with its adapter.
type runes struct{}

func (runes) Measure(s string) (int, int) { return len([]rune(s)), 1 }

func TestNamesAreOneCleanLine(t *testing.T) {
	t.Parallel()
	n := domain.Names{Clusters: runes{}, Limits: domain.Limits{NameClusters: 10, TopicClusters: 20, TitleClusters: 10, ClusterCodePoints: 4, PromptBytes: 8}}
	for text, code := range map[string]string{
		"general": "", "  general  ": "", "": "required", "   ": "required", strings.Repeat("a", 11): "too_long",
		"a\nb": "control_character", "a\x00": "control_character", "a\u202eb": "bidi_control", "a\u200bb": "invisible_character", "a\ufeff": "invisible_character",
		"日本語": "",
	} {
		var faults errs.Validation
		got := n.Name(&faults, "/name", text)
		err := errs.As(faults.Err())
		switch {
		case code == "" && err != nil, code != "" && (err == nil || err.Fields[0].Code != code || err.Fields[0].Pointer != "/name"):
			t.Errorf("%q: want %q, got %v", text, code, err)
		case code == "" && got != strings.TrimSpace(text):
			t.Errorf("%q becomes %q", text, got)
		}
	}
	var faults errs.Validation
	n.Topic(&faults, "/topic", "")
	n.Description(&faults, "/description", "two\nlines")
	if err := faults.Err(); err != nil {
		t.Error(err)
	}
	n.Prompt(&faults, "/prompt", "123456789")
	if err := errs.As(faults.Err()); err == nil || err.Fields[0].Code != "too_long" {
		t.Errorf("a long prompt: %v", err)
	}
}
