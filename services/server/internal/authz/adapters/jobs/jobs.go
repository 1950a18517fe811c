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

// ReminderArgs are the arguments of authz.expiry_reminder.
type ReminderArgs struct{}

// Kind implements jobs.Args.
func (ReminderArgs) Kind() string { return "authz.expiry_reminder" }

type work struct{ service *app.Service }

// Register adds the jobs that remind of what will end, and that remove what has ended and
// tell whom it concerns. Decisions never wait for them.
func Register(r *jobs.Registry, service *app.Service, every time.Duration) {
	w := work{service}
	jobs.Register(r, jobs.QueueMaintenance, w.sweep)
	jobs.Register(r, jobs.QueueMaintenance, w.remind)
	r.Every(every, SweepArgs{})
	r.Every(every, ReminderArgs{})
}

func (w work) sweep(ctx context.Context, _ SweepArgs) error { return w.service.ExpirySweep().Run(ctx) }

func (w work) remind(ctx context.Context, _ ReminderArgs) error { return w.service.RemindExpiry(ctx) }
