// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ViewSession is a session in which an owner looks at the instance as another person.
type ViewSession struct {
	SessionID ids.ID
	ExpiresAt time.Time
}

// ViewSessions begins such sessions. The module identity implements it, and ends them.
type ViewSessions interface {
	// BeginView starts a view of the acting session in the running unit; conflict
	// (already_viewing) when it has one.
	BeginView(ctx context.Context, person ids.ID, ttl time.Duration) (ViewSession, error)
	// ViewToken makes the access token of a view that has begun. It is for outside of units.
	ViewToken(ctx context.Context, session ids.ID) (string, error)
}
