// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/OWNER/bothy/services/server/perf/internal/profile"
	"github.com/OWNER/bothy/services/server/perf/internal/report"
)

func TestAFigureIsJudgedByTheMedianOfItsRuns(t *testing.T) {
	for name, c := range map[string]struct {
		target  string
		figures []float64
		samples int64
		valid   bool
		want    report.Verdict
	}{
		"one bad run of three":       {report.MessageCreateP99, []float64{10, 90, 12}, 5000, true, report.Pass},
		"two bad runs of three":      {report.MessageCreateP99, []float64{10, 90, 26}, 5000, true, report.Fail},
		"exactly the limit":          {report.MessageCreateP99, []float64{25}, 5000, true, report.Pass},
		"a floor that is missed":     {report.MessagesClosed, []float64{999}, 0, true, report.Fail},
		"a floor that is held":       {report.MessagesClosed, []float64{1000}, 0, true, report.Pass},
		"too few values":             {report.FanoutP99, []float64{1}, 999, true, report.TooFew},
		"the generator was at fault": {report.FanoutP99, []float64{1}, 5000, false, report.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := report.New("x", profile.Profile{}, nil)
			if got := r.Judge(c.target, c.figures, c.samples, c.valid); got.Verdict != c.want {
				t.Errorf("%v, want %s", got, c.want)
			}
		})
	}
}

func TestAReportHoldsWhatAReaderNeeds(t *testing.T) {
	t.Setenv("BOTHY_PERF_OUT", t.TempDir())
	p, err := profile.Take(t.TempDir(), "18")
	if err != nil {
		t.Fatal(err)
	}
	if p.Cores < 1 || p.FsyncP50 < 0 || p.Loopback <= 0 || len(p.Hash()) != 8 {
		t.Errorf("%+v", p)
	}
	r := report.New("startup", p, []string{"log.level = warn"})
	r.Judge(report.StartupReady, []float64{400}, 0, true)
	name, err := r.Write()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var back report.Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != 1 || back.Test != "startup" || back.Checks[0].Verdict != report.Pass || back.Profile.Cores != p.Cores || back.Settings[0] != "log.level = warn" {
		t.Errorf("%s", text)
	}
}
