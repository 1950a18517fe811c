// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// phaseOf is the only phase in which a counter may be raised. Its row stays locked until the
// unit ends, so the order of phases is the order of locks.
var phaseOf = map[instance.Counter]txn.Phase{
	instance.CounterPermissionVersion: txn.PhaseBegin,
	instance.CounterEventSeq:          txn.PhaseLog,
	instance.CounterAuditSeq:          txn.PhaseAudit,
}

// Raise implements instance.Counters.
func (s *Service) Raise(ctx context.Context, c instance.Counter, by int64, got func(int64)) error {
	phase, known := phaseOf[c]
	if !known || txn.PhaseOf(ctx) != phase {
		return errs.Internal(fmt.Errorf("the counter %s was raised in phase %d", c, txn.PhaseOf(ctx)))
	}
	if by < 1 {
		return errs.Internal(fmt.Errorf("the counter %s was raised by %d", c, by))
	}
	return s.store.Raise(ctx, string(c), by, got)
}

// Current implements instance.Versions.
func (s *Service) Current(ctx context.Context, c instance.Counter) (int64, error) {
	return s.store.Value(ctx, string(c))
}

// Queue implements instance.Versions.
func (s *Service) Queue(ctx context.Context, c instance.Counter, got func(int64)) error {
	return s.store.QueueValue(ctx, string(c), got)
}
