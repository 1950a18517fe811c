// SPDX-License-Identifier: Apache-2.0

// Package postgres keeps the rows of identity. It maps and decides nothing; constraint
// names become product words here. Writes whose result nobody needs are queued and travel
// with the next read or the commit.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Store implements app.Store on a database.
type Store struct{ db *pg.DB }

var _ app.Store = (*Store)(nil)

// New makes the store.
func New(db *pg.DB) *Store { return &Store{db: db} }

// read is the handle for statements whose result is needed now.
func (s *Store) read(ctx context.Context) *sqlcgen.Queries { return sqlcgen.New(s.db.Querier(ctx)) }

// write is the handle for statements that travel with the next read or the commit.
func write(ctx context.Context, opts ...pg.QueueOption) *sqlcgen.Queries {
	return sqlcgen.New(pg.Queued(ctx, opts...))
}

// violated translates the constraints that concurrent callers can run into.
func violated(err error) error {
	switch pg.Constraint(err) {
	case "principals_handle_key":
		return errs.Conflict("handle_taken", "This handle is in use. Take another.").WithCause(err)
	case "users_email_key":
		return errs.Conflict("email_taken", "Another member has this e-mail address.").WithCause(err)
	case "device_keys_thumbprint":
		return errs.Conflict("device_key_in_use", "This key belongs to a device of another account. Make a new key for this account.").WithCause(err)
	case "passkey_credentials_credential_key":
		return errs.Conflict("passkey_in_use", "This passkey is known already. Make a new one.").WithCause(err)
	case "device_pairings_user_code":
		return errs.Unavailable(err)
	case "auth_sessions_device_login":
		return errs.Conflict("session_exists", "The device has just signed in elsewhere. Try again.").WithCause(err)
	default:
		return err
	}
}

// absent splits "no row" from failures.
func absent(err error, doing string) (found bool, _ error) {
	switch {
	case err == nil:
		return true, nil
	case pg.IsNoRows(err):
		return false, nil
	default:
		return false, fmt.Errorf("%s: %w", doing, err)
	}
}

// failed wraps a failure with what was attempted; nil stays nil.
func failed(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// expectOne fails the unit when a row that the caller had locked was not there.
func expectOne(doing string) pg.QueueOption {
	return pg.ExpectRows(1, fmt.Errorf("%s: no such row", doing))
}

func timeOr(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func timePtr(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func textPtr(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func textOr(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var errThumbprint = errors.New("a stored thumbprint has not 32 bytes")

func thumbprint(raw []byte) (domain.Thumbprint, error) {
	if len(raw) != len(domain.Thumbprint{}) {
		return domain.Thumbprint{}, errThumbprint
	}
	return domain.Thumbprint(raw), nil
}

func prefixes(texts []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("read a stored network: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}
