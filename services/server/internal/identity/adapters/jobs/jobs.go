// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the periodic work of the module identity.
package jobs

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
)

// CleanupArgs are the arguments of identity.auth_cleanup.
type CleanupArgs struct{}

// Kind implements jobs.Args.
func (CleanupArgs) Kind() string { return "identity.auth_cleanup" }

type work struct{ service *app.Service }

// Register adds the job that removes expired logins and unused devices.
func Register(r *jobs.Registry, service *app.Service, every time.Duration) {
	jobs.Register(r, jobs.QueueMaintenance, work{service}.run)
	r.Every(every, CleanupArgs{})
}

func (w work) run(ctx context.Context, _ CleanupArgs) error { return w.service.Cleanup(ctx) }
