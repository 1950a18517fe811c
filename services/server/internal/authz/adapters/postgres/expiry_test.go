// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestTheSweepTellsWhoseGrantsHaveEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	ended := b.give(b.ana, b.space, "space", "write")
	b.give(b.ben, b.space, "space", "read")
	b.db.Exec(t, "UPDATE grants SET expires_at = now() - interval '1 second' WHERE id = $1", ended.ID)
	before := len(b.log.all())
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := b.svc.ExpirySweep().Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	events := b.log.all()[before:]
	if len(events) != 2 || events[0].Type != app.EventAccessChanged || events[0].PrincipalID != b.ana || events[1].Type != app.EventGrantChanged {
		t.Fatalf("events %+v", events)
	}
	last := (*b.changes)[len(*b.changes)-1]
	if last.Action != authorize.ActionGrantExpire || len(last.Principals) != 1 || len(last.Principals[0].Lost) != 1 || last.Principals[0].Lost[0].ID != b.space {
		t.Errorf("published %+v", last)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM grants"); n != 1 {
		t.Errorf("%d grants are left", n)
	}
	// Sweeps that found nothing have changed no version.
	if v := b.db.Count(t, "SELECT value FROM sequence_counters WHERE name = 'permission_version'"); v != events[0].PermissionVersion {
		t.Errorf("version %d", v)
	}
	access, err := b.svc.AccessOf(b.as(b.ana), []ids.ID{b.space})
	if err != nil || len(access) != 0 {
		t.Errorf("access %+v, %v", access, err)
	}
}
