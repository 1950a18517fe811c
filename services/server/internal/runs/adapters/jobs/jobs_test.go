// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	queue "github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/runs/adapters/jobs"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
)

func TestTheJobsAreKnownToTheirQueues(t *testing.T) {
	r := queue.NewRegistry()
	jobs.Register(r, app.New(app.Deps{}), time.Minute)
	want := map[string]queue.Queue{
		"runs.cancel_timeout": queue.QueueMaintenance, "runs.queued_expiry": queue.QueueDefault, "runs.stall_check": queue.QueueMaintenance,
	}
	if got := r.Kinds(); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestAJobIsPutOffToItsTime(t *testing.T) {
	run, at := ids.New(), time.Date(2026, 11, 30, 9, 0, 30, 0, time.UTC)
	var got []queue.Args
	insert := jobs.Insert(func(_ context.Context, args queue.Args, o queue.InsertOptions) error {
		if !o.ScheduledAt.Equal(at) {
			t.Errorf("%s at %s", args.Kind(), o.ScheduledAt)
		}
		got = append(got, args)
		return nil
	})
	if err := insert.CancelTimeout(t.Context(), run, at); err != nil {
		t.Fatal(err)
	}
	if err := insert.QueuedExpiry(t.Context(), run, at); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != (jobs.CancelTimeout{RunID: run}) || got[1] != (jobs.QueuedExpiry{RunID: run}) {
		t.Errorf("%+v", got)
	}
}
