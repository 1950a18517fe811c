// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/sync/adapters/postgres/sqlcgen"
	"github.com/OWNER/bothy/services/server/internal/sync/app"
)

// Keys implements app.KeyRepository.
type Keys struct{ db *pg.DB }

// NewKeys makes the repository.
func NewKeys(db *pg.DB) *Keys { return &Keys{db: db} }

// Claim implements app.KeyRepository. The wait for a twin is not repeated by the unit of
// work, which would multiply it.
func (r *Keys) Claim(ctx context.Context, k idempotency.Key, now, expires time.Time) (bool, error) {
	ctx = pg.FinalLockTimeout(ctx)
	_, err := sqlcgen.New(r.db.Querier(ctx)).KeyClaim(ctx, sqlcgen.KeyClaimParams{
		ScopeID: k.ScopeID, OperationID: k.OperationID, Key: k.Value, RequestHash: k.RequestHash[:], CreatedAt: now, ExpiresAt: expires,
	})
	switch {
	case pg.IsNoRows(err):
		return false, nil
	case pg.IsLockTimeout(err):
		return false, errs.New(errs.CodeRequestInProgress, "The same request is still running. Repeat it shortly.").WithRetryAfter(time.Second).WithCause(err)
	case err != nil:
		return false, err
	default:
		return true, nil
	}
}

// Get implements app.KeyRepository.
func (r *Keys) Get(ctx context.Context, k idempotency.Key) (app.StoredKey, error) {
	row, err := sqlcgen.New(r.db.Querier(ctx)).KeyGet(ctx, k.ScopeID, k.OperationID, k.Value)
	if err != nil {
		return app.StoredKey{}, err
	}
	stored := app.StoredKey{Completed: row.State == "completed"}
	copy(stored.RequestHash[:], row.RequestHash)
	if row.Status != nil {
		stored.Answer = idempotency.Answer{Status: int(*row.Status), Body: row.Body, SecretShown: row.SecretShown, ResourceID: ids.Deref(row.ResourceID)}
	}
	if len(row.Headers) > 0 {
		if err := json.Unmarshal(row.Headers, &stored.Answer.Header); err != nil {
			return app.StoredKey{}, fmt.Errorf("read the stored headers: %w", err)
		}
	}
	return stored, nil
}

// Complete implements app.KeyRepository.
func (r *Keys) Complete(ctx context.Context, k idempotency.Key, a idempotency.Answer) error {
	headers, status, err := encodeAnswer(a)
	if err != nil {
		return err
	}
	return sqlcgen.New(pg.Queued(ctx)).KeyComplete(ctx, sqlcgen.KeyCompleteParams{
		Status: status, Headers: headers, Body: a.Body, SecretShown: a.SecretShown, ResourceID: a.ResourceID.Ptr(),
		ScopeID: k.ScopeID, OperationID: k.OperationID, Key: k.Value,
	})
}

// StoreFinal implements app.KeyRepository.
func (r *Keys) StoreFinal(ctx context.Context, k idempotency.Key, a idempotency.Answer, now, expires time.Time) error {
	headers, status, err := encodeAnswer(a)
	if err != nil {
		return err
	}
	return sqlcgen.New(pg.Queued(ctx)).KeyStoreFinal(ctx, sqlcgen.KeyStoreFinalParams{
		ScopeID: k.ScopeID, OperationID: k.OperationID, Key: k.Value, RequestHash: k.RequestHash[:],
		Status: status, Headers: headers, Body: a.Body, CreatedAt: now, ExpiresAt: expires,
	})
}

// DeleteExpired implements app.KeyRepository.
func (r *Keys) DeleteExpired(ctx context.Context, before time.Time, limit int) (int64, error) {
	return sqlcgen.New(r.db.Querier(ctx)).KeysDeleteExpired(ctx, before, int32(limit))
}

func encodeAnswer(a idempotency.Answer) (json.RawMessage, *int32, error) {
	headers, err := json.Marshal(a.Header)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the headers: %w", err)
	}
	status := int32(a.Status)
	return headers, &status, nil
}
