// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// maxViolations bounds what an answer lists; the digest covers all.
const maxViolations = 100

// I1Answer is the member i1 of the problem document.
type I1Answer struct {
	Digest     string        `json:"digest"`
	Violations []i1Violation `json:"violations"`
	Truncated  bool          `json:"truncated"`
	Options    []i1Option    `json:"options"`
}

// i1Violation is one line. What the request itself makes has no lasting identifier, so it is
// marked instead of named: the same request has the same digest again.
type i1Violation struct {
	AgentID     ids.ID        `json:"agent_id"`
	HolderID    ids.ID        `json:"holder_id"`
	Target      targetPayload `json:"target"`
	PrincipalID *ids.ID       `json:"principal_id,omitempty"`
	Requested   bool          `json:"requested,omitempty"`
	Path        []i1Path      `json:"path"`
}

type i1Path struct {
	Code      string        `json:"code"`
	GrantID   *ids.ID       `json:"grant_id,omitempty"`
	GroupID   *ids.ID       `json:"group_id,omitempty"`
	Target    targetPayload `json:"target"`
	Level     string        `json:"level"`
	Requested bool          `json:"requested,omitempty"`
}

type i1Option struct {
	Strategy string   `json:"strategy"`
	Allowed  bool     `json:"allowed"`
	Reason   string   `json:"reason,omitempty"`
	AgentIDs []ids.ID `json:"agent_ids,omitempty"`
	Plan     []i1Step `json:"plan,omitempty"`
}

type i1Step struct {
	Kind        string         `json:"kind"`
	GrantID     *ids.ID        `json:"grant_id,omitempty"`
	Target      *targetPayload `json:"target,omitempty"`
	Level       string         `json:"level,omitempty"`
	GroupID     *ids.ID        `json:"group_id,omitempty"`
	PrincipalID *ids.ID        `json:"principal_id,omitempty"`
	ChannelID   *ids.ID        `json:"channel_id,omitempty"`
	Severe      bool           `json:"severe"`
}

func (s *Service) describeI1(ctx context.Context, change *rightsChange, state *i1State, fresh []domain.Violation) (*foundI1, error) {
	made := change.madeGrants(state)
	out := &foundI1{state: state, fresh: fresh}
	all := make([]i1Violation, 0, len(fresh))
	for _, v := range fresh {
		all = append(all, change.violationLine(v, made))
	}
	digest, err := digestOf(all)
	if err != nil {
		return nil, err
	}
	out.hexDigest = hex.EncodeToString(digest)
	out.answer = I1Answer{Digest: base64.RawURLEncoding.EncodeToString(digest), Violations: all[:min(len(all), maxViolations)], Truncated: len(all) > maxViolations}
	steps, reason, err := s.planI1(ctx, change, state, made)
	if err != nil {
		return nil, err
	}
	out.plan = steps
	out.answer.Options, err = s.optionsI1(ctx, change, fresh, steps, reason)
	return out, err
}

// digestOf is the SHA-256 over the canonical form of the complete list. Its values are
// identifiers and codes, for which sorted members without spaces are that form.
func digestOf(list []i1Violation) ([]byte, error) {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode the violations: %w", err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("read the violations back: %w", err)
	}
	if raw, err = json.Marshal(value); err != nil {
		return nil, fmt.Errorf("put the violations into canonical form: %w", err)
	}
	sum := sha256.Sum256(raw)
	return sum[:], nil
}

// madeGrants are the grants that were not there before the unit.
func (c *rightsChange) madeGrants(state *i1State) map[ids.ID]bool {
	out := map[ids.ID]bool{}
	if len(c.i1.agents) == 0 {
		return out // Nobody looked, because a change of an agent itself is being made.
	}
	for _, g := range state.rows.Grants {
		known := slices.ContainsFunc(c.i1.rows.Grants, func(b TriggerGrant) bool { return b.ID == g.ID })
		if !known {
			out[g.ID] = true
		}
	}
	return out
}

// made reports whether the unit itself makes the principal.
func (c *rightsChange) made(principal ids.ID) bool {
	before, ok := c.before[principal]
	return ok && before.Kind == ""
}

