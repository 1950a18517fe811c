// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/test/ledger"
)

// story is a run in which nothing went wrong: one message acknowledged, one lost on the way back and stored, one refused.
func story(t *testing.T) (*ledger.Ledger, map[string][]ledger.Stored) {
	t.Helper()
	l := ledger.New()
	l.Listen("a")
	for _, id := range []string{"1", "2", "3"} {
		l.Intend(id, "t", "text "+id)
		l.Sent(id)
	}
	if err := l.Acknowledge("1", "m1", 1); err != nil {
		t.Fatal(err)
	}
	l.Refuse("3")
	l.Hear("a", ledger.Heard{Seq: 10, ClientID: "1"})
	l.Hear("a", ledger.Heard{Seq: 12, ClientID: "2"})
	return l, map[string][]ledger.Stored{"t": {
		{MessageID: "m1", ClientID: "1", Content: "text 1", ThreadSeq: 1}, {MessageID: "m2", ClientID: "2", Content: "text 2", ThreadSeq: 2},
	}}
}

func TestARunWithoutFaultsHasNoContradiction(t *testing.T) {
	l, threads := story(t)
	if found := l.Check(threads); len(found) > 0 {
		t.Error(found)
	}
}

func TestEveryKindOfFaultIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l *ledger.Ledger, threads map[string][]ledger.Stored)
		want  string
	}{
		"lost":  {func(_ *ledger.Ledger, s map[string][]ledger.Stored) { s["t"] = s["t"][1:] }, "is gone"},
		"twice": {func(_ *ledger.Ledger, s map[string][]ledger.Stored) { s["t"] = append(s["t"], withSeq(s["t"][0], 3)) }, "exists twice"},
		"nobody sent it": {func(_ *ledger.Ledger, s map[string][]ledger.Stored) {
			s["t"] = append(s["t"], ledger.Stored{MessageID: "m9", ClientID: "9", ThreadSeq: 9})
		}, "nobody sent it"},
		"another text":  {func(_ *ledger.Ledger, s map[string][]ledger.Stored) { s["t"][1].Content = "other" }, "another text"},
		"another place": {func(_ *ledger.Ledger, s map[string][]ledger.Stored) { s["t"][0].ThreadSeq = 0 }, "acknowledged as"},
		"refused": {func(_ *ledger.Ledger, s map[string][]ledger.Stored) {
			s["t"] = append(s["t"], ledger.Stored{ClientID: "3", Content: "text 3", ThreadSeq: 3})
		}, "refused message 3 exists"},
		"order of a thread": {func(_ *ledger.Ledger, s map[string][]ledger.Stored) { slices.Reverse(s["t"]) }, "stands behind"},
		"heard twice": {func(l *ledger.Ledger, _ map[string][]ledger.Stored) {
			l.Hear("a", ledger.Heard{Seq: 13, ClientID: "2"})
		}, "twice"},
		"heard backwards": {func(l *ledger.Ledger, _ map[string][]ledger.Stored) {
			l.Hear("a", ledger.Heard{Seq: 11, ClientID: "2"})
		}, "heard 11 behind 12"},
		"heard a ghost": {func(l *ledger.Ledger, _ map[string][]ledger.Stored) {
			l.Hear("a", ledger.Heard{Seq: 13, ClientID: "7"})
		}, "does not exist"},
		"missed": {func(l *ledger.Ledger, _ map[string][]ledger.Stored) { l.Listen("b") }, "b did not hear message"},
	} {
		t.Run(name, func(t *testing.T) {
			l, threads := story(t)
			c.spoil(l, threads)
			if found := strings.Join(l.Check(threads), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func withSeq(s ledger.Stored, seq int64) ledger.Stored {
	s.ThreadSeq = seq
	return s
}

func TestTwoAnswersToOneMessageMustAgree(t *testing.T) {
	l, _ := story(t)
	if err := l.Acknowledge("1", "m1", 1); err != nil {
		t.Errorf("the same answer again: %v", err)
	}
	if err := l.Acknowledge("1", "m2", 2); err == nil {
		t.Error("another message under the same client ID was taken")
	}
}
