// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

func TestSmoke(t *testing.T) {
	db := pgtest.New(t, pgtest.WithMigrations())
	db.Exec(t, "CREATE TABLE things (id uuid PRIMARY KEY, peer uuid, many uuid[] NOT NULL DEFAULT '{}')")
	units := db.Units(txn.NewRegistry())
	ctx, meter := pg.WithMeter(context.Background())
	id, other := ids.New(), ids.New()
	err := units.Do(ctx, func(ctx context.Context) error {
		if _, err := pg.Queued(ctx).Exec(ctx, "INSERT INTO things (id, peer, many) VALUES ($1, $2, $3)", id, other.Ptr(), []ids.ID{id, other}); err != nil {
			return err
		}
		var got ids.ID
		var peer *ids.ID
		var many []ids.ID
		if err := db.Querier(ctx).QueryRow(ctx, "SELECT id, peer, many FROM things WHERE id = ANY($1)", []ids.ID{id}).Scan(&got, &peer, &many); err != nil {
			return err
		}
		if got != id || *peer != other || len(many) != 2 || many[1] != other {
			t.Errorf("read %v %v %v", got, peer, many)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := meter.Total(); got != (pg.Counters{Statements: 4, RoundTrips: 2}) {
		t.Errorf("counters %+v", got)
	}
}
