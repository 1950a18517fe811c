// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// Events is catch-up by request: pages of the engine that the gateway uses, for the caller.
type Events struct {
	authorizer authorize.Authorizer
	delivery   authorize.Delivery
	catchUp    *CatchUp
	tail       sync.Tail
}

// NewEvents makes the use case.
func NewEvents(authorizer authorize.Authorizer, delivery authorize.Delivery, catchUp *CatchUp, tail sync.Tail) *Events {
	return &Events{authorizer: authorizer, delivery: delivery, catchUp: catchUp, tail: tail}
}

// EventPage is a page of what the caller missed, and the head of the log when it was read.
type EventPage struct {
	sync.Page
	HeadSeq int64
}

// Complete reports whether nothing durable lies behind the page.
func (p EventPage) Complete() bool { return p.ThroughSeq >= p.HeadSeq }

// Read gives what the caller may see after a position of an epoch, at most limit events; zero
// leaves the size to the engine. A position that cannot be continued from is resync_required.
func (e *Events) Read(ctx context.Context, epoch ids.ID, after int64, limit int) (EventPage, error) {
	me := actor.From(ctx).ID
	if err := e.authorizer.Authorize(ctx, authorize.ActionEventsCatchUp, authorize.Self(me)); err != nil {
		return EventPage{}, err
	}
	// A caller may come with the position of its own write before this process has passed the
	// event on. What is durable decides whether there is more; what was passed on is given.
	head, err := e.catchUp.Head(ctx)
	if err != nil {
		return EventPage{}, fmt.Errorf("find the head of the log: %w", err)
	}
	if err := e.catchUp.Check(ctx, epoch, after, head); err != nil {
		return EventPage{}, err
	}
	if err := e.delivery.Fill(ctx, me); err != nil {
		return EventPage{}, fmt.Errorf("fill the rights of the caller: %w", err)
	}
	defer e.delivery.Release(me)
	page, err := e.catchUp.Page(ctx, me, after, min(head, e.tail.LocalHead()))
	if err != nil {
		return EventPage{}, err
	}
	if limit > 0 && len(page.Events) > limit {
		page.Events = page.Events[:limit]
		page.ThroughSeq = page.Events[limit-1].Seq
	}
	return EventPage{Page: page, HeadSeq: head}, nil
}
