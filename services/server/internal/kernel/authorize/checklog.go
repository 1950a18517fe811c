// SPDX-License-Identifier: Apache-2.0

package authorize

import (
	"context"
	"sync"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Check is one decision that was made for a request.
type Check struct {
	Action   Action
	Resource Resource
	// Scoped marks the check of a list, which covers everything the list shows.
	Scoped  bool
	Allowed bool
}

// CheckLog notes the decisions of one request or one gateway op. The response writer
// refuses to send a success for whose action no check was made.
type CheckLog struct {
	mu     sync.Mutex
	checks []Check
	// first holds the checks of nearly every request, so that noting them allocates nothing.
	first  [2]Check
	proven bool
}

type checkLogKey struct{}

// WithCheckLog puts a new log into the context.
func WithCheckLog(ctx context.Context) (context.Context, *CheckLog) {
	l := &CheckLog{}
	l.checks = l.first[:0]
	return context.WithValue(ctx, checkLogKey{}, l), l
}

// Note adds a check to the log of the context; every Authorizer calls it once per decision.
func Note(ctx context.Context, c Check) {
	if l, ok := ctx.Value(checkLogKey{}).(*CheckLog); ok {
		l.mu.Lock()
		l.checks = append(l.checks, c)
		l.mu.Unlock()
	}
}

// Prove marks the request as proven without a check of its own: a stored answer is given
// again to the caller who received it before.
func Prove(ctx context.Context) {
	if l, ok := ctx.Value(checkLogKey{}).(*CheckLog); ok {
		l.mu.Lock()
		l.proven = true
		l.mu.Unlock()
	}
}

// Covers reports whether an allowed check of the action was made.
func (l *CheckLog) Covers(action Action) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proven {
		return true
	}
	for _, c := range l.checks {
		if c.Action == action && c.Allowed {
			return true
		}
	}
	return false
}

// Checks gives a copy of what was noted.
func (l *CheckLog) Checks() []Check {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Check(nil), l.checks...)
}

// Names reports whether the ID was among the resources of the checks, or the place of one.
func (l *CheckLog) Names(id ids.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.checks {
		r := c.Resource
		if r.ID == id || r.SpaceID == id || r.ChannelID == id || r.OwnerID == id {
			return true
		}
	}
	return false
}
