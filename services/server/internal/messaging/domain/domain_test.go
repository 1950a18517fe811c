// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

func TestHandlesAreTriedFromTheLongest(t *testing.T) {
	t.Parallel()
	d := domain.Document{Refs: []domain.Ref{
		{Kind: domain.RefTyped, Name: "Anna.lee._-"}, {Kind: domain.RefTyped, Name: "bob", Quoted: true},
		{Kind: domain.RefTyped, Name: "here."}, {Kind: domain.RefTyped, Name: "anna.lee"},
	}}
	want := []string{"anna.lee._-", "anna.lee._", "anna.lee.", "anna.lee", "here."}
	if got := d.Handles(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if !d.Broadcasts() {
		t.Error("here. calls many people")
	}
}

func TestTooManyTargetsAreRefused(t *testing.T) {
	t.Parallel()
	known := domain.Known{Principals: map[ids.ID]domain.Target{}}
	var d domain.Document
	for range 3 {
		id := ids.New()
		known.Principals[id] = domain.Target{ID: id, Label: "x"}
		d.Refs = append(d.Refs, domain.Ref{Kind: domain.RefPrincipal, ID: id}, domain.Ref{Kind: domain.RefPrincipal, ID: id})
	}
	if _, err := domain.Canonicalise(d, known, domain.Limits{MaxMentions: 3}); err != nil {
		t.Errorf("three targets: %v", err)
	}
	if _, err := domain.Canonicalise(d, known, domain.Limits{MaxMentions: 2}); !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("more than two: %v", err)
	}
}

func TestPermalinksAreRecognised(t *testing.T) {
	t.Parallel()
	a, b := ids.New(), ids.New()
	const public = "https://bothy.example"
	for url, want := range map[string]domain.Links{
		fmt.Sprintf("%s/c/%s", public, a):                     {ChannelIDs: []ids.ID{a}},
		fmt.Sprintf("%s/t/%s", public, a):                     {ThreadIDs: []ids.ID{a}},
		fmt.Sprintf("%s/t/%s/%s", public, a, b):               {MessageIDs: []ids.ID{b}},
		fmt.Sprintf("%s/t/%s/x", public, a):                   {},
		fmt.Sprintf("%s/c/%s/%s", public, a, b):               {},
		fmt.Sprintf("https://bothy.example.evil.org/c/%s", a): {},
		public: {},
	} {
		text, err := domain.Canonicalise(domain.Document{URLs: []string{url, url}}, domain.Known{}, domain.Limits{PublicURL: public})
		l := text.Links
		if err != nil || !slices.Equal(l.ChannelIDs, want.ChannelIDs) || !slices.Equal(l.ThreadIDs, want.ThreadIDs) || !slices.Equal(l.MessageIDs, want.MessageIDs) {
			t.Errorf("%s: %+v, %v", url, l, err)
		}
	}
}

func TestTheHashTellsRequestsApart(t *testing.T) {
	t.Parallel()
	base := domain.Request{PlaceID: ids.New(), Content: "a", Notify: "normal"}
	other := []domain.Request{base, base, base, base, base, base, base}
	other[0].PlaceID, other[1].ParentID, other[2].Title, other[3].Content = ids.New(), ids.New(), "t", "b"
	other[4].ReplyToID, other[5].Notify, other[6].SuppressTrigger = ids.New(), "silent", true
	for i, r := range other {
		if bytes.Equal(r.Hash(), base.Hash()) {
			t.Errorf("request %d has the same hash", i)
		}
	}
	if !bytes.Equal(base.Hash(), base.Hash()) || len(base.Hash()) != 32 {
		t.Error("the hash is not stable")
	}
	shifted := base
	shifted.Title, shifted.Content = "a", ""
	if bytes.Equal(shifted.Hash(), base.Hash()) {
		t.Error("members run into each other")
	}
}

func TestWindowsAreComputed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want domain.Window }{
		"newest":               {domain.Newest(10, 3), domain.Window{From: 8, To: 10}},
		"newest of few":        {domain.Newest(2, 5), domain.Window{From: 1, To: 2}},
		"newest of none":       {domain.Newest(0, 5), domain.Window{From: 1, To: 0}},
		"before":               {domain.Before(5, 3), domain.Window{From: 2, To: 4}},
		"before the first":     {domain.Before(1, 3), domain.Window{From: 1, To: 0}},
		"after":                {domain.After(5, 3), domain.Window{From: 6, To: 8}},
		"after nothing":        {domain.After(-5, 3), domain.Window{From: 1, To: -2}},
		"around":               {domain.Around(5, 4), domain.Window{From: 3, To: 6}},
		"around the beginning": {domain.Around(1, 4), domain.Window{From: 1, To: 4}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
}

func TestADeletedMessageKeepsItsSkeleton(t *testing.T) {
	t.Parallel()
	m := domain.Message{
		Kind: "message", Content: "a", Plain: "a", HasBits: 7, Links: domain.Links{ThreadIDs: []ids.ID{ids.New()}}, Mentions: []domain.Mention{{Kind: "here"}},
		ReplyTo: &domain.Reply{}, ClientHash: []byte{1}, ThreadSeq: 4, Version: 1,
	}
	if !m.Countable() || !m.Counts() {
		t.Error("it does not count")
	}
	m.Delete(domain.Deletion{At: time.Now(), Kind: domain.DeletedByAuthor})
	if m.Content+m.Plain != "" || m.HasBits != 0 || m.Links.ThreadIDs != nil || m.Mentions != nil || m.ReplyTo != nil || m.ClientHash != nil {
		t.Errorf("%+v", m)
	}
	if m.ThreadSeq != 4 || m.Version != 2 || m.Countable() || m.Counts() {
		t.Errorf("%+v", m)
	}
	imported := domain.Message{Kind: "message", Imported: true}
	if imported.Countable() || !imported.Counts() {
		t.Error("imported messages are unread for nobody and still counted")
	}
}

func TestOnlyTargetsThatWereNeverThereAreAdded(t *testing.T) {
	t.Parallel()
	a, b := ids.New(), ids.New()
	now := []domain.Mention{{Kind: "principal", ID: a}, {Kind: "principal", ID: b, Silent: true}, {Kind: "here"}}
	got := domain.Added(now, []domain.Mention{{Kind: "principal", ID: a, Silent: true}})
	if len(got) != 2 || got[0].ID != b || got[1].Kind != "here" {
		t.Errorf("%+v", got)
	}
	if wakes := domain.Wakes(now); !slices.Equal(wakes, []ids.ID{a}) {
		t.Errorf("%v", wakes)
	}
}
