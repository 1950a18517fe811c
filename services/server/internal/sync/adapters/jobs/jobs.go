// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the periodic work of the module sync.
package jobs

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
)

// PartitionArgs are the arguments of sync.partition_maintenance.
type PartitionArgs struct{}

// Kind implements jobs.Args.
func (PartitionArgs) Kind() string { return "sync.partition_maintenance" }

// CleanupArgs are the arguments of sync.idempotency_cleanup.
type CleanupArgs struct{}

// Kind implements jobs.Args.
func (CleanupArgs) Kind() string { return "sync.idempotency_cleanup" }

// Work is what the jobs call.
type Work struct {
	Clock       clock.Clock
	Maintenance *app.Maintenance
	Idempotency *app.Idempotency
}

// Register adds the jobs and their intervals.
func Register(r *jobs.Registry, w Work, partitions, cleanup time.Duration) {
	jobs.Register(r, jobs.QueueMaintenance, w.maintain)
	jobs.Register(r, jobs.QueueMaintenance, w.clean)
	r.Every(partitions, PartitionArgs{})
	r.Every(cleanup, CleanupArgs{})
}

func (w Work) maintain(ctx context.Context, _ PartitionArgs) error {
	return w.Maintenance.Run(ctx, w.Clock.Now())
}

func (w Work) clean(ctx context.Context, _ CleanupArgs) error {
	_, err := w.Idempotency.Cleanup(ctx, w.Clock.Now())
	return err
}
