// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Listener receives notifications on a connection of its own.
type Listener struct {
	// AppName is the application name of the connection.
	AppName string
	// Channels are the names to listen on.
	Channels []string
	// Notify gets each notification. It must not block: it runs between two receives.
	Notify func(channel, payload string)
	// Connected runs after every successful LISTEN, with true from the second on: what was
	// sent meanwhile is lost, so the owner reads the state again. May be nil.
	Connected func(again bool)
}

// Listen runs l until ctx ends and returns the context's error. A lost connection is
// replaced, at once and then with growing pauses up to the configured cap.
func (db *DB) Listen(ctx context.Context, l Listener) error {
	const firstPause = 50 * time.Millisecond
	pause, again := firstPause, false
	for {
		listening, err := db.listenOnce(ctx, l, again)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if listening {
			db.cfg.Metrics.ListenReconnected(ctx, l.AppName)
			again, pause = true, firstPause
		}
		db.log.Warn("listen connection lost", "component", "pg.listener", "application", l.AppName, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, db.cfg.ListenBackoffCap)
	}
}

func (db *DB) listenOnce(ctx context.Context, l Listener, again bool) (listening bool, err error) {
	conn, err := db.connectDirect(ctx, l.AppName)
	if err != nil {
		return false, err
	}
	defer closeConn(conn)
	for _, channel := range l.Channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
			return false, fmt.Errorf("listen on %s: %w", channel, err)
		}
	}
	if l.Connected != nil {
		l.Connected(again)
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true, err
		}
		l.Notify(n.Channel, n.Payload)
	}
}
