// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Consumers implements agents.Consumers.
type Consumers struct {
	units      txn.UnitOfWork
	authorizer authorize.Authorizer
	rows       CursorRepository
}

// NewConsumers makes the use cases.
func NewConsumers(units txn.UnitOfWork, authorizer authorize.Authorizer, rows CursorRepository) *Consumers {
	return &Consumers{units: units, authorizer: authorizer, rows: rows}
}

// TakeOver implements agents.Consumers. The actor of the context must be the agent.
func (c *Consumers) TakeOver(ctx context.Context, agent, session ids.ID, head int64) (acked int64, err error) {
	err = c.units.Do(ctx, func(ctx context.Context) error {
		if err := c.authorizer.Authorize(ctx, authorize.ActionAgentEventsConsume, Resource(agent)); err != nil {
			return err
		}
		if acked, err = c.rows.TakeOver(ctx, agent, session, head, txn.Current(ctx).Now()); err != nil {
			return fmt.Errorf("make the session the holder: %w", err)
		}
		return nil
	}, txn.WithWriteInMaintenance())
	return acked, err
}

// Save implements agents.Consumers. It asks for no right: only the session that was made the
// holder can move the position, and the statement itself decides that.
func (c *Consumers) Save(ctx context.Context, agent, session ids.ID, acked int64) (held bool, err error) {
	err = c.units.Do(ctx, func(ctx context.Context) error {
		if held, err = c.rows.Save(ctx, agent, session, acked, txn.Current(ctx).Now()); err != nil {
			return fmt.Errorf("save the position of the agent: %w", err)
		}
		return nil
	}, txn.WithWriteInMaintenance())
	return held, err
}

// MoveAll lets every agent go on at a position, in the running unit. Only the command that
// finalizes a restore calls it.
func (c *Consumers) MoveAll(ctx context.Context, head int64) error {
	if err := c.rows.MoveAll(ctx, head, txn.Current(ctx).Now()); err != nil {
		return fmt.Errorf("move the places of agents: %w", err)
	}
	return nil
}
