// SPDX-License-Identifier: Apache-2.0

// Package jobs puts the late ends of runs into the queue and works them off.
package jobs

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	queue "github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
)

// CancelTimeout ends a run whose agent did not stop in time.
type CancelTimeout struct{ RunID ids.ID }

// Kind implements queue.Args.
func (CancelTimeout) Kind() string { return "runs.cancel_timeout" }

// QueuedExpiry ends a run that no agent took up.
type QueuedExpiry struct{ RunID ids.ID }

// Kind implements queue.Args.
func (QueuedExpiry) Kind() string { return "runs.queued_expiry" }

// StallCheck looks at every run under way.
type StallCheck struct{}

// Kind implements queue.Args.
func (StallCheck) Kind() string { return "runs.stall_check" }

// Insert adds a job to the running unit of work: the method InsertTx of the runtime. It is a
// function, because the runtime is made from a registry that holds these handlers already.
type Insert func(ctx context.Context, args queue.Args, o queue.InsertOptions) error

// CancelTimeout implements app.Jobs.
func (i Insert) CancelTimeout(ctx context.Context, run ids.ID, at time.Time) error {
	return i(ctx, CancelTimeout{RunID: run}, queue.InsertOptions{ScheduledAt: at})
}

// QueuedExpiry implements app.Jobs.
func (i Insert) QueuedExpiry(ctx context.Context, run ids.ID, at time.Time) error {
	return i(ctx, QueuedExpiry{RunID: run}, queue.InsertOptions{ScheduledAt: at})
}

// Register adds the handlers. Stalls are checked at the interval, the value of
// agent.presence_timeout.
func Register(r *queue.Registry, s *app.Service, interval time.Duration) {
	h := &handlers{service: s}
	queue.Register(r, queue.QueueMaintenance, h.cancelTimeout)
	queue.Register(r, queue.QueueDefault, h.queuedExpiry)
	queue.Register(r, queue.QueueMaintenance, h.stallCheck)
	r.Every(interval, StallCheck{})
}

type handlers struct{ service *app.Service }

func (h *handlers) cancelTimeout(ctx context.Context, a CancelTimeout) error {
	return h.service.TimeOutCancel(ctx, a.RunID)
}

func (h *handlers) queuedExpiry(ctx context.Context, a QueuedExpiry) error {
	return h.service.ExpireQueued(ctx, a.RunID)
}

func (h *handlers) stallCheck(ctx context.Context, _ StallCheck) error {
	return h.service.CheckStalls(ctx)
}
