// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The reasons for which a message does not set an agent to work.
const (
	DeniedTriggerOff        = "trigger_off"
	DeniedTooManyAgents     = "too_many_agents"
	DeniedAgentDisabled     = "agent_disabled"
	DeniedAgentCannotRead   = "agent_cannot_read"
	DeniedLevelInsufficient = "level_insufficient"
	DeniedI1Personal        = "i1_personal"
	DeniedQueueFull         = "queue_full"
	DeniedStopping          = "cancel_requested"
	DeniedBackendMismatch   = "backend_mismatch"

	DeniedChainingOff     = "chaining_off"
	DeniedChainDepth      = "chain_depth"
	DeniedChainLoop       = "chain_loop"
	DeniedChainFanout     = "chain_fanout"
	DeniedToolClassHigher = "tool_class_higher"
)

// Candidates orders the agents a message may set to work: the mentioned ones, the author of
// what it replies to, the operator that answers everything. Nobody is named twice.
func Candidates(mentioned []ids.ID, repliedTo, operator ids.ID) []ids.ID {
	var out []ids.ID
	for _, id := range append(append(slices.Clone(mentioned), repliedTo), operator) {
		if !id.IsZero() && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// Facts are what is known of one candidate.
type Facts struct {
	Active    bool
	CanRead   bool
	MayOrder  bool
	Personal  bool
	Holder    bool
	Queued    int
	MaxQueued int
}

// Deny gives the first reason against a candidate, empty when there is none.
func Deny(f Facts) string {
	switch {
	case !f.Active:
		return DeniedAgentDisabled
	case !f.CanRead:
		return DeniedAgentCannotRead
	case !f.MayOrder:
		return DeniedLevelInsufficient
	case f.Personal && !f.Holder:
		return DeniedI1Personal
	case f.Queued >= f.MaxQueued:
		return DeniedQueueFull
	default:
		return ""
	}
}

// ChainFacts are what is known when an agent wants to set another to work.
type ChainFacts struct {
	Allowed              bool
	Depth, MaxDepth      int
	Children, MaxChild   int
	RunsOfRoot, MaxRuns  int
	Self                 bool
	InChain              bool
	TargetRank, OwnRank  int
	ParentStopsOrStopped bool
}

// DenyChain gives the first reason against a link of a chain, empty when there is none.
func DenyChain(f ChainFacts) string {
	switch {
	case !f.Allowed:
		return DeniedChainingOff
	case f.ParentStopsOrStopped:
		return DeniedStopping
	case f.Depth >= f.MaxDepth:
		return DeniedChainDepth
	case f.Self || f.InChain:
		return DeniedChainLoop
	case f.Children >= f.MaxChild || f.RunsOfRoot >= f.MaxRuns:
		return DeniedChainFanout
	case f.TargetRank > f.OwnRank:
		return DeniedToolClassHigher
	default:
		return ""
	}
}

// The outcomes of a message for an agent, in the order in which one of them speaks for the
// whole message.
const (
	OutcomeTriggered = "triggered"
	OutcomeFollowup  = "followup"
	OutcomeHeld      = "held"
	OutcomeDenied    = "denied"
	OutcomeNone      = "none"
)

// Overall is the one outcome that stands for several.
func Overall(outcomes []string) string {
	for _, o := range []string{OutcomeTriggered, OutcomeFollowup, OutcomeHeld, OutcomeDenied} {
		if slices.Contains(outcomes, o) {
			return o
		}
	}
	return OutcomeNone
}
