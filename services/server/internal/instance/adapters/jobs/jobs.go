// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the periodic work of the module instance.
package jobs

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
)

// rotationEvery is how often the age of the keys is looked at.
const rotationEvery = time.Hour

// RotationArgs are the arguments of instance.key_rotation.
type RotationArgs struct{}

// Kind implements jobs.Args.
func (RotationArgs) Kind() string { return "instance.key_rotation" }

type work struct{ service *app.Service }

// Register adds the job that prepares, activates and replaces signing keys. What it does is
// decided under a lock by the state of the keys, so a repetition does nothing.
func Register(r *jobs.Registry, service *app.Service) {
	jobs.Register(r, jobs.QueueMaintenance, work{service}.rotate)
	r.Every(rotationEvery, RotationArgs{})
}

func (w work) rotate(ctx context.Context, _ RotationArgs) error {
	return w.service.RotateKeys(actor.With(ctx, actor.System()))
}
