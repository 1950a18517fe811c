// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps what a load did and what came of it, and finds contradictions afterwards: a message that was
// acknowledged and is gone, one that exists twice, one that nobody sent, an order that differs between places, a socket
// that missed something or heard it twice.
//
// A send ends in one of three ways. Acknowledged: the answer came, so the message exists exactly once, for ever. Refused:
// the server said no, so it must not exist. Unknown: the answer was lost, so it exists once or not at all; the writer
// may send it again under the same client ID until it is one of the other two.
package ledger

import (
	"fmt"
	"slices"
	"sync"
)

// Outcome is how a send ended.
type Outcome string

// The outcomes of a send.
const (
	Unknown      Outcome = "unknown"
	Acknowledged Outcome = "acknowledged"
	Refused      Outcome = "refused"
)

// Entry is one message that a writer meant to write.
type Entry struct {
	ClientID string  `json:"client_id"`
	Thread   string  `json:"thread"`
	Content  string  `json:"content"`
	Outcome  Outcome `json:"outcome"`
	// MessageID and ThreadSeq stand in the acknowledgement.
	MessageID string `json:"message_id,omitempty"`
	ThreadSeq int64  `json:"thread_seq,omitempty"`
	// Sends counts how often it was sent under the same client ID.
	Sends int `json:"sends"`
}

// Stored is a message that a reader found afterwards.
type Stored struct {
	MessageID, ClientID, Content string
	ThreadSeq                    int64
}

// Heard is an event that a socket handled.
type Heard struct {
	Seq      int64
	ClientID string
}

// Ledger is safe for concurrent use.
type Ledger struct {
	mu      sync.Mutex
	entries map[string]*Entry
	heard   map[string][]Heard
	// from is the sequence behind which a listener has to hear everything.
	from map[string]bool
}

// New gives an empty ledger.
func New() *Ledger {
	return &Ledger{entries: map[string]*Entry{}, heard: map[string][]Heard{}, from: map[string]bool{}}
}

// Intend writes down a message before it is sent for the first time.
func (l *Ledger) Intend(clientID, thread, content string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[clientID] = &Entry{ClientID: clientID, Thread: thread, Content: content, Outcome: Unknown}
}

// Sent counts a try.
func (l *Ledger) Sent(clientID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[clientID].Sends++
}

// Acknowledge writes down the answer. A second answer to the same message must name the same message.
func (l *Ledger) Acknowledge(clientID, messageID string, threadSeq int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[clientID]
	if e.Outcome == Acknowledged && (e.MessageID != messageID || e.ThreadSeq != threadSeq) {
		return fmt.Errorf("message %s was acknowledged as %s at %d and then as %s at %d", clientID, e.MessageID, e.ThreadSeq, messageID, threadSeq)
	}
	e.Outcome, e.MessageID, e.ThreadSeq = Acknowledged, messageID, threadSeq
	return nil
}

// Refuse writes down that the server said no.
func (l *Ledger) Refuse(clientID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[clientID].Outcome = Refused
}

// Listen names a listener that is connected before the first message is sent.
func (l *Ledger) Listen(listener string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from[listener] = true
}

// Hear writes down an event of a message.
func (l *Ledger) Hear(listener string, h Heard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[listener] = append(l.heard[listener], h)
}

// HeardBy counts the messages a listener has heard.
func (l *Ledger) HeardBy(listener string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.heard[listener])
}

// Counts says how many sends ended how.
func (l *Ledger) Counts() map[Outcome]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[Outcome]int{}
	for _, e := range l.entries {
		out[e.Outcome]++
	}
	return out
}

// Entries gives a copy of all entries in the order of the client IDs, which are ordered by time.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Entry, 0, len(l.entries))
	for _, e := range l.entries {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return compare(a.ClientID, b.ClientID) })
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// maxFindings bounds a report; the first contradictions say what went wrong.
const maxFindings = 50

// findings collects contradictions.
type findings struct{ list []string }

func (f *findings) add(format string, args ...any) {
	if len(f.list) < maxFindings {
		f.list = append(f.list, fmt.Sprintf(format, args...))
	}
}

// Check compares the ledger with what readers found in each thread. It gives every contradiction, up to a bound.
func (l *Ledger) Check(threads map[string][]Stored) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &findings{}
	stored := map[string]Stored{}
	for thread, list := range threads {
		l.checkThread(f, thread, list, stored)
	}
	for id, e := range l.entries {
		s, exists := stored[id]
		switch {
		case e.Outcome == Acknowledged && !exists:
			f.add("acknowledged message %s (%s) is gone", id, e.MessageID)
		case e.Outcome == Acknowledged && (s.MessageID != e.MessageID || s.ThreadSeq != e.ThreadSeq):
			f.add("message %s was acknowledged as %s at %d and is %s at %d", id, e.MessageID, e.ThreadSeq, s.MessageID, s.ThreadSeq)
		case e.Outcome == Refused && exists:
			f.add("refused message %s exists", id)
		case exists && s.Content != e.Content:
			f.add("message %s has another text than was sent", id)
		}
	}
	for listener := range l.from {
		l.checkListener(f, listener, stored)
	}
	return f.list
}

func (l *Ledger) checkThread(f *findings, thread string, list []Stored, stored map[string]Stored) {
	last := int64(0)
	for _, s := range list {
		if s.ThreadSeq <= last {
			f.add("thread %s: %d stands behind %d", thread, s.ThreadSeq, last)
		}
		last = s.ThreadSeq
		if _, twice := stored[s.ClientID]; twice {
			f.add("message %s exists twice", s.ClientID)
		}
		stored[s.ClientID] = s
		if e := l.entries[s.ClientID]; e == nil {
			f.add("message %s exists and nobody sent it", s.MessageID)
		} else if e.Thread != thread {
			f.add("message %s stands in another thread", s.ClientID)
		}
	}
}

// checkListener holds that a listener heard every stored message once, in one order.
func (l *Ledger) checkListener(f *findings, listener string, stored map[string]Stored) {
	heard := map[string]bool{}
	last := int64(0)
	for _, h := range l.heard[listener] {
		if h.Seq <= last {
			f.add("%s heard %d behind %d", listener, h.Seq, last)
		}
		last = h.Seq
		if heard[h.ClientID] {
			f.add("%s heard message %s twice", listener, h.ClientID)
		}
		heard[h.ClientID] = true
		if _, exists := stored[h.ClientID]; !exists {
			f.add("%s heard message %s, which does not exist", listener, h.ClientID)
		}
	}
	for id := range stored {
		if !heard[id] {
			f.add("%s did not hear message %s", listener, id)
		}
	}
}
