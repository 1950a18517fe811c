// SPDX-License-Identifier: Apache-2.0

//go:build perf

// Package startup measures how long a server takes until it can be used, and the memory it holds when nobody uses it.
package startup

import (
	"context"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/perf/internal/bench"
	"github.com/OWNER/bothy/services/server/perf/internal/load"
	"github.com/OWNER/bothy/services/server/perf/internal/report"
)

const (
	starts  = 7
	settled = 30 * time.Second
)

func TestStartAndIdle(t *testing.T) {
	b := bench.Install(t, "startup")
	b.Report.Load["starts"] = starts
	b.Report.Load["database"] = "up, in a process of its own"
	var ready, memory []float64
	for n := range starts {
		server, err := b.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ready = append(ready, load.Milliseconds(server.ReadyAfter))
		run := report.Run{Name: "start", Counts: map[string]any{"ready_ms": load.Milliseconds(server.ReadyAfter)}}
		if n < bench.Runs() {
			select {
			case <-time.After(settled):
			case <-server.Exited():
				t.Fatal(server.Log())
			}
			resident, err := server.Resident()
			if err != nil {
				t.Fatal(err)
			}
			memory = append(memory, float64(resident)/(1<<20))
			run.Counts["resident_mib"] = memory[len(memory)-1]
		}
		b.Report.Runs = append(b.Report.Runs, run)
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := server.Stop(stop); err != nil {
			t.Error(err)
		}
		cancel()
	}
	b.Report.Judge(report.StartupReady, ready, 0, true)
	b.Report.Judge(report.IdleMemory, memory, 0, true)
	b.Finish(t)
}
