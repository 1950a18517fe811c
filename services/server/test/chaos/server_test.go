// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/test/system"
)

// serverKilled ends the server as a power cut would, several times under load. What was acknowledged is there once, and
// listeners go on without a gap and without hearing anything twice. The embedded database dies with its supervisor or
// is taken over by the next one.
func serverKilled(t *testing.T, w *world) {
	s := w.begin(t)
	choose := w.random()
	var down []float64
	for range plan.kills {
		time.Sleep(plan.betweenKills + time.Duration(choose.IntN(400))*time.Millisecond) // the load works meanwhile
		w.server.Kill()
		began := time.Now()
		next, err := w.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.server = next
		down = append(down, time.Since(began).Seconds())
	}
	time.Sleep(plan.betweenKills / 2)
	s.end(t, "server_killed", map[string]any{"kills": plan.kills, "down_s": down})
}

// databaseKilled ends the database under a running server. Until it is back the server answers 503 and nothing else;
// then it goes on by itself.
func databaseKilled(t *testing.T, w *world) {
	s := w.begin(t)
	var away []float64
	for range plan.databaseKills {
		time.Sleep(500 * time.Millisecond) // the load works meanwhile
		pid, err := w.Postmaster()
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var refused atomic.Bool
		if !waitFor(patience, func() bool {
			err := w.team.People[0].Call(t.Context(), "GET", "/spaces", nil, nil)
			switch status := system.StatusOf(err); {
			case status == 503:
				refused.Store(true)
			case err != nil:
				t.Fatalf("with the database away: %v", err)
			}
			return refused.Load()
		}) {
			t.Fatal("the server never said that its database is away")
		}
		if !waitFor(recovery, func() bool {
			next, err := w.Postmaster()
			return err == nil && next != pid && w.team.People[0].Call(t.Context(), "GET", "/spaces", nil, nil) == nil && w.Ready(t.Context())
		}) {
			t.Fatal("the server did not recover")
		}
		away = append(away, time.Since(began).Seconds())
	}
	select {
	case <-w.server.Exited():
		t.Fatal("the server ended")
	default:
	}
	time.Sleep(500 * time.Millisecond)
	s.end(t, "database_killed", map[string]any{"kills": plan.databaseKills, "away_s": away})
	if s.answers[503] == 0 {
		t.Error("no writer was told 503")
	}
}
