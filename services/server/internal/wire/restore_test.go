// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// A restored database gets a new epoch and its readers the head; a moved one, whose
// manifest agrees, keeps both. What does not agree changes nothing.
func TestARestoreIsFinalized(t *testing.T) {
	db := pgtest.New(t, pgtest.AsApp())
	c := testConfig(t, db)
	c.PG.DSN = c.Database.OwnerDSN // The command works as the role that owns the schema.
	agent := ids.New()
	db.Exec(t, "UPDATE sequence_counters SET value = 40 WHERE name = 'event_seq'")
	db.Exec(t, "ALTER TABLE agent_consumer_cursors DROP CONSTRAINT agent_consumer_cursors_agent_id_fkey")
	db.Exec(t, "INSERT INTO agent_consumer_cursors (agent_id, acked_seq, updated_at) VALUES ($1, 7, now())", agent)
	finalize := func(want *manifest) (string, error) {
		var out bytes.Buffer
		err := withConfig(t.Context(), c, Console{Out: io.Discard, Err: io.Discard}, func(ctx context.Context, r *commandRun) (err error) {
			if r.db, err = pg.Open(ctx, c.PG, r.log); err != nil {
				return err
			}
			defer r.db.Close()
			if err := r.build(ctx); err != nil {
				return err
			}
			return r.finalize(system(ctx), Console{Out: &out, Err: io.Discard}, want)
		})
		return strings.TrimSpace(out.String()), err
	}
	epoch := func() (e ids.ID) {
		t.Helper()
		if err := db.Pool.QueryRow(t.Context(), "SELECT sync_epoch FROM instance").Scan(&e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	acked := func() int64 { return db.Count(t, "SELECT acked_seq FROM agent_consumer_cursors") }
	elsewhere := func() { db.Exec(t, "UPDATE instance SET db_system_identifier = '1'") }

	first := epoch()
	if out, err := finalize(nil); err != nil || out != epoch().String() || epoch() == first {
		t.Fatalf("a copy that kept its identity: %q, %v", out, err)
	}
	db.Exec(t, "UPDATE agent_consumer_cursors SET acked_seq = 7")
	before, head, audited := epoch(), int64(40), db.Count(t, "SELECT value FROM sequence_counters WHERE name = 'audit_seq'")
	elsewhere()
	for field, wrong := range map[string]manifest{
		"head_seq":   {HeadSeq: head + 1, AuditSeq: audited, SyncEpoch: before},
		"audit_seq":  {HeadSeq: head, AuditSeq: audited + 1, SyncEpoch: before},
		"sync_epoch": {HeadSeq: head, AuditSeq: audited, SyncEpoch: agent},
	} {
		if _, err := finalize(&wrong); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("another %s: %v", field, err)
		}
	}
	if db.Count(t, "SELECT count(*) FROM instance WHERE db_system_identifier = '1'") != 1 {
		t.Fatal("a refused manifest changed the identity")
	}
	if out, err := finalize(&manifest{HeadSeq: head, AuditSeq: audited, SyncEpoch: before}); err != nil || out != "relocated" {
		t.Fatalf("an agreeing manifest: %q, %v", out, err)
	}
	if epoch() != before || acked() != 7 {
		t.Errorf("a move changed the epoch or a place: %v, %d", epoch(), acked())
	}
	elsewhere()
	out, err := finalize(nil)
	if err != nil || out != epoch().String() || epoch() == before || acked() != head {
		t.Errorf("a restore: %q, %v, epoch %v, place %d", out, err, epoch(), acked())
	}
	if n := db.Count(t, "SELECT count(*) FROM audit_events WHERE action = 'instance.restore_finalize'"); n != 2 {
		t.Errorf("%d rows in the record", n)
	}
}
