// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Waker implements app.Waker with LISTEN on a connection of its own.
type Waker struct {
	db      *pg.DB
	appName string
}

// NewWaker makes a waker; appName names its connection in pg_stat_activity.
func NewWaker(db *pg.DB, appName string) *Waker { return &Waker{db: db, appName: appName} }

// Listen implements app.Waker. What was sent while the connection was away is lost, so
// every connect wakes as well.
func (w *Waker) Listen(ctx context.Context, wake func()) {
	_ = w.db.Listen(ctx, pg.Listener{
		AppName: w.appName, Channels: []string{"event_log"},
		Notify:    func(string, string) { wake() },
		Connected: func(bool) { wake() },
	})
}
