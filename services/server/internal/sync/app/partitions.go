// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// PartitionConfig is how the log is kept.
type PartitionConfig struct {
	Retention time.Duration `key:"sync.event_retention" default:"336h" min:"24h" max:"8760h" doc:"How long events can be caught up."`
	Size      int64         `key:"sync.event_log_partition_size" default:"1000000" min:"10000" max:"100000000" doc:"Positions of one partition."`
	Ahead     int           `key:"sync.event_log_partitions_ahead" default:"3" min:"2" max:"100" doc:"Partitions that are ready ahead of the head."`
	Interval  time.Duration `key:"sync.partition_maintenance_interval" default:"10m" min:"1m" max:"1h" doc:"How often partitions are made and removed."`
}

// Partitions makes and removes the partitions of the log.
type Partitions interface {
	CreatePartitions(ctx context.Context, ahead int, size int64) (int, error)
	DetachExpired(ctx context.Context, before time.Time) (int, error)
	DropDetached(ctx context.Context) (int, error)
	// Trim deletes old rows from the oldest on, never the head.
	Trim(ctx context.Context, before time.Time, limit int) (int64, error)
}

// Maintenance is the work of the job sync.partition_maintenance.
type Maintenance struct {
	config     PartitionConfig
	units      txn.UnitOfWork
	partitions Partitions
}

// NewMaintenance makes it.
func NewMaintenance(config PartitionConfig, units txn.UnitOfWork, partitions Partitions) *Maintenance {
	return &Maintenance{config: config, units: units, partitions: partitions}
}

// trimBatch keeps one deletion far below the statement timeout.
const trimBatch = 5000

// Run makes partitions ahead of the head, detaches and drops those that are older than the
// retention, and trims old rows from the partitions that stay. Each step is a unit of its
// own and looks at the present state, so a repetition finds nothing to do.
func (m *Maintenance) Run(ctx context.Context, now time.Time) error {
	before := now.Add(-m.config.Retention)
	steps := []struct {
		what string
		do   func(ctx context.Context) error
	}{
		{"create partitions", func(ctx context.Context) error {
			_, err := m.partitions.CreatePartitions(ctx, m.config.Ahead, m.config.Size)
			return err
		}},
		{"detach expired partitions", func(ctx context.Context) error {
			_, err := m.partitions.DetachExpired(ctx, before)
			return err
		}},
		{"drop detached partitions", func(ctx context.Context) error {
			_, err := m.partitions.DropDetached(ctx)
			return err
		}},
	}
	for _, step := range steps {
		if err := m.units.Do(ctx, step.do); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return m.trim(ctx, before)
}

func (m *Maintenance) trim(ctx context.Context, before time.Time) error {
	for {
		var n int64
		err := m.units.Do(ctx, func(ctx context.Context) (err error) {
			n, err = m.partitions.Trim(ctx, before, trimBatch)
			return err
		})
		if err != nil {
			return fmt.Errorf("trim the log: %w", err)
		}
		if n < trimBatch {
			return nil
		}
	}
}
