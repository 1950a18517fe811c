// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Deps are what the service works with.
type Deps struct {
	Store    Store
	Units    txn.UnitOfWork
	Clock    clock.Clock
	Counters instance.Counters
	Instance instance.Instance
	Keys     instance.Keys
	Public   VerificationKeys
	// Sink is nil when checkpoints stay in the database.
	Sink Sink
	// Canonicalize writes the canonical form of JSON.
	Canonicalize domain.Canonicalize
	// Metrics may be nil.
	Metrics audit.Metrics
	Log     *slog.Logger
}

// Service records and verifies.
type Service struct {
	cfg      Config
	store    Store
	units    txn.UnitOfWork
	clock    clock.Clock
	counters instance.Counters
	instance instance.Instance
	keys     instance.Keys
	public   VerificationKeys
	sink     Sink
	authz    authorize.Authorizer
	reads    *reads
	canon    domain.Canonicalize
	metrics  audit.Metrics
	log      *slog.Logger
	denials  *denials

	ipMu   sync.RWMutex
	ipKeys []openIPKey
}

var (
	_ auditing.Recorder = (*Service)(nil)
	_ audit.Log         = (*Service)(nil)
)

// New makes the service.
func New(cfg Config, d Deps) *Service {
	s := &Service{
		cfg: cfg, store: d.Store, units: d.Units, clock: d.Clock, counters: d.Counters, instance: d.Instance, keys: d.Keys,
		public: d.Public, sink: d.Sink, reads: newReads(), canon: d.Canonicalize, metrics: d.Metrics, log: d.Log,
	}
	if s.metrics == nil {
		s.metrics = noMetrics{}
	}
	s.denials = newDenials(s)
	return s
}

// SetAuthorizer installs who decides about reading the record; it stands above this module and
// is set once, while the process starts.
func (s *Service) SetAuthorizer(a authorize.Authorizer) { s.authz = a }

type noMetrics struct{}

// ChainBreaks implements audit.Metrics.
func (noMetrics) ChainBreaks(context.Context, int) {}

// DenialsLost implements audit.Metrics.
func (noMetrics) DenialsLost(context.Context, int) {}

// SinkFailed implements audit.Metrics.
func (noMetrics) SinkFailed(context.Context) {}

// Checkpointed implements audit.Metrics.
func (noMetrics) Checkpointed(context.Context, time.Time) {}

type bufferKey struct{}

// buffer holds the rows of one unit until its tail.
type buffer struct{ rows []domain.Row }

// Allowed implements auditing.Recorder. Outside a unit that writes, the row gets a unit of
// its own: the act was a read.
func (s *Service) Allowed(ctx context.Context, e auditing.Entry) error {
	row, err := s.row(ctx, e, auditing.Allow)
	if err != nil {
		return err
	}
	u := txn.Current(ctx)
	if u != nil && u.ReadOnly() {
		return fmt.Errorf("audit: %s was recorded in a View", e.Action)
	}
	if u == nil {
		return s.writeRows(ctx, []domain.Row{row})
	}
	if u.Phase() != txn.PhaseWork && u.Phase() != txn.PhaseRights && u.Phase() != txn.PhaseBegin {
		return fmt.Errorf("audit: %s was recorded in phase %d", e.Action, u.Phase())
	}
	hold(u, row)
	return nil
}

func hold(u txn.Unit, rows ...domain.Row) {
	b, ok := u.Value(bufferKey{}).(*buffer)
	if !ok {
		b = &buffer{}
		u.SetValue(bufferKey{}, b)
	}
	b.rows = append(b.rows, rows...)
}

// writeRows puts rows into a unit of their own. In maintenance the log of the server has to
// do: reads and refusals must not change a database that is being moved.
func (s *Service) writeRows(ctx context.Context, rows []domain.Row) error {
	err := s.units.Do(ctx, func(ctx context.Context) error {
		hold(txn.Current(ctx), rows...)
		return nil
	})
	if !errs.Is(err, errs.CodeMaintenance) {
		return err
	}
	for _, r := range rows {
		s.log.InfoContext(ctx, "not recorded in maintenance", "action", r.Action, "outcome", r.Outcome, "correlation_id", r.CorrelationID)
	}
	return nil
}

// Append is the hook at the end of a unit: it numbers the rows of the unit under the lock of
// their counter and links each to the one before it.
func (s *Service) Append(ctx context.Context) error {
	u := txn.Current(ctx)
	b, ok := u.Value(bufferKey{}).(*buffer)
	if !ok || len(b.rows) == 0 {
		return nil
	}
	n := int64(len(b.rows))
	var last int64
	if err := s.counters.Raise(ctx, instance.CounterAuditSeq, n, func(v int64) { last = v }); err != nil {
		return fmt.Errorf("number audit rows: %w", err)
	}
	// This read sends the raise before it, so it sees what the lock protects.
	seq, prev, found, err := s.store.Last(ctx)
	if err != nil {
		return fmt.Errorf("read the end of the chain: %w", err)
	}
	if !found {
		info, err := s.instance.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the instance: %w", err)
		}
		prev = domain.Genesis(info.ID)
	}
	if seq != last-n {
		return fmt.Errorf("audit: the chain ends at %d, the counter stood at %d", seq, last-n)
	}
	for i := range b.rows {
		r := &b.rows[i]
		r.Seq, r.PrevHash = seq+int64(i)+1, prev
		if r.HashValue, err = r.Seal(prev, s.canon); err != nil {
			return fmt.Errorf("seal an audit row: %w", err)
		}
		prev = r.HashValue
	}
	return s.store.Insert(ctx, b.rows)
}

// row builds what the context tells; number and hashes come later.
func (s *Service) row(ctx context.Context, e auditing.Entry, outcome auditing.Outcome) (domain.Row, error) {
	var allowed []string
	if spec, ok := authorize.SpecOf(authorize.Action(e.Action)); ok {
		allowed = spec.Details
	} else if e.Action == domain.ActionTrim {
		allowed = domain.TrimDetails
	}
	details, faults := domain.EncodeDetails(allowed, e.Details)
	if len(faults) > 0 {
		if s.cfg.Strict {
			return domain.Row{}, errors.New("audit: details of " + e.Action + ": " + strings.Join(faults, "; "))
		}
		s.log.Error("audit details have a wrong form", "action", e.Action, "faults", faults)
	}
	now := s.clock.Now()
	if u := txn.Current(ctx); u != nil {
		now = u.Now()
	}
	now = now.UTC().Truncate(time.Microsecond)
	a := actor.From(ctx)
	row := domain.Row{
		ID: ids.NewAt(now), OccurredAt: now, Action: e.Action, Outcome: string(outcome), Reason: e.Reason,
		Actor: domain.Actor{
			Kind: string(a.Kind), ID: a.ID, SessionID: a.SessionID, DeviceID: a.DeviceID, TokenID: a.TokenID,
		},
		ResourceKind: e.ResourceKind, ResourceID: e.ResourceID, SpaceID: e.SpaceID, ChannelID: e.ChannelID, Details: details,
	}
	if a.ActingFor != nil {
		row.Actor.ActingForID = a.ActingFor.PrincipalID
	}
	if !a.ViewedBy.IsZero() {
		// It is the owner who acts, with the eyes of the person.
		row.Actor.ID, row.Actor.ViewAsID = a.ViewedBy, a.ID
	}
	meta := reqmeta.From(ctx)
	row.CorrelationID, _ = ids.Parse(meta.CorrelationID) // Absent outside a request.
	row.IPKeyID, row.IPPseudonym = s.pseudonym(meta.ClientIP, now)
	return row, nil
}
