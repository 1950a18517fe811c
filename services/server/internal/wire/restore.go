// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// manifest is what the final backup of a move says about the database it was taken from.
type manifest struct {
	HeadSeq   int64  `json:"head_seq"`
	AuditSeq  int64  `json:"audit_seq"`
	SyncEpoch ids.ID `json:"sync_epoch"`
}

// RestoreFinalize ends a restore. Clients and consumers begin anew at the head under a new
// epoch, because positions they have seen may have been given to something else; with the
// manifest of a final backup it is proven instead that nothing differs, and they go on. It
// refuses while a server is connected. A copied folder keeps the identity of its database, so
// an equal identity is no reason to change nothing (ADR 0018).
func RestoreFinalize(ctx context.Context, from Sources, console Console, manifestFile string) error {
	var want *manifest
	if manifestFile != "" {
		raw, err := readFile(manifestFile)
		if err != nil {
			return fmt.Errorf("read the manifest: %w", err)
		}
		want = &manifest{}
		if err := json.Unmarshal(raw, want); err != nil {
			return errors.New("the manifest is not what a final backup writes")
		}
	}
	return withStore(ctx, from, console, func(ctx context.Context, r *commandRun) error {
		owner, err := r.store.ownerDSN()
		if err != nil {
			return err
		}
		if err := refuseWhileServing(ctx, owner); err != nil {
			return err
		}
		c := r.config.PG
		c.DSN, c.AppName, c.MaxConns = owner, "bothy-restore", 4
		if r.db, err = pg.Open(ctx, c, r.log); err != nil {
			return err
		}
		defer r.db.Close()
		if err := r.build(ctx); err != nil {
			return err
		}
		return r.finalize(system(ctx), console, want)
	})
}

// refuseWhileServing fails when a server is connected: it would go on with positions and
// caches of the database as it was.
func refuseWhileServing(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var sessions int
	err = conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1 AND datname = current_database()", pg.RoleApp).Scan(&sessions)
	if err != nil {
		return fmt.Errorf("look for running servers: %w", err)
	}
	if sessions > 0 {
		return fmt.Errorf("%d sessions of a server are connected; stop it first", sessions)
	}
	return nil
}

func (r *commandRun) finalize(ctx context.Context, console Console, want *manifest) error {
	id, err := pg.ReadIdentity(ctx, r.db.Querier(ctx))
	if err != nil {
		return err
	}
	outcome := ""
	err = r.units.Do(ctx, func(ctx context.Context) error {
		info, err := r.instance.service.Info(ctx)
		if err != nil {
			return err
		}
		if want == nil {
			return r.beginAnew(ctx, id, info.SyncEpoch, &outcome)
		}
		outcome = "relocated"
		if err := r.compare(ctx, *want, info.SyncEpoch); err != nil {
			return err
		}
		return r.instance.service.StoreIdentity(ctx, fmt.Sprint(id.SystemIdentifier), int64(id.Timeline), false)
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(console.Out, outcome)
	return nil
}

// beginAnew gives the log a new epoch, moves every durable reader to the head and writes it
// down, in the running unit.
func (r *commandRun) beginAnew(ctx context.Context, id pg.Identity, old ids.ID, outcome *string) error {
	_, head, err := r.sync.events.Bounds(ctx)
	if err != nil {
		return err
	}
	if err := r.instance.service.StoreIdentity(ctx, fmt.Sprint(id.SystemIdentifier), int64(id.Timeline), true); err != nil {
		return err
	}
	if err := r.agents.consumers.MoveAll(ctx, head); err != nil {
		return err
	}
	info, err := r.instance.service.Info(ctx)
	if err != nil {
		return err
	}
	*outcome = info.SyncEpoch.String()
	return r.audit.recorder.Allowed(ctx, auditing.Entry{
		Action: "instance.restore_finalize", ResourceKind: "instance", ResourceID: info.ID,
		Details: map[string]any{"old_epoch": old, "new_epoch": info.SyncEpoch, "head_seq": head},
	})
}

// compare names the first value in which the database differs from the manifest.
func (r *commandRun) compare(ctx context.Context, want manifest, epoch ids.ID) error {
	_, head, err := r.sync.events.Bounds(ctx)
	if err != nil {
		return err
	}
	auditSeq, err := r.instance.service.Current(ctx, "audit_seq")
	if err != nil {
		return err
	}
	switch {
	case head != want.HeadSeq:
		return fmt.Errorf("head_seq is %d, the manifest says %d", head, want.HeadSeq)
	case auditSeq != want.AuditSeq:
		return fmt.Errorf("audit_seq is %d, the manifest says %d", auditSeq, want.AuditSeq)
	case epoch != want.SyncEpoch:
		return fmt.Errorf("sync_epoch is %s, the manifest says %s", epoch, want.SyncEpoch)
	default:
		return nil
	}
}
