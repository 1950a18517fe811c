// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the periodic work of the module audit.
package jobs

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
)

// VerifyArgs are the arguments of audit.chain_verify.
type VerifyArgs struct{}

// Kind implements jobs.Args.
func (VerifyArgs) Kind() string { return "audit.chain_verify" }

type work struct{ verify *app.ChainVerify }

// Register adds the job that verifies what is new in the record and then signs it.
func Register(r *jobs.Registry, verify *app.ChainVerify, every time.Duration) {
	jobs.Register(r, jobs.QueueMaintenance, work{verify}.run)
	r.Every(every, VerifyArgs{})
}

func (w work) run(ctx context.Context, _ VerifyArgs) error { return w.verify.Run(ctx) }
