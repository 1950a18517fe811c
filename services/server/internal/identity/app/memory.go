// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	// memoryTTL is how long a verified API token is believed without a look.
	memoryTTL = 2 * time.Second
	// memoryHold is how long nothing about a principal is remembered after one of its
	// credentials was about to end: longer than any unit of work lasts, so that no state
	// from before the commit can be remembered behind it.
	memoryHold = time.Minute
	memoryMax  = 10_000
)

// Memory remembers verified API tokens for a moment, so that an agent that writes many
// times a second does not read its own token as often. The rule that keeps it honest:
//
//   - Sessions are never remembered; each request reads its session.
//   - An entry lives two seconds, and expiry and networks are checked at every use.
//   - Every unit that ends a credential or changes a principal forgets the principal
//     before its commit and keeps it from being remembered for a minute. In this process a
//     revocation therefore counts from its commit; on another node after two seconds at
//     most, far below the interval at which connections there are checked anew.
//   - Writes do not depend on it: inside a unit of work the credential is read again.
type Memory struct {
	clock clock.Clock

	mu      sync.Mutex
	entries map[[32]byte]memoryEntry
	held    map[ids.ID]time.Time
}

type memoryEntry struct {
	credential TokenCredential
	until      time.Time
}

// NewMemory makes an empty memory.
func NewMemory(clk clock.Clock) *Memory {
	return &Memory{clock: clk, entries: map[[32]byte]memoryEntry{}, held: map[ids.ID]time.Time{}}
}

func (m *Memory) get(hash [32]byte) (TokenCredential, bool) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[hash]
	if !ok || !now.Before(e.until) {
		return TokenCredential{}, false
	}
	return e.credential, true
}

// put remembers a credential that was read at the given moment.
func (m *Memory) put(hash [32]byte, c TokenCredential, readAt time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until, held := m.held[c.PrincipalID]; held && readAt.Before(until) {
		return
	}
	if len(m.entries) >= memoryMax {
		m.sweep(readAt)
	}
	m.entries[hash] = memoryEntry{credential: c, until: readAt.Add(memoryTTL)}
}

// sweep drops what is over, and everything when that is not enough.
func (m *Memory) sweep(now time.Time) {
	for hash, e := range m.entries {
		if !now.Before(e.until) {
			delete(m.entries, hash)
		}
	}
	if len(m.entries) >= memoryMax {
		clear(m.entries)
	}
}

// Forget drops what is known of a principal and remembers nothing new for a while. Call it
// inside the unit that changes the principal or ends a credential of it.
func (m *Memory) Forget(principal ids.ID) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for hash, e := range m.entries {
		if e.credential.PrincipalID == principal {
			delete(m.entries, hash)
		}
	}
	for id, until := range m.held {
		if !now.Before(until) {
			delete(m.held, id)
		}
	}
	m.held[principal] = now.Add(memoryHold)
}