func (c *rightsChange) violationLine(v domain.Violation, made map[ids.ID]bool) i1Violation {
	out := i1Violation{AgentID: v.Agent, HolderID: v.Holder, Target: targetPayloadOf(v.Target), PrincipalID: v.Principal.Ptr(), Path: []i1Path{}}
	if c.made(v.Principal) {
		out.PrincipalID, out.Requested = nil, true
	}
	for _, p := range v.Paths {
		line := i1Path{Code: p.Code, GrantID: p.GrantID.Ptr(), GroupID: p.GroupID.Ptr(), Target: targetPayloadOf(p.Target), Level: p.Level.String()}
		if made[p.GrantID] {
			line.GrantID, line.Requested = nil, true
		}
		out.Path = append(out.Path, line)
	}
	return out
}

// planI1 finds which rights to take away.
func (s *Service) planI1(ctx context.Context, change *rightsChange, state *i1State, made map[ids.ID]bool) ([]domain.PlanStep, string, error) {
	owners, err := s.principals.ActiveOwners(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("list the owners: %w", err)
	}
	in := domain.PlanInput{
		Agents: state.agents, People: state.people, Structure: state.structure, Accepted: change.i1.violations, Now: s.now(ctx),
		Owners: map[ids.ID]bool{}, Claimed: map[domain.MemberKey]bool{}, NewGrants: made,
		NewMembers: map[domain.MemberKey]bool{}, NewOperators: map[ids.ID]bool{},
	}
	for _, id := range owners {
		in.Owners[id] = true
	}
	for _, m := range state.rows.Members {
		in.Claimed[m.MemberKey] = m.Claimed
		known := slices.ContainsFunc(change.i1.rows.Members, func(b TriggerMember) bool { return b.MemberKey == m.MemberKey })
		in.NewMembers[m.MemberKey] = !known && len(change.i1.agents) > 0
	}
	for _, id := range state.structure.Channels() {
		c, _ := state.structure.Channel(id)
		before, _ := change.structure.Channel(id)
		in.NewOperators[id] = c.Operator != before.Operator
	}
	steps, reason := in.Plan()
	return steps, reason, nil
}

func (s *Service) optionsI1(ctx context.Context, change *rightsChange, fresh []domain.Violation, steps []domain.PlanStep, reason string) ([]i1Option, error) {
	toSwitch := i1Option{Strategy: authz.ResolveSwitch, Allowed: true}
	for _, v := range fresh {
		if !slices.Contains(toSwitch.AgentIDs, v.Agent) {
			toSwitch.AgentIDs = append(toSwitch.AgentIDs, v.Agent)
		}
	}
	reduce := i1Option{Strategy: authz.ResolveReduce, Allowed: reason == "", Reason: reason}
	for _, step := range steps {
		reduce.Plan = append(reduce.Plan, change.stepLine(step))
	}
	options := []i1Option{toSwitch, reduce}
	owner, err := s.isOwner(ctx)
	if err != nil {
		return nil, err
	}
	for i := range options {
		if !owner {
			options[i].Allowed, options[i].Reason = false, domain.ReasonNotOwner
		}
	}
	return options, nil
}

func (c *rightsChange) stepLine(step domain.PlanStep) i1Step {
	out := i1Step{Kind: step.Kind, GroupID: step.GroupID.Ptr(), PrincipalID: step.PrincipalID.Ptr(), ChannelID: step.ChannelID.Ptr(), Severe: step.Severe}
	if c.made(step.PrincipalID) {
		out.PrincipalID = nil
	}
	if step.Level != domain.None {
		target := targetPayloadOf(step.Target)
		out.Target, out.Level = &target, step.Level.String()
	}
	if step.Kind == domain.StepReplaceGrant {
		out.GrantID = step.GrantID.Ptr()
	}
	return out
}

// isOwner reports whether the person who asks is an owner.
func (s *Service) isOwner(ctx context.Context) (bool, error) {
	a := actor.From(ctx)
	if a.Kind != actor.KindPerson {
		return false, nil
	}
	found, err := s.principals.Principals(ctx, []ids.ID{a.ID})
	if err != nil {
		return false, fmt.Errorf("read who asks: %w", err)
	}
	return len(found) == 1 && found[0].Active && found[0].Owner, nil
}

// refuseI1 is the answer to a change that breaks the rule. The audit log keeps its digest.
func (s *Service) refuseI1(ctx context.Context, change *rightsChange, f *foundI1) error {
	s.audit.Denied(ctx, auditing.Entry{
		Action: change.action, Reason: string(errs.CodeI1Violation), ResourceKind: "agent", ResourceID: f.fresh[0].Agent,
		Details: map[string]any{"i1_digest": f.hexDigest},
	})
	return errs.New(errs.CodeI1Violation, "An agent on one person's own plan would become usable by somebody else. See who, and choose a way out.").
		With("i1", f.answer)
}
