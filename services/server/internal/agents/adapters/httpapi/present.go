// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/agents/app"
	"github.com/OWNER/bothy/services/server/internal/agents/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Presenter implements app.Presenter with the types of the contract.
type Presenter struct{}

// Agent implements app.Presenter.
func (Presenter) Agent(v app.View, runtime bool) any { return toAgent(v, runtime) }

// Presence implements app.Presenter.
func (Presenter) Presence(agent ids.ID, state domain.State, reportedMode string) any {
	type payload struct {
		AgentID             ids.ID             `json:"agent_id"`
		State               rest.PresenceState `json:"state"`
		ReportedBillingMode rest.BillingMode   `json:"reported_billing_mode,omitempty"`
	}
	return payload{AgentID: agent, State: rest.PresenceState(state), ReportedBillingMode: rest.BillingMode(reportedMode)}
}

func toAgent(v app.View, runtime bool) rest.Agent {
	a := rest.Agent{
		PrincipalID: v.ID, Handle: v.Principal.Handle, DisplayName: v.Principal.DisplayName, Status: rest.PrincipalStatus(v.Principal.Status),
		Description: v.Description, BillingMode: rest.BillingMode(v.BillingMode), CredentialHolderID: v.HolderID.Ptr(),
		ToolClass: rest.ToolClass(v.ToolClass), MaxConcurrentRuns: v.MaxConcurrent, AllowedModels: notNil(v.AllowedModels),
		UntrustedContext: rest.UntrustedContext(v.UntrustedContext), BudgetAction: rest.AgentBudgetActionWarn, BudgetState: rest.AgentBudgetStateOk,
		Version: v.Version, CreatedAt: jsontype.At(v.CreatedAt), CreatedBy: v.CreatedBy, UpdatedAt: jsontype.At(v.UpdatedAt),
	}
	if v.MaxTriggerAge > 0 {
		ms := v.MaxTriggerAge.Milliseconds()
		a.MaxTriggerAgeMs = &ms
	}
	if runtime {
		a.Runtime = toRuntime(v)
	}
	return a
}

func toRuntime(v app.View) *rest.AgentRuntimeStatus {
	r := &rest.AgentRuntimeStatus{
		PresenceState: rest.PresenceState(v.Presence), LastHeartbeatAt: jsontype.AtPtr(v.LastHeartbeatAt), ReportedModes: []rest.BillingMode{},
		DegradedReasons: notNil(v.Report.Details.DegradedReasons), Warnings: notNil(v.Warnings),
	}
	for _, m := range v.Report.Modes {
		r.ReportedModes = append(r.ReportedModes, rest.BillingMode(m))
	}
	if m := rest.BillingMode(v.Report.BillingMode); m != "" {
		r.ReportedBillingMode = &m
	}
	if c := rest.ToolClass(v.Report.ToolClass); c != "" {
		r.ReportedToolClass = &c
	}
	if s := v.Report.RuntimeVersion; s != "" {
		r.RuntimeVersion = &s
	}
	if e := v.Report.Evidence; e != nil {
		r.BillingEvidence = &rest.BillingEvidence{KeyType: e.KeyType, Method: e.Method}
	}
	if a := v.Report.Details.Adapter; a != nil {
		r.Adapter = &rest.NameVersion{Name: a.Name, Version: a.Version}
	}
	if c := v.Report.Details.Capabilities; c != nil {
		r.Capabilities = &rest.AgentCapabilities{
			Followups: rest.FollowupMode(c.Followups), Components: c.Components, VoiceInput: c.VoiceInput, Title: c.Title, FilesOut: c.FilesOut,
		}
	}
	return r
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
