// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"github.com/OWNER/bothy/services/server/api/rest"
	"github.com/OWNER/bothy/services/server/internal/runs/app"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

func fromUpdate(b rest.UpdateRunRequest) app.Update {
	return app.Update{BaseVersion: b.BaseVersion, Patch: fromPatch(b.Patch), Append: fromAppends(b.Append), Consumed: b.Consumed}
}

func fromAppends(list []rest.RunAppend) []domain.Append {
	var out []domain.Append
	for _, a := range list {
		out = append(out, domain.Append{Target: a.Target, Offset: int(a.Offset), Text: a.Text})
	}
	return out
}

func fromPatch(p *rest.RunPatch) domain.Patch {
	if p == nil {
		return domain.Patch{}
	}
	out := domain.Patch{State: (*string)(p.State), Title: p.Title, StatusLine: p.StatusLine, Model: p.Model, HasPlan: p.Plan != nil}
	for _, e := range p.Plan {
		entry := domain.PlanEntry{Key: e.Key, Text: e.Text, State: string(e.State)}
		if e.Priority != nil {
			entry.Priority = *e.Priority
		}
		out.Plan = append(out.Plan, entry)
	}
	if p.Output != nil {
		out.Output = &p.Output.Text
	}
	if len(p.Steps) > 0 {
		out.Steps = make(map[string]domain.StepPatch, len(p.Steps))
	}
	for key, s := range p.Steps {
		step := domain.StepPatch{
			ParentKey: s.ParentKey, Kind: (*string)(s.Kind), ToolKind: (*string)(s.ToolKind), Title: s.Title, State: (*string)(s.State),
			StartedAt: s.StartedAt.Ptr(), EndedAt: s.EndedAt.Ptr(), Input: s.Input, HasOutput: s.Output.Set, Output: s.Output.Ptr(),
		}
		out.Steps[key] = step
	}
	if len(p.Artifacts) > 0 {
		out.Artifacts = make(map[string]*domain.ArtifactPatch, len(p.Artifacts))
	}
	for key, a := range p.Artifacts {
		if a == nil {
			out.Artifacts[key] = nil
			continue
		}
		out.Artifacts[key] = &domain.ArtifactPatch{
			Kind: (*string)(a.Kind), Title: a.Title, URL: a.URL.Ptr(), HasURL: a.URL.Set, Text: a.Text.Ptr(), HasText: a.Text.Set,
		}
	}
	out.Usage = fromUsage(p.Usage)
	return out
}

func fromUsage(usage map[string]rest.ModelUsageInput) map[string]domain.UsagePatch {
	if len(usage) == 0 {
		return nil
	}
	out := make(map[string]domain.UsagePatch, len(usage))
	for model, u := range usage {
		out[model] = domain.UsagePatch{Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CacheReadTokens, CacheWrite: u.CacheWriteTokens}
	}
	return out
}

func fromFinish(b rest.FinishRunRequest) app.Finish {
	in := app.Finish{
		State: domain.State(b.State), BaseVersion: b.BaseVersion, Patch: fromPatch(b.Patch), HasPatch: b.Patch != nil, Append: fromAppends(b.Append),
	}
	if b.EndReason != nil {
		in.Reason = string(*b.EndReason)
	}
	if b.Output != nil {
		in.Output = &app.Answer{Content: b.Output.Content, ClientMsgID: b.Output.ClientMsgID}
	}
	if b.Error != nil {
		in.ErrorCode = b.Error.Code
		if b.Error.Message != nil {
			in.ErrorMessage = *b.Error.Message
		}
	}
	in.Usage = fromUsage(b.Usage)
	return in
}
