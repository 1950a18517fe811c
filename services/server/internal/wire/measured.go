// SPDX-License-Identifier: Apache-2.0

//go:build perf

package wire

import (
	"context"
	"os"

	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	messagingapp "github.com/OWNER/bothy/services/server/internal/messaging/app"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
)

// Measured is what a measurement reaches into: a use case without the network before it, and the database below it.
type Measured struct {
	Messages *messagingapp.Messages
	DB       *pg.DB
}

// Measure builds the modules as a command does and runs fn. It exists in builds for measurements alone.
func Measure(ctx context.Context, from Sources, fn func(ctx context.Context, m Measured) error) error {
	return withModules(ctx, from, Console{Out: os.Stdout, Err: os.Stderr}, func(ctx context.Context, r *commandRun) error {
		if err := r.authz.service.LoadStructure(ctx); err != nil {
			return err
		}
		return fn(ctx, Measured{Messages: r.messaging.uses, DB: r.db})
	})
}

// MeasuredRequest prepares the context of one call, as the HTTP adapter does.
func MeasuredRequest(ctx context.Context) context.Context { return authzapp.WithRequest(ctx) }
