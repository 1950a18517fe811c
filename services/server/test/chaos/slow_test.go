// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/system"
)

const (
	tooSlow = 4014
	// smallBuffer makes a client that does not read felt at once.
	smallBuffer = 64 << 10
	// bystanderLimit is how late another socket may hear a message while somebody is slow.
	bystanderLimit = 2 * time.Second
)

// slowSocket lets a socket hang while messages stream. The server closes it with 4014; the others hear everything, and
// not later than without it.
func slowSocket(t *testing.T, w *world) {
	s := w.begin(t)
	slow := w.team.People[1].WithHTTP(&http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				err = tcp.SetReadBuffer(smallBuffer)
			}
			return conn, err
		},
	}})
	hanging, err := system.Dial(t.Context(), slow, system.SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	// Large messages beside the load fill the queue of the one that hangs.
	text := strings.Repeat("slow ", 6000)
	author := w.authors()[0]
	for range plan.slowMessages {
		if _, err := author.Send(t.Context(), w.team.Channels[0].ThreadID, system.NewID(), text); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, largest := 0, 0
	err = hanging.ReadRaw(ctx, func(text []byte, _ time.Time) { got += len(text); largest = max(largest, len(text)) })
	t.Logf("the socket that hung got %d bytes, %d at most in a frame", got, largest)
	if system.CloseCode(err) != tooSlow {
		t.Errorf("the socket that hung ended with %v", err)
	}
	s.end(t, "slow_socket", map[string]any{"large_messages": plan.slowMessages, "end": err.Error()})
	for name, latest := range s.latest {
		if latest > bystanderLimit {
			t.Errorf("%s heard a message after %v", name, latest)
		}
	}
}
