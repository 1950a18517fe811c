// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

func newRegistry() *txn.Registry { return txn.NewRegistry() }

func TestListenWakesAndReconnects(t *testing.T) {
	t.Parallel()
	b := setup(t)
	units := b.units()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	connected, notes := make(chan bool, 8), make(chan string, 8)
	done := make(chan error, 1)
	go func() {
		done <- b.db.Listen(ctx, pg.Listener{
			AppName: "bothy-listen-test", Channels: []string{"event_log", `odd "name`},
			Notify:    func(channel, payload string) { notes <- channel + "=" + payload },
			Connected: func(again bool) { connected <- again },
		})
	}()
	notify := func(channel, payload string) {
		t.Helper()
		err := units.Do(context.Background(), func(ctx context.Context) error {
			return pg.QueuedExec(ctx, "SELECT pg_notify($1, $2)", []any{channel, payload})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if again := <-connected; again {
		t.Error("the first connection counts as a further one")
	}
	notify("event_log", "7")
	notify(`odd "name`, "x")
	if got := <-notes; got != "event_log=7" {
		t.Errorf("got %s", got)
	}
	if got := <-notes; got != `odd "name=x` {
		t.Errorf("got %s", got)
	}
	terminate(t, b, "bothy-listen-test")
	if again := <-connected; !again {
		t.Error("the second connection is not reported as one")
	}
	notify("event_log", "8")
	if got := <-notes; got != "event_log=8" {
		t.Errorf("got %s", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
