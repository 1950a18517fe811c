// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// The values of settings with a closed list.
const (
	BillingPersonal     = "personal"
	BillingOrganization = "organization"
	BillingLocal        = "local"

	ToolsChat      = "chat"
	ToolsSandboxed = "sandboxed"
	ToolsHost      = "host"

	UntrustedMark     = "mark"
	UntrustedWithhold = "withhold"
)

// Limits of an agent.
const (
	defaultConcurrent = 4
	maxConcurrent     = 64
	maxDescription    = 500
	maxModels         = 100
	maxModelName      = 128
)

// BillingModes lists who can pay.
func BillingModes() []string { return []string{BillingPersonal, BillingOrganization, BillingLocal} }

// ToolClasses lists what a runtime may touch, in ascending order.
func ToolClasses() []string { return []string{ToolsChat, ToolsSandboxed, ToolsHost} }

// ToolRank orders tool classes; -1 for a word that is none.
func ToolRank(class string) int { return slices.Index(ToolClasses(), class) }

// Agent is an agent as configured.
type Agent struct {
	ID          ids.ID
	Description string
	Billing
	ToolClass        string
	MaxConcurrent    int
	AllowedModels    []string
	UntrustedContext string
	// MaxTriggerAge is zero for the default of the installation.
	MaxTriggerAge time.Duration
	Version       int64
	CreatedAt     time.Time
	CreatedBy     ids.ID
	UpdatedAt     time.Time
}

// Settings are the part of an agent that an update may change; nil leaves a value.
type Settings struct {
	Description      *string
	MaxConcurrent    *int
	AllowedModels    *[]string
	UntrustedContext *string
	// MaxTriggerAgeMs is in milliseconds; a pointer to zero goes back to the default.
	MaxTriggerAgeMs *int64
}

// NewAgent makes an agent with the defaults of its tool class.
func NewAgent(id, createdBy ids.ID, billing Billing, toolClass string, s Settings, now time.Time) (Agent, error) {
	var faults errs.Validation
	billing.check(&faults)
	if ToolRank(toolClass) < 0 {
		faults.Addf("/tool_class", "invalid", "Expected one of %v.", ToolClasses())
	}
	a := Agent{
		ID: id, Billing: billing, ToolClass: toolClass, MaxConcurrent: defaultConcurrent, AllowedModels: []string{},
		UntrustedContext: UntrustedMark, Version: 1, CreatedAt: now, CreatedBy: createdBy, UpdatedAt: now,
	}
	if toolClass == ToolsHost {
		a.UntrustedContext = UntrustedWithhold
	}
	a.apply(s, &faults)
	return a, faults.Err()
}

// Configure changes settings and says which; none means that nothing was different.
func (a *Agent) Configure(s Settings, now time.Time) (changed []string, err error) {
	var faults errs.Validation
	before := *a
	a.apply(s, &faults)
	if err := faults.Err(); err != nil {
		*a = before
		return nil, err
	}
	for _, c := range []struct {
		name string
		is   bool
	}{
		{"description", a.Description != before.Description},
		{"max_concurrent_runs", a.MaxConcurrent != before.MaxConcurrent},
		{"allowed_models", !slices.Equal(a.AllowedModels, before.AllowedModels)},
		{"untrusted_context", a.UntrustedContext != before.UntrustedContext},
		{"max_trigger_age_ms", a.MaxTriggerAge != before.MaxTriggerAge},
	} {
		if c.is {
			changed = append(changed, c.name)
		}
	}
	if len(changed) > 0 {
		a.Changed(now)
	}
	return changed, nil
}

// Changed counts one change of the configuration.
func (a *Agent) Changed(now time.Time) { a.Version, a.UpdatedAt = a.Version+1, now }

func (a *Agent) apply(s Settings, faults *errs.Validation) {
	if s.Description != nil {
		if utf8.RuneCountInString(*s.Description) > maxDescription || textcheck.Body(*s.Description) != nil {
			faults.Addf("/description", "invalid", "At most %d characters without control characters.", maxDescription)
		}
		a.Description = *s.Description
	}
	if s.MaxConcurrent != nil {
		if *s.MaxConcurrent < 1 || *s.MaxConcurrent > maxConcurrent {
			faults.Addf("/max_concurrent_runs", "out_of_range", "Between 1 and %d.", maxConcurrent)
		}
		a.MaxConcurrent = *s.MaxConcurrent
	}
	if s.AllowedModels != nil {
		if len(*s.AllowedModels) > maxModels {
			faults.Addf("/allowed_models", "too_long", "At most %d models.", maxModels)
		}
		for _, m := range *s.AllowedModels {
			if m == "" || utf8.RuneCountInString(m) > maxModelName || textcheck.Name(m) != nil {
				faults.Addf("/allowed_models", "invalid", "A model has a name of 1 to %d characters.", maxModelName)
			}
		}
		a.AllowedModels = slices.Clone(*s.AllowedModels)
	}
	if s.UntrustedContext != nil {
		if *s.UntrustedContext != UntrustedMark && *s.UntrustedContext != UntrustedWithhold {
			faults.Add("/untrusted_context", "invalid", "Expected mark or withhold.")
		}
		a.UntrustedContext = *s.UntrustedContext
	}
	if s.MaxTriggerAgeMs != nil {
		const most = int64(30 * 24 * time.Hour / time.Millisecond)
		if *s.MaxTriggerAgeMs < 0 || *s.MaxTriggerAgeMs > most {
			faults.Addf("/max_trigger_age_ms", "out_of_range", "Between 1 and %d.", most)
			return
		}
		a.MaxTriggerAge = time.Duration(*s.MaxTriggerAgeMs) * time.Millisecond
	}
}
