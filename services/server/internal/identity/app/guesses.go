// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const (
	guessesAllowed = 10
	guessesPause   = 10 * time.Minute
	guessesMax     = 10_000
)

// guesses counts the wrong codes of people who are signed in. Ten within ten minutes stop a
// person from trying for ten more. The count lives in the process: with a code of 34 bits
// that lives for minutes, one count per node is as good as one for all.
type guesses struct {
	clock clock.Clock

	mu    sync.Mutex
	wrong map[ids.ID]tally
}

type tally struct {
	count int
	last  time.Time
}

func newGuesses(clk clock.Clock) *guesses {
	return &guesses{clock: clk, wrong: map[ids.ID]tally{}}
}

// allow refuses whoever has guessed too often.
func (g *guesses) allow(person ids.ID) error {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.wrong[person]
	if wait := guessesPause - now.Sub(t.last); t.count >= guessesAllowed && wait > 0 {
		return errs.New(errs.CodeRateLimited, "Too many wrong codes. Wait a while, then type the code anew.").WithRetryAfter(wait)
	}
	return nil
}

// count notes a wrong code.
func (g *guesses) count(person ids.ID) {
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.wrong[person]
	if now.Sub(t.last) >= guessesPause {
		t.count = 0
	}
	if len(g.wrong) >= guessesMax {
		for other, old := range g.wrong {
			if now.Sub(old.last) >= guessesPause {
				delete(g.wrong, other)
			}
		}
	}
	if len(g.wrong) < guessesMax {
		g.wrong[person] = tally{count: t.count + 1, last: now}
	}
}
