// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Mention is somebody a message names.
type Mention struct {
	// Kind is principal, group, channel, here or thread.
	Kind string `json:"kind"`
	// ID is zero for broadcasts.
	ID     ids.ID `json:"id,omitzero"`
	Label  string `json:"label"`
	Silent bool   `json:"silent"`
}

// Wakes reports whether the mention names one principal and is meant to be noticed.
func (m Mention) Wakes() bool { return m.Kind == string(RefPrincipal) && !m.Silent }

// The codes of warnings.
const (
	WarnUnknown          = "mention_unknown"
	WarnNoAccess         = "mention_no_access"
	WarnBroadcast        = "broadcast_not_allowed"
	WarnBroadcastLimited = "broadcast_limited"
	WarnGroup            = "group_not_mentionable"
)

// Warning tells the author what did not take effect.
type Warning struct {
	Code, Kind, Label string
	ID                ids.ID
}

// Links are the things of this instance that a content points to, at most maxLinks of a kind.
type Links struct {
	MessageIDs []ids.ID `json:"message_ids,omitempty"`
	ThreadIDs  []ids.ID `json:"thread_ids,omitempty"`
	ChannelIDs []ids.ID `json:"channel_ids,omitempty"`
}

const maxLinks = 10

// Text is a content in canonical form with what it says.
type Text struct {
	Content  string
	Plain    string
	Preview  string
	Mentions []Mention
	Links    Links
	HasBits  int
	Warnings []Warning
}

// Wakes lists the principals that are named in a way that wakes them, in order.
func (t Text) Wakes() []ids.ID { return Wakes(t.Mentions) }

// Wakes lists the principals among mentions that are meant to notice.
func Wakes(mentions []Mention) []ids.ID {
	var out []ids.ID
	for _, m := range mentions {
		if m.Wakes() {
			out = append(out, m.ID)
		}
	}
	return out
}

// Target is a principal that may be named.
type Target struct {
	ID    ids.ID
	Label string
}

// Known is what could be found out about the names in a document.
type Known struct {
	Handles    map[string]Target
	Principals map[ids.ID]Target
	// Channels are those the author may read, by lower-cased name.
	Channels map[string]ids.ID
	// Broadcast says that the author may call many people at once; otherwise Refusal is the
	// code of the warning.
	Broadcast bool
	Refusal   string
}

// Limits bound contents.
type Limits struct {
	MaxMentions int
	// PublicURL is the address of this instance, without a slash at its end; permalinks
	// begin with it. Empty means that no link is recognised as one.
	PublicURL string
}

// Canonicalise replaces every typed name that is known by its token, at its exact place, and
// changes nothing else. Doing it twice gives the same content.
func Canonicalise(d Document, k Known, l Limits) (Text, error) {
	c := canonicaliser{doc: d, known: k, labels: make([]string, len(d.Refs)), at: map[target]int{}}
	for i, r := range d.Refs {
		c.ref(i, r)
	}
	c.content.WriteString(d.Source[c.copied:])
	if n := len(c.text.Mentions); n > l.MaxMentions {
		return Text{}, errs.Invalid("/content", "too_many_mentions", fmt.Sprintf("A message may name %d targets, this one names %d.", l.MaxMentions, n))
	}
	for _, url := range d.URLs {
		c.permalink(url, l.PublicURL)
	}
	c.text.Content = c.content.String()
	c.text.Plain, c.text.Preview = c.plain(d.Plain), strings.TrimSpace(c.plain(d.Preview))
	c.text.HasBits = bits(d, c.text)
	return c.text, nil
}

func bits(d Document, t Text) int {
	n := 0
	if len(d.URLs) > 0 {
		n |= HasLink
	}
	if d.Code {
		n |= HasCode
	}
	if len(t.Mentions) > 0 {
		n |= HasMention
	}
	return n
}

type target struct {
	kind string
	id   ids.ID
}

type canonicaliser struct {
	doc     Document
	known   Known
	text    Text
	content strings.Builder
	copied  int
	// labels is what each reference is called in the plain text.
	labels []string
	at     map[target]int
}

func (c *canonicaliser) ref(i int, r Ref) {
	c.labels[i] = c.doc.Source[r.Start:r.End]
	switch r.Kind {
	case RefTyped:
		c.typed(i, r)
	case RefTypedChannel:
		c.typedChannel(r)
	case RefPrincipal:
		t, ok := c.known.Principals[r.ID]
		switch {
		case ok:
			c.labels[i] = "@" + t.Label
			c.mention(r, string(RefPrincipal), t)
		case !r.Quoted:
			c.warn(Warning{Code: WarnUnknown, Kind: string(RefPrincipal), Label: c.labels[i], ID: r.ID})
		}
	case RefHere, RefChannel, RefThread:
		c.labels[i] = "@" + string(r.Kind)
		c.broadcast(r, r.Kind)
	case RefGroup:
		if !r.Quoted {
			c.warn(Warning{Code: WarnGroup, Kind: string(RefGroup), Label: c.labels[i], ID: r.ID})
		}
	case RefChannelRef:
		c.text.Links.ChannelIDs = linked(c.text.Links.ChannelIDs, r.ID)
	}
}

