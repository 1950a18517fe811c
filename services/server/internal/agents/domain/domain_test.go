// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

const full = `{"state":"degraded","billing_mode":"organization","tool_class":"chat","billing_modes_supported":["organization","local"],
 "billing_evidence":{"key_type":"api_key","method":"env_var"},"runtime_version":"2.1.0",
 "project_readiness":[{"channel_id":"0199c2a0-000b-7000-8000-00000000000b","ready":false,"detail_code":"no_clone"}],
 "details":{"capabilities":{"followups":"steer","components":true},"active_runs":["0199c2a0-000e-7000-8000-00000000000e"],
  "degraded_reasons":["invocation_token_rejected"],"adapter":{"name":"bothy-agent","version":"1.0.0"},"runtime":{"name":"echo"},"protocol_version":1}}`

func TestAReportIsReadWhole(t *testing.T) {
	r, err := domain.DecodeReport(json.RawMessage(full))
	if err != nil {
		t.Fatal(err)
	}
	if r.State != domain.StateDegraded || r.Details.Capabilities.Followups != "steer" || len(r.Details.ActiveRuns) != 1 || r.Evidence.Method != "env_var" {
		t.Errorf("%+v", r)
	}
	if r, err = domain.DecodeReport(json.RawMessage(`{"state":"online"}`)); err != nil || r.Details.ActiveRuns != nil {
		t.Errorf("%+v, %v: what is not reported must differ from an empty list", r, err)
	}
}

func TestAReportIsClosedAtEveryDepth(t *testing.T) {
	for body, pointer := range map[string]string{
		`[]`:                                  "",
		`{}`:                                  "/state",
		`{"state":null}`:                      "/state",
		`{"state":"online","state":"online"}`: "/state",
		`{"state":"offline"}`:                 "/state",
		`{"state":"online","api_key":"sk-1"}`: "/api_key",
		`{"state":"online","rate_limit":{}}`:  "/rate_limit",
		`{"state":"online","billing_evidence":{"key_type":"none","method":"config","key":"sk-1"}}`:       "/billing_evidence/key",
		`{"state":"online","billing_evidence":{"key_type":"none"}}`:                                      "/billing_evidence/method",
		`{"state":"online","details":{"capabilities":{"x":true}}}`:                                       "/details/capabilities/x",
		`{"state":"online","details":{"adapter":{"name":"Bothy Agent","version":"1"}}}`:                  "/details/adapter/name",
		`{"state":"online","details":{"protocol_version":2}}`:                                            "/details/protocol_version",
		`{"state":"online","details":{"degraded_reasons":["a","a"]}}`:                                    "/details/degraded_reasons/1",
		`{"state":"online","details":{"active_runs":["0199C2A0-000e-7000-8000-00000000000e"]}}`:          "/details/active_runs/0",
		`{"state":"online","project_readiness":[{"channel_id":"x","ready":true}]}`:                       "/project_readiness/0/channel_id",
		`{"state":"online","project_readiness":[{"channel_id":"0199c2a0-000b-7000-8000-00000000000b"}]}`: "/project_readiness/0/ready",
		`{"state":"online"}{}`: "",
	} {
		_, err := domain.DecodeReport(json.RawMessage(body))
		var e *errs.Error
		if !errors.As(err, &e) || e.Code != errs.CodeValidationFailed || len(e.Fields) == 0 || e.Fields[0].Pointer != pointer {
			t.Errorf("%s: %v %+v", body, err, e)
		}
	}
}

func FuzzDecodeReport(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"state":"online","details":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := domain.DecodeReport(raw)
		if err != nil {
			if !errs.Is(err, errs.CodeValidationFailed) {
				t.Fatalf("%v", err)
			}
			return
		}
		if !r.State.Live() {
			t.Fatalf("accepted the state %q", r.State)
		}
	})
}

func TestAPersonsPlanHasAHolderAndNoOtherHas(t *testing.T) {
	ana := ids.New()
	for name, c := range map[string]struct {
		domain.Billing
		fits bool
	}{
		"own plan":             {domain.Billing{BillingMode: domain.BillingPersonal, HolderID: ana}, true},
		"own plan of nobody":   {domain.Billing{BillingMode: domain.BillingPersonal}, false},
		"key":                  {domain.Billing{BillingMode: domain.BillingOrganization}, true},
		"key with a holder":    {domain.Billing{BillingMode: domain.BillingOrganization, HolderID: ana}, false},
		"hardware":             {domain.Billing{BillingMode: domain.BillingLocal}, true},
		"something else":       {domain.Billing{BillingMode: "gift"}, false},
		"nothing":              {domain.Billing{}, false},
		"hardware of a holder": {domain.Billing{BillingMode: domain.BillingLocal, HolderID: ana}, false},
	} {
		_, err := domain.NewAgent(ids.New(), ids.New(), c.Billing, domain.ToolsChat, domain.Settings{}, time.Now())
		if (err == nil) != c.fits || err != nil && !errs.Is(err, errs.CodeValidationFailed) {
			t.Errorf("%s: made with %v", name, err)
		}
		a := domain.Agent{Billing: domain.Billing{BillingMode: domain.BillingLocal}, Version: 1}
		changed, err := a.Bill(c.Billing, time.Now())
		if (err == nil) != c.fits || changed != (a.Version == 2) || changed != (c.fits && c.Billing.BillingMode != domain.BillingLocal) {
			t.Errorf("%s: changed %v to version %d, %v", name, changed, a.Version, err)
		}
	}
}

