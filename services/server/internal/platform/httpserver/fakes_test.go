// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

type ctxType = context.Context

// unitsFunc is a unit of work whose outermost Do a test writes itself.
type unitsFunc func(ctx context.Context, fn func(context.Context) error) error

func (f unitsFunc) Do(ctx context.Context, fn func(context.Context) error, _ ...txn.Option) error {
	return f(ctx, fn)
}

func (f unitsFunc) View(ctx context.Context, fn func(context.Context) error, _ ...txn.Option) error {
	return fn(ctx)
}