// typed looks for the longest handle that exists.
func (c *canonicaliser) typed(i int, r Ref) {
	if r.Quoted {
		return
	}
	prefix := 1
	if r.Silent {
		prefix = 2
	}
	for _, h := range handles(r.Name) {
		end := r.Start + prefix + len(h)
		if kind, many := reserved[h]; many {
			if c.broadcast(r, kind) {
				c.replace(r.Start, end, "<@"+string(kind)+">")
			}
			c.tail(i, "@"+h, end, r.End)
			return
		}
		if t, ok := c.known.Handles[h]; ok {
			token := "<@" + t.ID.String() + ">"
			if r.Silent {
				token = "<@_" + t.ID.String() + ">"
			}
			c.replace(r.Start, end, token)
			c.tail(i, "@"+t.Label, end, r.End)
			c.mention(r, string(RefPrincipal), t)
			return
		}
	}
	c.warn(Warning{Code: WarnUnknown, Kind: string(RefPrincipal), Label: r.Name})
}

// typedChannel looks for the longest name of a channel that exists; without one the text
// stays, since # begins many other things. Its label is what was typed, so that nobody reads
// the name of a channel in a text who may not read the channel.
func (c *canonicaliser) typedChannel(r Ref) {
	if r.Quoted {
		return
	}
	for _, name := range handles(r.Name) {
		if id, ok := c.known.Channels[name]; ok {
			c.replace(r.Start, r.Start+1+len(name), "<#"+id.String()+">")
			c.text.Links.ChannelIDs = linked(c.text.Links.ChannelIDs, id)
			return
		}
	}
}

// tail keeps what stood behind the handle: the punctuation that was not part of it.
func (c *canonicaliser) tail(i int, label string, from, to int) {
	c.labels[i] = label + c.doc.Source[from:to]
}

func (c *canonicaliser) replace(start, end int, token string) {
	c.content.WriteString(c.doc.Source[c.copied:start])
	c.content.WriteString(token)
	c.copied = end
}

// broadcast reports whether the author may call many people.
func (c *canonicaliser) broadcast(r Ref, kind RefKind) bool {
	if r.Quoted {
		return false
	}
	if !c.known.Broadcast {
		c.warn(Warning{Code: c.known.Refusal, Kind: string(kind), Label: "@" + string(kind)})
		return false
	}
	c.mention(r, string(kind), Target{Label: string(kind)})
	return true
}

// mention notes a target once. Naming it aloud anywhere makes the mention loud.
func (c *canonicaliser) mention(r Ref, kind string, t Target) {
	if r.Quoted {
		return
	}
	key := target{kind, t.ID}
	if at, ok := c.at[key]; ok {
		m := &c.text.Mentions[at]
		m.Silent = m.Silent && r.Silent
		return
	}
	c.at[key] = len(c.text.Mentions)
	c.text.Mentions = append(c.text.Mentions, Mention{Kind: kind, ID: t.ID, Label: t.Label, Silent: r.Silent})
}

// warn notes a warning once.
func (c *canonicaliser) warn(w Warning) {
	for _, old := range c.text.Warnings {
		if old == w {
			return
		}
	}
	c.text.Warnings = append(c.text.Warnings, w)
}

func (c *canonicaliser) plain(pieces []Piece) string {
	if len(pieces) == 1 && pieces[0].Ref < 0 {
		return pieces[0].Text
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.Ref >= 0 {
			b.WriteString(c.labels[p.Ref])
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// permalink notes what a link of this instance points to: /c/{channel}, /t/{thread} or
// /t/{thread}/{message}.
func (c *canonicaliser) permalink(url, public string) {
	if public == "" {
		return
	}
	path, ok := strings.CutPrefix(url, public+"/")
	if !ok {
		return
	}
	parts := strings.Split(path, "/")
	if len(parts) < 2 {
		return
	}
	first, err := ids.Parse(parts[1])
	if err != nil {
		return
	}
	l := &c.text.Links
	switch {
	case parts[0] == "c" && len(parts) == 2:
		l.ChannelIDs = linked(l.ChannelIDs, first)
	case parts[0] == "t" && len(parts) == 2:
		l.ThreadIDs = linked(l.ThreadIDs, first)
	case parts[0] == "t" && len(parts) == 3:
		if message, err := ids.Parse(parts[2]); err == nil {
			l.MessageIDs = linked(l.MessageIDs, message)
		}
	}
}

func linked(list []ids.ID, id ids.ID) []ids.ID {
	for _, old := range list {
		if old == id {
			return list
		}
	}
	if len(list) == maxLinks {
		return list
	}
	return append(list, id)
}
