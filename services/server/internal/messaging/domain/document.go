// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Dialect is the version of the Markdown dialect that contents are written in.
const Dialect = 1

// What a content has, as bits.
const (
	HasLink    = 1
	HasCode    = 2
	HasMention = 4
)

// RefKind is what a place in a content refers to.
type RefKind string

// The kinds of references. Typed and TypedChannel are names as a person writes them, with @
// and #; the others stand in the canonical text already. Group and ChannelRef name a group
// and a channel by ID.
const (
	RefTyped        RefKind = "typed"
	RefTypedChannel RefKind = "typed_channel"
	RefPrincipal    RefKind = "principal"
	RefGroup        RefKind = "group"
	RefHere         RefKind = "here"
	RefChannel      RefKind = "channel"
	RefThread       RefKind = "thread"
	RefChannelRef   RefKind = "channel_ref"
)

// Ref is a place in a content that refers to somebody or something.
type Ref struct {
	Kind RefKind
	// Start and End bound it in the source, in bytes.
	Start, End int
	// Name is what was typed, for typed kinds: the longest run that could be a handle.
	Name string
	// ID is set for principals, groups and channels.
	ID     ids.ID
	Silent bool
	// Quoted references are shown and do nothing.
	Quoted bool
}

// Piece is a part of the plain text: a text, or the label of a reference.
type Piece struct {
	Text string
	// Ref is the index of a reference, or -1.
	Ref int
}

// Document is what a parser found in a content. Refs are in the order of the source.
type Document struct {
	// Source is the content with line breaks as LF alone.
	Source string
	Refs   []Ref
	Plain  []Piece
	// Preview is the plain text without quotes, with code blocks and spoilers hidden.
	Preview []Piece
	// URLs are the targets of links.
	URLs []string
	Code bool
}

// Parser reads contents. The syntax and its limits are its own.
type Parser interface {
	// Parse fails with validation_failed at /content: invalid characters, empty, too_deep.
	// It takes time linear in the length of the content.
	Parse(content string) (Document, error)
	// Cut shortens a text to a number of grapheme clusters.
	Cut(text string, clusters int) string
}

// reserved names mean many people at once.
var reserved = map[string]RefKind{
	"here": RefHere, "channel": RefChannel, "everyone": RefChannel, "all": RefChannel, "thread": RefThread,
}

// maxHandle is longer than any handle, in bytes.
const maxHandle = 64

// handles lists what a typed name may mean, the longest first: the whole name, then without
// punctuation at its end.
func handles(name string) []string {
	var out []string
	for name != "" {
		if len(name) <= maxHandle {
			out = append(out, strings.ToLower(name))
		}
		last := name[len(name)-1]
		if last != '.' && last != '_' && last != '-' {
			break
		}
		name = name[:len(name)-1]
	}
	return out
}

// Handles lists the handles to look up, without duplicates.
func (d Document) Handles() []string { return d.typed(RefTyped, reserved) }

// ChannelNames lists the names of channels to look up, without duplicates.
func (d Document) ChannelNames() []string { return d.typed(RefTypedChannel, nil) }

func (d Document) typed(kind RefKind, except map[string]RefKind) []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range d.Refs {
		if r.Kind != kind || r.Quoted {
			continue
		}
		for _, h := range handles(r.Name) {
			if _, many := except[h]; !many && !seen[h] {
				seen[h] = true
				out = append(out, h)
			}
		}
	}
	return out
}

// Principals lists the principals that stand in the content by ID, without duplicates.
func (d Document) Principals() []ids.ID {
	var out []ids.ID
	seen := map[ids.ID]bool{}
	for _, r := range d.Refs {
		if r.Kind == RefPrincipal && !seen[r.ID] {
			seen[r.ID] = true
			out = append(out, r.ID)
		}
	}
	return out
}

// Broadcasts reports whether the content would call many people at once.
func (d Document) Broadcasts() bool {
	for _, r := range d.Refs {
		if r.Quoted {
			continue
		}
		switch r.Kind {
		case RefHere, RefChannel, RefThread:
			return true
		case RefTyped:
			for _, h := range handles(r.Name) {
				if _, many := reserved[h]; many {
					return true
				}
			}
		}
	}
	return false
}
