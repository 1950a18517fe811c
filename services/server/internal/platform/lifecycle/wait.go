// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
)

const (
	firstWait = 200 * time.Millisecond
	maxWait   = 5 * time.Second
)

// WaitFor calls probe until it succeeds, pausing longer each time, for at most limit. The
// error names the dependency and wraps the last failure.
func WaitFor(ctx context.Context, clk clock.Clock, limit time.Duration, name string, probe func(ctx context.Context) error) error {
	end, pause := clk.Now().Add(limit), firstWait
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("wait for %s: %w", name, ctx.Err())
		}
		left := end.Sub(clk.Now())
		if left <= 0 {
			return fmt.Errorf("wait for %s: not reachable within %s: %w", name, limit, err)
		}
		timer := clk.NewTimer(min(pause, left))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("wait for %s: %w", name, ctx.Err())
		}
		pause = min(2*pause, maxWait)
	}
}

// Notify tells the service manager a state, such as READY=1. Without one it does nothing;
// a manager that does not listen must not stop the server.
func Notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte(state))
}
