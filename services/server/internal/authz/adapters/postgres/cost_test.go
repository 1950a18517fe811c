// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// warm gives a context of a request whose decisions find everything in memory.
func (b *bundle) warm() (context.Context, authorize.Resource) {
	b.t.Helper()
	b.give(b.ana, b.space, "space", "write")
	if err := b.svc.LoadStructure(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	if err := b.svc.Fill(context.Background(), b.ana); err != nil {
		b.t.Fatal(err)
	}
	b.observe(b.svc)
	return app.WithRequest(b.as(b.ana)), authorize.Thread(ids.New(), b.open)
}

func TestADecisionFromMemoryAllocatesNothing(t *testing.T) {
	b := setup(t)
	ctx, r := b.warm()
	if n := testing.AllocsPerRun(1000, func() {
		if err := b.svc.Authorize(ctx, authorize.ActionMessageCreate, r); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a request allocates %v times", n)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if b.svc.Admit(b.ana, authorize.ActionMessageRead, r, 1) != authorize.Admitted {
			t.Fatal("denied")
		}
	}); n != 0 {
		t.Errorf("a delivery allocates %v times", n)
	}
}

// grown is an instance in which somebody holds a thousand grants, half of them by groups, on
// five hundred channels that do not inherit.
func grown(t testing.TB) *bundle {
	b := setup(t)
	for range 500 {
		c := ids.New()
		b.places.channels = append(b.places.channels, authz.ChannelState{ID: c, SpaceID: b.space})
	}
	g := b.group("staff", "", b.ana)
	for _, c := range b.places.channels[2:] {
		b.db.Exec(t, `INSERT INTO grants (id, subject_kind, principal_id, target_kind, target_id, level, created_at)
			VALUES (gen_random_uuid(), 'principal', $1, 'channel', $2, 'write', now())`, b.ana, c.ID)
		b.db.Exec(t, `INSERT INTO grants (id, subject_kind, group_id, target_kind, target_id, level, created_at)
			VALUES (gen_random_uuid(), 'group', $1, 'channel', $2, 'trigger', now())`, g.ID, c.ID)
	}
	b.db.Exec(t, "ANALYZE grants")
	return b
}

// BenchmarkAuthorizeUncached is a decision of which nothing is in memory: not the rights of
// the principal, not the places.
func BenchmarkAuthorizeUncached(bench *testing.B) {
	b := grown(bench)
	ctx, r := b.as(b.ana), authorize.Thread(ids.New(), b.places.channels[400].ID)
	for bench.Loop() {
		bench.StopTimer()
		svc := b.newService()
		bench.StartTimer()
		if err := svc.Authorize(app.WithRequest(ctx), authorize.ActionMessageCreate, r); err != nil {
			bench.Fatal(err)
		}
	}
}

// The bound is that of the benchmark with room for a busy machine; what it catches is a cost
// that grows with the square of the grants.
func TestAnUncachedDecisionStaysCheap(t *testing.T) {
	b := grown(t)
	ctx, r := b.as(b.ana), authorize.Thread(ids.New(), b.places.channels[400].ID)
	best := time.Hour
	for range 20 {
		svc := b.newService()
		begin := time.Now()
		if err := svc.Authorize(app.WithRequest(ctx), authorize.ActionMessageCreate, r); err != nil {
			t.Fatal(err)
		}
		best = min(best, time.Since(begin))
	}
	if best > 20*time.Millisecond {
		t.Errorf("the fastest of twenty decisions took %s", best)
	}
}
