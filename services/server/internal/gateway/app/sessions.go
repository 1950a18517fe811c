// SPDX-License-Identifier: Apache-2.0

package app

import (
	gosync "sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// session is what outlives a lost connection for a while: who it belongs to and what the
// client looked at. The log itself is the buffer of what it missed.
type session struct {
	id        ids.ID
	principal ids.ID
	device    ids.ID
	login     ids.ID
	token     ids.ID
	focus     focusState
	lostAt    time.Time
}

type focusState struct {
	ThreadIDs []ids.ID `json:"thread_ids"`
	ChannelID *ids.ID  `json:"channel_id"`
	Idle      bool     `json:"idle"`
}

// answer is the focus as resumed shows it: a list, even when it is empty.
func (f focusState) answer() focusState {
	if f.ThreadIDs == nil {
		f.ThreadIDs = []ids.ID{}
	}
	return f
}

// sessions remembers lost connections, the oldest going first when there are too many.
type sessions struct {
	window time.Duration
	max    int
	clock  clock.Clock

	mu    gosync.Mutex
	lost  map[ids.ID]session
	order []ids.ID
}

func newSessions(window time.Duration, limit int, clk clock.Clock) *sessions {
	return &sessions{window: window, max: limit, clock: clk, lost: map[ids.ID]session{}}
}

// keep remembers the session of a connection that has just been lost.
func (s *sessions) keep(one session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.lostAt = s.clock.Now()
	s.lost[one.id] = one
	s.order = append(s.order, one.id)
	s.prune()
}

// take hands a session out once, to its owner alone: whoever else names it leaves it there.
func (s *sessions) take(id ids.ID, owned func(session) bool) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune()
	one, ok := s.lost[id]
	if !ok || !owned(one) {
		return session{}, false
	}
	delete(s.lost, id)
	return one, true
}

// prune is called with the lock held. Every lost session stands in order once, so the work
// of a call is bounded by what has expired since the last.
func (s *sessions) prune() {
	oldest := s.clock.Now().Add(-s.window)
	for len(s.order) > 0 {
		one, ok := s.lost[s.order[0]]
		if ok && len(s.lost) <= s.max && one.lostAt.After(oldest) {
			return
		}
		if ok {
			delete(s.lost, one.id)
		}
		s.order = s.order[1:]
	}
}
