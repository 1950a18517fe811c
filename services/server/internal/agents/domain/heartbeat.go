// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Limits of a report.
const (
	maxReportBytes = 64 << 10
	maxActiveRuns  = 1000
	maxReadiness   = 1000
	maxReasons     = 32
	protocol       = 1
)

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)
	versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]*$`)
	codeForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9_.:-]*$`)
)

// Report is what an adapter says of itself, all of it a claim. Empty and nil mean that the
// adapter does not report it.
type Report struct {
	State          State
	BillingMode    string
	ToolClass      string
	Modes          []string
	Evidence       *Evidence
	RuntimeVersion string
	Details        Details
}

// Evidence says how an adapter found out who pays.
type Evidence struct {
	KeyType string `json:"key_type"`
	Method  string `json:"method"`
}

// Details is the part of a report that is stored as one document.
type Details struct {
	Capabilities    *Capabilities `json:"capabilities,omitempty"`
	ActiveRuns      []ids.ID      `json:"active_runs,omitzero"`
	DegradedReasons []string      `json:"degraded_reasons,omitzero"`
	Adapter         *NameVersion  `json:"adapter,omitempty"`
	Runtime         string        `json:"runtime,omitempty"`
}

// Capabilities are what the adapter can do.
type Capabilities struct {
	// Followups is queue or steer.
	Followups  string `json:"followups"`
	Components bool   `json:"components"`
	VoiceInput bool   `json:"voice_input"`
	Title      bool   `json:"title"`
	FilesOut   bool   `json:"files_out"`
}

// NameVersion names a program.
type NameVersion struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// SameReported reports whether who pays and what may be touched are claimed alike.
func (r Report) SameReported(o Report) bool {
	return r.BillingMode == o.BillingMode && r.ToolClass == o.ToolClass
}

// DecodeReport reads the body of a heartbeat. The schema is closed at every depth, because a
// free member would be the place where a key of a provider ends up by accident.
func DecodeReport(raw json.RawMessage) (Report, error) {
	var r Report
	if len(raw) > maxReportBytes {
		return r, errs.Invalid("", "too_long", fmt.Sprintf("A report has at most %d bytes.", maxReportBytes))
	}
	var faults errs.Validation
	o, ok := readObject(raw, "", &faults)
	if !ok {
		return r, faults.Err()
	}
	r.State = State(o.required("state", oneOf(string(StateOnline), string(StateDegraded))))
	r.BillingMode = o.text("billing_mode", oneOf(BillingModes()...))
	r.ToolClass = o.text("tool_class", oneOf(ToolClasses()...))
	r.Modes = o.texts("billing_modes_supported", len(BillingModes()), oneOf(BillingModes()...))
	r.RuntimeVersion = o.text("runtime_version", form(versionForm, 64))
	if raw, ok := o.take("billing_evidence"); ok {
		if e, ok := readObject(raw, "/billing_evidence", &faults); ok {
			r.Evidence = &Evidence{KeyType: e.required("key_type", form(codeForm, 64)), Method: e.required("method", form(codeForm, 64))}
			e.done()
		}
	}
	if raw, ok := o.take("project_readiness"); ok {
		checkReadiness(raw, &faults)
	}
	if _, ok := o.take("rate_limit"); ok {
		faults.Add("/rate_limit", "not_enabled", "This installation does not take it yet.")
	}
	if raw, ok := o.take("details"); ok {
		if d, ok := readObject(raw, "/details", &faults); ok {
			r.Details = readDetails(d, &faults)
		}
	}
	o.done()
	return r, faults.Err()
}

func readDetails(o object, faults *errs.Validation) Details {
	d := Details{DegradedReasons: o.texts("degraded_reasons", maxReasons, form(codeForm, 64))}
	if raw, ok := o.take("capabilities"); ok {
		if c, ok := readObject(raw, "/details/capabilities", faults); ok {
			d.Capabilities = &Capabilities{Followups: c.text("followups", oneOf("queue", "steer"))}
			if d.Capabilities.Followups == "" {
				d.Capabilities.Followups = "queue"
			}
			d.Capabilities.Components, d.Capabilities.VoiceInput = c.boolean("components"), c.boolean("voice_input")
			d.Capabilities.Title, d.Capabilities.FilesOut = c.boolean("title"), c.boolean("files_out")
			c.done()
		}
	}
	if list := o.texts("active_runs", maxActiveRuns, isID); list != nil {
		d.ActiveRuns = make([]ids.ID, 0, len(list))
		for _, s := range list {
			if id, err := ids.Parse(s); err == nil {
				d.ActiveRuns = append(d.ActiveRuns, id)
			}
		}
	}
	if raw, ok := o.take("adapter"); ok {
		if a, ok := readObject(raw, "/details/adapter", faults); ok {
			d.Adapter = &NameVersion{Name: a.required("name", form(nameForm, 64)), Version: a.required("version", form(versionForm, 64))}
			a.done()
		}
	}
	if raw, ok := o.take("runtime"); ok {
		if a, ok := readObject(raw, "/details/runtime", faults); ok {
			d.Runtime = a.required("name", form(nameForm, 64))
			a.done()
		}
	}
	if raw, ok := o.take("protocol_version"); ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("1")) {
		faults.Addf("/details/protocol_version", "invalid", "The protocol has version %d.", protocol)
	}
	o.done()
	return d
}

// checkReadiness holds the list to its form. Projects come later, so nothing is kept of it.
func checkReadiness(raw json.RawMessage, faults *errs.Validation) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || list == nil || len(list) > maxReadiness {
		faults.Addf("/project_readiness", "type", "Expected a list of at most %d items.", maxReadiness)
		return
	}
	for i, item := range list {
		if o, ok := readObject(item, fmt.Sprintf("/project_readiness/%d", i), faults); ok {
			o.required("channel_id", isID)
			if _, present := o.members["ready"]; !present {
				faults.Add(o.pointer+"/ready", "required", "The member is required.")
			}
			o.boolean("ready")
			o.text("detail_code", form(codeForm, 64))
			o.done()
		}
	}
}

func oneOf(values ...string) func(string) string {
	return func(s string) string {
		if slices.Contains(values, s) {
			return ""
		}
		return fmt.Sprintf("Expected one of %v.", values)
	}
}

func form(pattern *regexp.Regexp, limit int) func(string) string {
	return func(s string) string {
		if len(s) <= limit && pattern.MatchString(s) {
			return ""
		}
		return fmt.Sprintf("Expected at most %d characters of the form %s.", limit, pattern)
	}
}

func isID(s string) string {
	if _, err := ids.Parse(s); err != nil {
		return "Expected a UUID in lower case."
	}
	return ""
}
