// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the periodic work of the module authz.
package jobs

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
)

// SweepArgs are the arguments of authz.expiry_sweep.
type SweepArgs struct{}

// Kind implements jobs.Args.
func (SweepArgs) Kind() string { return "authz.expiry_sweep" }

type work struct{ sweep *app.ExpirySweep }

// Register adds the job that removes grants that have expired and tells whom it concerns.
// Decisions never wait for it.
func Register(r *jobs.Registry, sweep *app.ExpirySweep, every time.Duration) {
	jobs.Register(r, jobs.QueueMaintenance, work{sweep}.run)
	r.Every(every, SweepArgs{})
}

func (w work) run(ctx context.Context, _ SweepArgs) error { return w.sweep.Run(ctx) }
