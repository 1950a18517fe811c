// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a database that keeps commits in memory until a flush and loses the rest in a
// crash, which also ends every connection.
type model struct {
	mu      sync.Mutex
	epoch   int // number of crashes
	lost    int // connections of the flusher that ended by themselves
	commits []int
	durable int
}

var errModelGone = errors.New("connection gone")

// commit adds a commit on a connection of an epoch.
func (m *model) commit(id, epoch int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch != m.epoch {
		return false
	}
	m.commits = append(m.commits, id)
	return true
}

func (m *model) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	m.commits = m.commits[:m.durable]
}

func (m *model) loseFlusher() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost++
}

func (m *model) now() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epoch
}

func (m *model) kept(id int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.commits, id)
}

func (m *model) connect(context.Context) (flushConn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &modelConn{m: m, epoch: m.epoch, lost: m.lost}, nil
}

// modelConn is a connection of the flusher.
type modelConn struct {
	m           *model
	epoch, lost int
}

func (c *modelConn) alive() error {
	if c.epoch != c.m.epoch || c.lost != c.m.lost {
		return errModelGone
	}
	return nil
}

// Flush implements flushConn.
func (c *modelConn) Flush(context.Context) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if err := c.alive(); err != nil {
		return err
	}
	c.m.durable = len(c.m.commits)
	return nil
}

// Ping implements flushConn.
func (c *modelConn) Ping(context.Context) error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.alive()
}

// Close implements flushConn.
func (c *modelConn) Close(context.Context) error { return nil }

// modelUnit is a unit between its first statement and its answer.
type modelUnit struct {
	id, epoch  int
	generation uint64
	committed  bool
}

func TestWhatTheBarrierConfirmsSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		m := &model{}
		f := newFlusher(m.connect, 5*time.Second, time.Millisecond, slog.New(slog.DiscardHandler))
		if err := f.start(ctx); err != nil {
			rt.Fatal(err)
		}
		defer f.close()
		var running, confirmed []*modelUnit
		next := 0
		take := func(want func(*modelUnit) bool) *modelUnit {
			i := slices.IndexFunc(running, want)
			if i < 0 {
				return nil
			}
			return running[i]
		}
		rt.Repeat(map[string]func(*rapid.T){
			"begin": func(rt *rapid.T) {
				if err := f.ready(ctx); err != nil { // As for a new connection of the pool.
					rt.Fatal(err)
				}
				next++
				running = append(running, &modelUnit{id: next, epoch: m.now(), generation: f.Generation()})
			},
			"commit": func(*rapid.T) {
				if u := take(func(u *modelUnit) bool { return !u.committed }); u != nil {
					u.committed = m.commit(u.id, u.epoch)
					if !u.committed {
						running = slices.DeleteFunc(running, func(o *modelUnit) bool { return o == u })
					}
				}
			},
			"wait": func(*rapid.T) {
				if u := take(func(u *modelUnit) bool { return u.committed }); u != nil {
					if f.Wait(ctx, u.generation) == nil {
						confirmed = append(confirmed, u)
					}
					running = slices.DeleteFunc(running, func(o *modelUnit) bool { return o == u })
				}
			},
			"crash":        func(*rapid.T) { m.crash() },
			"lose flusher": func(*rapid.T) { m.loseFlusher() },
			"": func(rt *rapid.T) {
				for _, u := range confirmed {
					if !m.kept(u.id) {
						rt.Fatalf("commit %d was confirmed and is gone", u.id)
					}
				}
			},
		})
	})
}
