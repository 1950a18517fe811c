// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the periodic work of the module audit.
package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
)

// VerifyArgs are the arguments of audit.chain_verify.
type VerifyArgs struct{}

// Kind implements jobs.Args.
func (VerifyArgs) Kind() string { return "audit.chain_verify" }

// TrimArgs are the arguments of retention.audit.
type TrimArgs struct{}

// Kind implements jobs.Args.
func (TrimArgs) Kind() string { return "retention.audit" }

type work struct{ verify *app.ChainVerify }

// Register adds the job that verifies what is new in the record and then signs it.
func Register(r *jobs.Registry, verify *app.ChainVerify, every time.Duration) {
	jobs.Register(r, jobs.QueueMaintenance, work{verify}.run)
	r.Every(every, VerifyArgs{})
}

// run gives up at a break: it does not mend itself, and a record that does not fit together
// must not be signed.
func (w work) run(ctx context.Context, _ VerifyArgs) error {
	err := w.verify.Run(ctx)
	var broken *app.BrokenError
	if errors.As(err, &broken) {
		return jobs.Final(err)
	}
	return err
}

// RegisterTrim adds the job that removes old rows and destroys old keys of pseudonyms. What is
// gone does not come again, so a repetition finds nothing.
func RegisterTrim(r *jobs.Registry, trim *app.Trim, every time.Duration) {
	jobs.Register(r, jobs.QueueMaintenance, func(ctx context.Context, _ TrimArgs) error {
		return trim.Run(actor.With(ctx, actor.System()))
	})
	r.Every(every, TrimArgs{})
}