func TestOnlyAPersonsPlanIsHandedOver(t *testing.T) {
	ana, ben := ids.New(), ids.New()
	a := domain.Agent{Billing: domain.Billing{BillingMode: domain.BillingPersonal, HolderID: ana}, Version: 1}
	if changed, err := a.HandOver(ben, time.Now()); err != nil || !changed || a.HolderID != ben || a.Version != 2 {
		t.Errorf("%+v, %v, %v", a, changed, err)
	}
	if changed, err := a.HandOver(ben, time.Now()); err != nil || changed {
		t.Errorf("%v, %v", changed, err)
	}
	a = domain.Agent{Billing: domain.Billing{BillingMode: domain.BillingLocal}}
	if _, err := a.HandOver(ben, time.Now()); errs.As(err).Reason != domain.ReasonNotPersonal {
		t.Errorf("%v", err)
	}
}

func TestAnAgentBeginsWithTheDefaultsOfItsTools(t *testing.T) {
	a, err := domain.NewAgent(ids.New(), ids.New(), domain.Billing{BillingMode: domain.BillingLocal}, domain.ToolsHost, domain.Settings{}, time.Now())
	if err != nil || a.UntrustedContext != domain.UntrustedWithhold || a.MaxConcurrent != 4 {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestOnlyWhatDiffersIsAChange(t *testing.T) {
	a, err := domain.NewAgent(ids.New(), ids.New(), domain.Billing{BillingMode: domain.BillingLocal}, domain.ToolsChat, domain.Settings{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	four, five, tooMany := 4, 5, 65
	if changed, err := a.Configure(domain.Settings{MaxConcurrent: &four}, time.Now()); err != nil || len(changed) != 0 || a.Version != 1 {
		t.Errorf("%v, %v, version %d", changed, err, a.Version)
	}
	if changed, err := a.Configure(domain.Settings{MaxConcurrent: &five}, time.Now()); err != nil || len(changed) != 1 || a.Version != 2 {
		t.Errorf("%v, %v, version %d", changed, err, a.Version)
	}
	if _, err := a.Configure(domain.Settings{MaxConcurrent: &tooMany}, time.Now()); err == nil || a.MaxConcurrent != 5 {
		t.Errorf("%v, %d", err, a.MaxConcurrent)
	}
}

// The published pair follows the state exactly: nothing is told twice and nothing is missed.
func TestPresenceIsToldExactlyWhenItDiffers(t *testing.T) {
	times := domain.PresenceTimes{Timeout: 90 * time.Second, PersistInterval: 30 * time.Second}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
		var (
			p        domain.Presence
			told     []string
			last     time.Time
			everHere bool
		)
		t.Repeat(map[string]func(*rapid.T){
			"report": func(t *rapid.T) {
				r := domain.Report{
					State:       rapid.SampledFrom([]domain.State{domain.StateOnline, domain.StateDegraded}).Draw(t, "state"),
					BillingMode: rapid.SampledFrom([]string{"", "local", "organization"}).Draw(t, "mode"),
				}
				takeover := !everHere || !p.State.Live()
				fed := p.Feed(r, now, time.Time{}, times)
				next := string(r.State) + r.BillingMode
				if want := takeover || next != told[len(told)-1]; fed.Publish != want || fed.Persist != takeover {
					t.Fatalf("%+v for %s after %v", fed, next, told)
				}
				if fed.Publish {
					told = append(told, next)
				}
				last, everHere = now, true
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * time.Second)
			},
			"look": func(t *rapid.T) {
				due := everHere && p.State.Live() && now.Sub(last) >= times.Timeout
				if p.Due(now) != due {
					t.Fatalf("due %v, want %v", p.Due(now), due)
				}
				if due {
					if !p.GoOffline() || p.GoOffline() {
						t.Fatal("offline is told once")
					}
					told = append(told, "offline"+p.Report.BillingMode)
				}
			},
		})
	})
}
