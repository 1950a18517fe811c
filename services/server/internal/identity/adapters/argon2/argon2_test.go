// SPDX-License-Identifier: Apache-2.0

package argon2

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// floor is the cheapest allowed configuration.
var floor = Config{MemoryKiB: 19456, Iterations: 2, Parallelism: 1, MaxConcurrent: 1}

func newHasher(t testing.TB, cfg Config, clk clock.Clock) *Hasher {
	t.Helper()
	h, err := New(cfg, clk)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHashAndVerify(t *testing.T) {
	ctx := context.Background()
	h := newHasher(t, floor, clock.System{})
	hash, err := h.Hash(ctx, "correct horse battery")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("Hash = %q, %v", hash, err)
	}
	for name, c := range map[string]struct {
		hash, password string
		fits           bool
	}{
		"right password":  {hash, "correct horse battery", true},
		"wrong password":  {hash, "correct horse batterz", false},
		"absent password": {"", "correct horse battery", false},
	} {
		fits, weak, err := h.Verify(ctx, c.hash, c.password)
		if err != nil || fits != c.fits || weak {
			t.Errorf("%s: fits %v, weak %v, %v", name, fits, weak, err)
		}
	}
}

func TestWeakHashIsRecognised(t *testing.T) {
	ctx := context.Background()
	hash, err := newHasher(t, floor, clock.System{}).Hash(ctx, "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	stronger := floor
	stronger.Iterations = 3
	fits, weak, err := newHasher(t, stronger, clock.System{}).Verify(ctx, hash, "correct horse battery")
	if err != nil || !fits || !weak {
		t.Fatalf("fits %v, weak %v, %v", fits, weak, err)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHasher(t, floor, clk)
	leave, err := h.enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		_, err := h.Hash(context.Background(), "x")
		refused <- err
	}()
	clk.WaitForTimers(1)
	clk.Advance(maxWait)
	if err := <-refused; !errs.Is(err, errs.CodeUnavailable) {
		t.Fatalf("a wait of five seconds gives %v", err)
	}
	leave()
	if _, err := h.Hash(context.Background(), "x"); err != nil {
		t.Fatalf("a freed place is not given away: %v", err)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	clk := clocktest.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	h := newHasher(t, floor, clk)
	leave, err := h.enter(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(context.Background())
	done := make(chan error, maxQueue)
	for range maxQueue {
		go func() {
			_, err := h.Hash(ctx, "x")
			done <- err
		}()
	}
	clk.WaitForTimers(maxQueue)
	if _, err := h.Hash(context.Background(), "x"); !errs.Is(err, errs.CodeUnavailable) {
		t.Errorf("one more than the queue holds: %v", err)
	}
	giveUp()
	for range maxQueue {
		if err := <-done; !errs.Is(err, errs.CodeUnavailable) {
			t.Errorf("who gave up: %v", err)
		}
	}
	leave()
	if len(h.running) != 0 || len(h.waiting) != 0 {
		t.Errorf("%d still run and %d still wait", len(h.running), len(h.waiting))
	}
}

func TestConfigFloor(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"memory": func(c *Config) { c.MemoryKiB = 19455 }, "iterations": func(c *Config) { c.Iterations = 1 },
		"parallelism": func(c *Config) { c.Parallelism = 0 }, "concurrency": func(c *Config) { c.MaxConcurrent = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("too little %s is accepted", name)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$a2V5a2V5a2V5a2V5a2V5aw")
	f.Add("$argon2id$v=19$m=99999999999,t=2,p=1$$")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(text)
		if err == nil && (p.memory > 1<<20 || p.iterations > 100 || len(p.key) == 0) {
			t.Fatalf("unbounded cost from %q", text)
		}
	})
}
