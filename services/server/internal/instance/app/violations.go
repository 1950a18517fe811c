// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
)

const (
	// violationEvery is how often one directive is logged.
	violationEvery = time.Minute
	// maxOrigins bounds the origins that are counted for one directive within that time.
	maxOrigins = 20
)

// violations counts what browsers report until it is logged.
type violations struct {
	mu sync.Mutex
	by map[string]*violation
}

type violation struct {
	origins map[string]int
	other   int
	logged  time.Time
}

// AllowReport decides about a report before its body is read. Everybody may send one.
func (s *Service) AllowReport(ctx context.Context) error {
	return s.peers.Authorizer.Authorize(ctx, authorize.ActionConsoleCspReport, authorize.Instance())
}

// Report counts what a browser reported. Directives come from a closed list and origins are
// bounded, because anybody can send anything here.
func (s *Service) Report(ctx context.Context, reports []domain.Violation) {
	now := s.clock.Now()
	for _, r := range reports {
		s.metrics.PolicyViolation(ctx, r.Directive)
		if origins, other, due := s.violations.add(r, now); due {
			s.log.Warn("the content security policy stopped something", "directive", r.Directive, "origins", origins, "further", other)
		}
	}
}

func (v *violations) add(r domain.Violation, now time.Time) (origins map[string]int, other int, due bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[string]*violation{}
	}
	at := v.by[r.Directive]
	if at == nil {
		at = &violation{origins: map[string]int{}}
		v.by[r.Directive] = at
	}
	if _, known := at.origins[r.Origin]; known || len(at.origins) < maxOrigins {
		at.origins[r.Origin]++
	} else {
		at.other++
	}
	if now.Sub(at.logged) < violationEvery {
		return nil, 0, false
	}
	origins, other = at.origins, at.other
	*at = violation{origins: map[string]int{}, logged: now}
	return origins, other, true
}
