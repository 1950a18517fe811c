// SPDX-License-Identifier: Apache-2.0

package pg_test

import (
	"context"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func TestIDsTravelAsTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	id, other := ids.New(), ids.New()
	var value, null ids.ID
	var pointer, none *ids.ID
	var list []ids.ID
	err := b.db.Pool.QueryRow(ctx, "SELECT $1::uuid, $2::uuid, NULL::uuid, $3::uuid, $4::uuid[]", id, &other, (*ids.ID)(nil), []ids.ID{id, other}).
		Scan(&value, &pointer, &null, &none, &list)
	if err != nil {
		t.Fatal(err)
	}
	if value != id || pointer == nil || *pointer != other || !null.IsZero() || none != nil || len(list) != 2 || list[0] != id || list[1] != other {
		t.Errorf("%v, %v, %v, %v, %v", value, pointer, null, none, list)
	}
	null, none = id, &id
	if err := b.db.Pool.QueryRow(ctx, "SELECT NULL::uuid, NULL::uuid").Scan(&null, &none); err != nil || !null.IsZero() || none != nil {
		t.Errorf("what was there before stays: %v, %v, %v", null, none, err)
	}
	var text string
	if err := b.db.Pool.QueryRow(ctx, "SELECT $1::uuid::text", &id).Scan(&text); err != nil || text != id.String() {
		t.Errorf("%s became %s, %v", id, text, err)
	}
}
