// SPDX-License-Identifier: Apache-2.0

// Package txn is the unit of work: one database transaction per write use case, carried in
// the context, with fixed phases at its end.
//
// A use case calls Do; ports of other modules called inside join the same transaction.
// The phases are, in order:
//
//  1. begin: only for changes of rights. The hook of authz raises the version of all
//     rights and notes what the affected principals see.
//  2. work: rules, rows, in-transaction events, appended events.
//  3. rights: the hook of authz compares, appends access.changed, may veto.
//  4. log: the hook of sync numbers and writes the appended events.
//  5. audit: the hook of audit extends its chain.
//
// then commit, then the wait until the commit is durable, then Do returns. Because the
// order is the unit's and not the use case's, no module can take the locks of the counters
// in another order. A unit that meets a deadlock or a lock timeout is rolled back and run
// again from the start, so fn must have no effect outside the transaction.
package txn

import (
	"context"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// UnitOfWork runs use cases in transactions. platform/pg implements it.
type UnitOfWork interface {
	// Do runs fn in the transaction of the context, or in a new one. An error of fn, of a
	// subscriber or of a hook rolls everything back and is returned. After success of the
	// outermost Do everything is durable.
	Do(ctx context.Context, fn func(ctx context.Context) error, opts ...Option) error
	// View runs fn in a read-only transaction whose statements all see one snapshot. Inside
	// a unit of work it joins it instead.
	View(ctx context.Context, fn func(ctx context.Context) error, opts ...Option) error
}

// ErrRetry makes the unit roll back and run again, at most three times: a decision was
// made on rights that have changed meanwhile.
var ErrRetry = errors.New("decided on rights that have changed")

// Phase is where a unit of work stands.
type Phase int

// The phases in their order. PhaseNone is the answer outside a unit.
const (
	PhaseNone Phase = iota
	PhaseBegin
	PhaseWork
	PhaseRights
	PhaseLog
	PhaseAudit
	PhaseDone
)

// Unit is the running unit of work as hooks and ports see it.
type Unit interface {
	Phase() Phase
	// ReadOnly reports whether the unit is a View.
	ReadOnly() bool
	// Value and SetValue keep state of one attempt of the unit, by a private key of the
	// caller; a repeated unit starts without any.
	Value(key any) any
	SetValue(key, value any)
	// Now is the time of the unit: one value for everything that happens in it.
	Now() time.Time
	// Registry is the sealed registry of hooks and subscribers.
	Registry() *Registry
}

type unitKey struct{}

// WithUnit puts the running unit into the context; only platform/pg and its test double
// call it.
func WithUnit(ctx context.Context, u Unit) context.Context {
	return context.WithValue(ctx, unitKey{}, u)
}

// Current is the running unit, or nil.
func Current(ctx context.Context) Unit {
	u, _ := ctx.Value(unitKey{}).(Unit)
	return u
}

// PhaseOf is the phase of the context's unit, PhaseNone without one.
func PhaseOf(ctx context.Context) Phase {
	if u := Current(ctx); u != nil {
		return u.Phase()
	}
	return PhaseNone
}

// Target names what a change of rights is about when its principals are not known: every
// principal with a valid grant on it or above it is affected.
type Target struct {
	// Kind is instance, space or channel.
	Kind string
	ID   ids.ID
}

// RightsChange says whose rights a unit may change.
type RightsChange struct {
	// Action is the ID of the action that changes rights; subscribers learn it.
	Action     string
	Principals []ids.ID
	Targets    []Target
	// Everyone means that any principal may be affected.
	Everyone bool
}

// Options are what a unit of work was opened with.
type Options struct {
	Rights             *RightsChange
	LateRights         bool
	StatementTimeout   time.Duration
	WriteInMaintenance bool
}

// Option changes how a unit runs.
type Option func(*Options)

// WithRightsChange declares that the unit changes rights. In a nested unit it is legal
// only when the outermost one was opened with AllowLateRightsChange and none came before.
func WithRightsChange(c RightsChange) Option { return func(o *Options) { o.Rights = &c } }

// AllowLateRightsChange lets a nested unit declare the change of rights. The stage that
// stores answers of repeated requests opens its unit so: it has only written its own key.
func AllowLateRightsChange() Option { return func(o *Options) { o.LateRights = true } }

// StatementTimeout replaces the statement timeout of the outermost unit.
func StatementTimeout(d time.Duration) Option { return func(o *Options) { o.StatementTimeout = d } }

// WithWriteInMaintenance exempts the unit from the read-only mode of maintenance.
func WithWriteInMaintenance() Option { return func(o *Options) { o.WriteInMaintenance = true } }

type exemptKey struct{}

// ExemptFromMaintenance exempts every unit below the context, for a request whose action may
// write in maintenance: its use case cannot know on which terms it was let in.
func ExemptFromMaintenance(ctx context.Context) context.Context {
	return context.WithValue(ctx, exemptKey{}, true)
}

// IsExemptFromMaintenance reports whether the context comes from ExemptFromMaintenance.
func IsExemptFromMaintenance(ctx context.Context) bool {
	exempt, _ := ctx.Value(exemptKey{}).(bool)
	return exempt
}
