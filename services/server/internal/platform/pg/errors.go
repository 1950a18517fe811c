// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Cause is an internal identifier for log and metric; no response carries it.
type Cause string

// The causes of an unavailable database.
const (
	CausePoolExhausted  Cause = "db_pool_exhausted"
	CauseDeadline       Cause = "deadline_exceeded"
	CauseDependency     Cause = "dependency_unavailable"
	CauseOutcomeUnknown Cause = "outcome_unknown"
	CauseRetries        Cause = "retries_exhausted"
)

// causeError attaches a cause to the driver's error.
type causeError struct {
	cause Cause
	err   error
}

func (e *causeError) Error() string { return fmt.Sprintf("%s: %v", e.cause, e.err) }
func (e *causeError) Unwrap() error { return e.err }

// CauseOf is the internal cause in the chain, empty without one.
func CauseOf(err error) Cause {
	var c *causeError
	if errors.As(err, &c) {
		return c.cause
	}
	return ""
}

func unavailable(cause Cause, err error) error {
	return errs.Unavailable(&causeError{cause: cause, err: err})
}

// SQLSTATEs this package acts on. StateStaleRights is private: a statement raises it when
// the rights a unit decided on have changed meanwhile.
const (
	StateStaleRights    = "BY001"
	stateDeadlock       = "40P01"
	stateLockTimeout    = "55P03"
	stateCanceled       = "57014"
	stateReadOnly       = "25006"
	stateUnique         = "23505"
	stateTooManyClients = "53300"
	stateUnsupported    = "0A000"
)

// State is the SQLSTATE of the server's error in the chain, empty without one.
func State(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Constraint is the name of the constraint that a statement violated, empty for any other
// error. Adapters translate it into a fact of their domain.
func Constraint(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) && strings.HasPrefix(e.Code, "23") {
		return e.ConstraintName
	}
	return ""
}

// IsNoRows reports whether a query for one row found none.
func IsNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// IsUnique reports whether a statement violated a unique key.
func IsUnique(err error) bool { return State(err) == stateUnique }

// IsLockTimeout reports whether a statement waited longer for a lock than allowed. A
// caller that answers it by itself runs the statement with FinalLockTimeout.
func IsLockTimeout(err error) bool { return State(err) == stateLockTimeout }

// IsStatementTimeout reports whether the server ended a statement for its duration.
func IsStatementTimeout(err error) bool { return State(err) == stateCanceled }

// NotFound turns the absence of a row into errs.NotFound and passes everything else.
func NotFound(err error) error {
	if IsNoRows(err) {
		return errs.NotFound()
	}
	return err
}

// translate gives failures of the connection their public meaning and passes what the
// server said about a statement, so adapters can still read constraint names.
func translate(err error) error {
	var public *errs.Error
	if err == nil || IsNoRows(err) || errors.As(err, &public) {
		return err
	}
	var server *pgconn.PgError
	if errors.As(err, &server) {
		switch {
		case server.Code == stateCanceled:
			return unavailable(CauseDeadline, err)
		case server.Code == stateTooManyClients:
			return unavailable(CausePoolExhausted, err)
		case strings.HasPrefix(server.Code, "57P"), strings.HasPrefix(server.Code, "08"), strings.HasPrefix(server.Code, "53"):
			return unavailable(CauseDependency, err)
		case server.Code == "25P03", server.Code == "25P04":
			return unavailable(CauseDeadline, err)
		}
		return err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return unavailable(CauseDeadline, err)
	case isConnectionLoss(err):
		return unavailable(CauseDependency, err)
	}
	return err
}

func isConnectionLoss(err error) bool {
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "unexpected EOF") || strings.Contains(err.Error(), "conn closed") ||
		strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "broken pipe")
}

type retryKind int

const (
	retryNone retryKind = iota
	retryLock
	retryRights
)

func retryOf(err error) retryKind {
	if err == nil {
		return retryNone
	}
	if errors.Is(err, txn.ErrRetry) || State(err) == StateStaleRights {
		return retryRights
	}
	var final *finalLockTimeout
	switch State(err) {
	case stateDeadlock:
		return retryLock
	case stateUnsupported:
		// A step of the schema changed what a prepared statement returns; the driver has
		// forgotten the statement and prepares it anew.
		if strings.Contains(err.Error(), "cached plan must not change result type") {
			return retryLock
		}
	case stateLockTimeout:
		if errors.As(err, &final) {
			return retryNone
		}
		return retryLock
	}
	return retryNone
}

// finalLockTimeout marks a lock timeout that the unit must not answer with a repetition.
type finalLockTimeout struct{ err error }

func (e *finalLockTimeout) Error() string { return e.err.Error() }
func (e *finalLockTimeout) Unwrap() error { return e.err }

type finalLockKey struct{}

// FinalLockTimeout marks statements whose lock timeout is an answer, not a reason to repeat
// the unit: waiting for the key of a repeated request would otherwise be multiplied.
func FinalLockTimeout(ctx context.Context) context.Context {
	return context.WithValue(ctx, finalLockKey{}, true)
}

func markFinal(ctx context.Context, err error) error {
	if ctx.Value(finalLockKey{}) != nil && IsLockTimeout(err) {
		return &finalLockTimeout{err: err}
	}
	return err
}
