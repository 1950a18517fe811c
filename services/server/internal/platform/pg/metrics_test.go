// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// recordedMetrics keeps what it was told.
type recordedMetrics struct {
	mu       sync.Mutex
	outcomes []pg.Outcome
	reasons  []string
	flushed  int
}

func (m *recordedMetrics) UnitDone(_ context.Context, outcome pg.Outcome, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outcomes = append(m.outcomes, outcome)
}

func (m *recordedMetrics) UnitRepeated(_ context.Context, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reasons = append(m.reasons, reason)
}

func (m *recordedMetrics) FlushGroup(_ context.Context, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed += size
}

func (m *recordedMetrics) AcquireWait(context.Context, time.Duration) {}
func (m *recordedMetrics) FlushWait(context.Context, time.Duration)   {}
func (m *recordedMetrics) ListenReconnected(context.Context, string)  {}

func TestUnitsAreMeasured(t *testing.T) {
	t.Parallel()
	m := &recordedMetrics{}
	b := setup(t, pgtest.WithConfig(func(c *pg.Config) { c.Metrics = m }))
	units := b.units()
	stale := true
	for _, work := range []func(context.Context) error{
		func(ctx context.Context) error { return insert(ctx, "a") },
		func(context.Context) error { return errs.NotFound() },
		func(context.Context) error { return errors.New("fault") },
		func(context.Context) error {
			if stale {
				stale = false
				return txn.ErrRetry
			}
			return nil
		},
	} {
		_ = units.Do(context.Background(), work)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if want := []pg.Outcome{pg.OutcomeOK, pg.OutcomeVeto, pg.OutcomeFailed, pg.OutcomeOK}; !reflect.DeepEqual(m.outcomes, want) {
		t.Errorf("outcomes %v, want %v", m.outcomes, want)
	}
	if !reflect.DeepEqual(m.reasons, []string{"stale_rights"}) || m.flushed == 0 {
		t.Errorf("repetitions %v, %d commits flushed", m.reasons, m.flushed)
	}
}
