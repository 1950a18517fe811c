// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"slices"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

func TestCandidatesKeepTheirOrderAndStandOnce(t *testing.T) {
	a, b, c := ids.New(), ids.New(), ids.New()
	if got := domain.Candidates([]ids.ID{b, a, b}, a, c); !slices.Equal(got, []ids.ID{b, a, c}) {
		t.Errorf("%v", got)
	}
	if got := domain.Candidates(nil, ids.ID{}, ids.ID{}); got != nil {
		t.Errorf("%v", got)
	}
}

func TestTheFirstReasonDenies(t *testing.T) {
	good := domain.Facts{Active: true, CanRead: true, MayOrder: true, MaxQueued: 1}
	for want, change := range map[string]func(*domain.Facts){
		"":                             func(*domain.Facts) {},
		domain.DeniedAgentDisabled:     func(f *domain.Facts) { f.Active, f.CanRead = false, false },
		domain.DeniedAgentCannotRead:   func(f *domain.Facts) { f.CanRead, f.MayOrder = false, false },
		domain.DeniedLevelInsufficient: func(f *domain.Facts) { f.MayOrder, f.Personal = false, true },
		domain.DeniedI1Personal:        func(f *domain.Facts) { f.Personal, f.Queued = true, 1 },
		domain.DeniedQueueFull:         func(f *domain.Facts) { f.Queued = 1 },
	} {
		f := good
		change(&f)
		if got := domain.Deny(f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAChainIsRefusedWithItsReason(t *testing.T) {
	good := domain.ChainFacts{Allowed: true, MaxDepth: 3, MaxChild: 8, MaxRuns: 20}
	for want, change := range map[string]func(*domain.ChainFacts){
		"":                           func(*domain.ChainFacts) {},
		domain.DeniedChainingOff:     func(f *domain.ChainFacts) { f.Allowed = false },
		domain.DeniedChainDepth:      func(f *domain.ChainFacts) { f.Depth = 3 },
		domain.DeniedChainLoop:       func(f *domain.ChainFacts) { f.InChain = true },
		domain.DeniedChainFanout:     func(f *domain.ChainFacts) { f.RunsOfRoot = 20 },
		domain.DeniedToolClassHigher: func(f *domain.ChainFacts) { f.TargetRank = 1 },
	} {
		f := good
		change(&f)
		if got := domain.DenyChain(f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTrustBelongsToTheAuthor(t *testing.T) {
	agent, boss, guest, order := ids.New(), ids.New(), ids.New(), ids.New()
	j := domain.Judge{AgentID: agent, Orders: map[ids.ID]bool{order: true}, MayOrder: map[ids.ID]bool{boss: true}}
	for _, c := range []struct {
		message, author ids.ID
		kind            string
		want            domain.Trust
	}{
		{order, guest, "person", domain.TrustOrder}, {ids.New(), agent, "agent", domain.TrustSelf}, {ids.New(), ids.New(), "agent", domain.TrustAgent},
		{ids.New(), boss, "person", domain.TrustTrusted}, {ids.New(), guest, "person", domain.TrustUntrusted}, {ids.New(), boss, "webhook", domain.TrustUntrusted},
	} {
		if got := j.Of(c.message, c.author, c.kind); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
