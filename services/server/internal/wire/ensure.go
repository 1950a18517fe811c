// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

	instancepg "github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	syncpg "github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres"
	syncapp "github.com/OWNER/bothy/services/server/internal/sync/app"
	"github.com/OWNER/bothy/services/server/migrations"
)

// ensureInstance makes what the schema alone does not hold: the partitions ahead of the head
// and the row of the installation, with the identity of its database. It needs two modules
// only, because the others cannot be built before the row exists.
func (r *commandRun) ensureInstance(ctx context.Context, id pg.Identity) error {
	registry := txn.NewRegistry()
	registry.Seal()
	units := pg.NewUnits(r.db, registry, r.clock, pg.UnitConfig{})
	maintenance := syncapp.NewMaintenance(r.config.Sync.Partitions, units, syncpg.NewEvents(r.db))
	if err := maintenance.Run(ctx, r.clock.Now()); err != nil {
		return err
	}
	service := instanceapp.New(r.config.Modules.Instance, instanceapp.Deps{
		Store: instancepg.New(r.db), Units: units, Clock: r.clock, Log: r.log,
	})
	_, _, err := service.EnsureInstance(ctx, instanceapp.EnsureInput{
		SchemaVersion: newestMigration(migrations.Files), MinServerVersion: minServerVersion,
		DBSystemIdentifier: fmt.Sprint(id.SystemIdentifier), DBTimelineID: int64(id.Timeline),
	})
	return err
}
