// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The kinds of steps that take rights away until nobody but the holder can trigger.
const (
	// StepReduceRequest gives what was asked for with the level write.
	StepReduceRequest = "reduce_request"
	// StepReplaceGrant puts a grant of the level write in the place of one, with its
	// capabilities.
	StepReplaceGrant = "replace_grant"
	// StepRemoveMember takes a member out of a group.
	StepRemoveMember = "remove_member"
	// StepUnsetOperator leaves a channel without an agent that answers.
	StepUnsetOperator = "unset_operator"
)

// The reasons why there is no plan.
const (
	// NoPlanUndoes: only leaving the request out would help.
	NoPlanUndoes = "undoes_request"
	// NoPlanHolder: every way would take something from the holder.
	NoPlanHolder = "touches_holder"
	// NoPlanTooLong: the plan would have more steps than a person reads.
	NoPlanTooLong = "too_many_steps"
)

// MaxPlanSteps bounds a plan.
const MaxPlanSteps = 100

// PlanStep is one step.
type PlanStep struct {
	Kind string
	// GrantID, Target and Level are of the grant that is replaced.
	GrantID ids.ID
	Target  Target
	Level   Level
	// GroupID and PrincipalID name a membership; the group of a grant that is replaced, too.
	GroupID, PrincipalID ids.ID
	// ChannelID is the one that loses its operator.
	ChannelID ids.ID
	// Severe is set when the step takes the level manage from somebody.
	Severe bool
}

// PlanInput is a state that breaks the rule, with what the request has brought about.
type PlanInput struct {
	Agents    []PersonalAgent
	People    []Triggerer
	Structure *Structure
	// Owners holds the active owners: they lose nothing when a group loses a grant.
	Owners map[ids.ID]bool
	// Claimed are the memberships that an identity provider keeps.
	Claimed map[MemberKey]bool
	// NewGrants, NewMembers and NewOperators are what the request itself made.
	NewGrants    map[ids.ID]bool
	NewMembers   map[MemberKey]bool
	NewOperators map[ids.ID]bool
	// Accepted are violations from before the request; a plan leaves them.
	Accepted []Violation
	Now      time.Time
}

// MemberKey is somebody's part in a group.
type MemberKey struct{ Group, Principal ids.ID }

// Plan finds steps after which nobody but the holders can trigger: direct grants first, then
// what comes through groups, then the place the agent answers in. A holder never loses
// anything. Without a plan the reason says why.
func (in PlanInput) Plan() (steps []PlanStep, reason string) {
	in.People = slices.Clone(in.People)
	for len(steps) <= MaxPlanSteps {
		open := FreshViolations(in.Accepted, Violations(in.Agents, in.People, in.Structure))
		if len(open) == 0 {
			return steps, ""
		}
		next, why := in.against(open[0])
		if why != "" {
			return nil, why
		}
		for _, step := range next {
			if !slices.Contains(steps, step) {
				steps = append(steps, step)
			}
			in.apply(step)
		}
	}
	return nil, NoPlanTooLong
}

// against finds the steps that end one violation.
func (in *PlanInput) against(v Violation) (steps []PlanStep, reason string) {
	for _, p := range v.Paths {
		step, why := in.forPath(v, p)
		if why != "" {
			return in.leaveChannel(v, why)
		}
		steps = append(steps, step)
	}
	return steps, ""
}

func (in *PlanInput) forPath(v Violation, p Path) (PlanStep, string) {
	if p.GrantID.IsZero() {
		return PlanStep{}, NoPlanUndoes // A circle of people is fixed; only the request can go.
	}
	member := MemberKey{p.GroupID, v.Principal}
	if p.Code != PathDirect && !in.Owners[v.Holder] && in.holds(v.Holder, p.GrantID) {
		switch {
		case in.NewMembers[member]:
			return PlanStep{}, NoPlanUndoes
		case p.Code == PathEveryone || in.Claimed[member]:
			return PlanStep{}, NoPlanHolder
		}
		return PlanStep{Kind: StepRemoveMember, GroupID: p.GroupID, PrincipalID: v.Principal, Severe: p.Level == Manage}, ""
	}
	if in.NewGrants[p.GrantID] {
		return PlanStep{Kind: StepReduceRequest, GrantID: p.GrantID, Target: p.Target, Level: Write, GroupID: p.GroupID, Severe: p.Level == Manage}, ""
	}
	step := PlanStep{Kind: StepReplaceGrant, GrantID: p.GrantID, Target: p.Target, Level: Write, GroupID: p.GroupID, Severe: p.Level == Manage}
	if p.Code == PathDirect {
		step.PrincipalID = v.Principal
	}
	return step, ""
}

// holds reports whether a grant of a group has come to the person as well.
func (in *PlanInput) holds(person, grant ids.ID) bool {
	for _, t := range in.People {
		if t.ID == person {
			return slices.ContainsFunc(t.Sources, func(s Source) bool { return s.GrantID == grant })
		}
	}
	return false
}

// leaveChannel ends a violation from the side of the agent, where it only answers.
func (in *PlanInput) leaveChannel(v Violation, why string) ([]PlanStep, string) {
	c, ok := in.Structure.Channel(v.Target.ID)
	if v.Target.Kind != TargetChannel || !ok || c.Direct || c.Operator != v.Agent {
		return nil, why
	}
	if in.NewOperators[c.ID] {
		return nil, NoPlanUndoes
	}
	c.Operator = ids.ID{}
	for _, a := range in.Agents {
		if a.ID == v.Agent && a.openOn(v.Target, in.Structure.WithChannel(c)) >= Read {
			return nil, why
		}
	}
	return []PlanStep{{Kind: StepUnsetOperator, ChannelID: c.ID}}, ""
}

// apply carries a step out on the copy.
func (in *PlanInput) apply(step PlanStep) {
	if step.Kind == StepUnsetOperator {
		c, _ := in.Structure.Channel(step.ChannelID)
		c.Operator = ids.ID{}
		in.Structure = in.Structure.WithChannel(c)
		return
	}
	for i, t := range in.People {
		kept := slices.DeleteFunc(slices.Clone(t.Sources), func(s Source) bool {
			if step.Kind == StepRemoveMember {
				return t.ID == step.PrincipalID && s.GroupID == step.GroupID
			}
			return s.GrantID == step.GrantID
		})
		if len(kept) < len(t.Sources) {
			in.People[i] = NewTriggerer(t.Principal, kept, in.Now)
		}
	}
}
