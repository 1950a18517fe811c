// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Message is something that stands in a thread. It keeps its number for ever; deleting takes
// the content alone.
type Message struct {
	ID          ids.ID
	ThreadID    ids.ID
	ChannelID   ids.ID
	SpaceID     ids.ID
	ThreadSeq   int64
	Kind        string
	AuthorKind  string
	AuthorID    ids.ID
	AuthorLabel string
	Content     string
	Plain       string
	HasBits     int
	Links       Links
	// Mentions are those of the present text, in the order of appearance.
	Mentions        []Mention
	ReplyTo         *Reply
	RunID           ids.ID
	StartedThreadID ids.ID
	TriggerState    string
	Triggers        []Trigger
	Notify          string
	ClientMsgID     ids.ID
	// ClientHash is empty for messages without a client key and for deleted ones.
	ClientHash   []byte
	Revision     int
	ReactionsRev int64
	Imported     bool
	EditedAt     *time.Time
	Deleted      *Deletion
	CreatedAt    time.Time
	Version      int64
}

// Reply is the message that a message answers.
type Reply struct {
	ID        ids.ID
	ThreadSeq int64
	AuthorID  ids.ID
	Deleted   bool
}

// Trigger is what became of a message for one agent.
type Trigger struct {
	AgentID ids.ID `json:"agent_id"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	RunID   ids.ID `json:"run_id,omitzero"`
}

// The ways a message is deleted.
const (
	DeletedByAuthor    = "author"
	DeletedByModerator = "moderator"
)

// Deletion is who took a message back, and how.
type Deletion struct {
	At     time.Time
	By     ids.ID
	Kind   string
	Reason string
}

// Countable reports whether the message can be unread.
func (m Message) Countable() bool {
	return m.Kind == "message" && m.Deleted == nil && !m.Imported
}

// Counts reports whether the message is part of the number of messages of its thread.
func (m Message) Counts() bool { return m.Kind == "message" && m.Deleted == nil }

// Edit gives the message another text. The caller keeps the old one as a revision.
func (m *Message) Edit(t Text, at time.Time) {
	m.Content, m.Plain, m.HasBits, m.Links, m.Mentions = t.Content, t.Plain, t.HasBits, t.Links, t.Mentions
	m.Revision++
	m.Version++
	m.EditedAt = &at
}

// Delete leaves the skeleton: place, number, author and times.
func (m *Message) Delete(d Deletion) {
	m.Content, m.Plain, m.HasBits, m.Links, m.Mentions = "", "", 0, Links{}, nil
	m.ReplyTo, m.ClientHash = nil, nil
	m.Deleted = &d
	m.Version++
}

// Added are the mentions of now that were never there before.
func Added(now, ever []Mention) []Mention {
	had := map[target]bool{}
	for _, m := range ever {
		had[target{m.Kind, m.ID}] = true
	}
	var out []Mention
	for _, m := range now {
		if !had[target{m.Kind, m.ID}] {
			out = append(out, m)
		}
	}
	return out
}

// Request is what makes two sends with one client key the same.
type Request struct {
	// PlaceID is the thread, or the channel of a new one.
	PlaceID         ids.ID
	ParentID        ids.ID
	Title           string
	Content         string
	ReplyToID       ids.ID
	Notify          string
	SuppressTrigger bool
}

// Hash is SHA-256 over the request; every part is preceded by its length.
func (r Request) Hash() []byte {
	h := sha256.New()
	part := func(b []byte) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	part(r.PlaceID[:])
	part(r.ParentID[:])
	part([]byte(r.Title))
	part([]byte(r.Content))
	part(r.ReplyToID[:])
	part([]byte(r.Notify))
	if r.SuppressTrigger {
		part([]byte{1})
	} else {
		part([]byte{0})
	}
	return h.Sum(nil)
}
