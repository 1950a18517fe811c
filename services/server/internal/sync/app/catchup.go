// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
	"github.com/OWNER/bothy/services/server/internal/sync/domain"
)

// CatchUpConfig bounds what is caught up.
type CatchUpConfig struct {
	MaxEvents     int64 `key:"sync.catchup_max_events" default:"100000" min:"1000" max:"10000000" doc:"A client further behind than this loads the snapshot instead."`
	ScanRows      int64 `key:"sync.catchup_scan_rows" default:"5000" min:"200" max:"100000" doc:"Positions one page covers at most."`
	PageSize      int   `key:"sync.catchup_page_size" default:"200" min:"10" max:"2000" doc:"Events of one page at most."`
	PageBytes     int   `key:"sync.catchup_page_bytes" type:"bytes" default:"1048576" min:"65536" max:"16777216" doc:"Payload bytes of one page at most, but for a single larger event."`
	MaxConcurrent int   `key:"sync.catchup_max_concurrent" default:"16" min:"1" max:"256" doc:"Pages read from the database at once; others wait."`
}

// errStale means that the rights of a recipient were not in memory at a needed version.
var errStale = errors.New("rights of the recipient are not in memory at the needed version")

// CatchUp implements sync.CatchUp and sync.Log.
type CatchUp struct {
	config   CatchUpConfig
	log      LogReader
	delivery authorize.Delivery
	instance instance.Instance
	barrier  flush.Barrier
	slots    chan struct{}
}

// NewCatchUp makes the engine of catch-up.
func NewCatchUp(config CatchUpConfig, log LogReader, delivery authorize.Delivery, inst instance.Instance, barrier flush.Barrier) *CatchUp {
	return &CatchUp{config: config, log: log, delivery: delivery, instance: inst, barrier: barrier, slots: make(chan struct{}, config.MaxConcurrent)}
}

// Epoch implements sync.Log.
func (c *CatchUp) Epoch(ctx context.Context) (ids.ID, error) {
	info, err := c.instance.Info(ctx)
	if err != nil {
		return ids.ID{}, fmt.Errorf("read the epoch: %w", err)
	}
	return info.SyncEpoch, nil
}

// Head implements sync.Log.
func (c *CatchUp) Head(ctx context.Context) (int64, error) {
	generation := c.barrier.Generation()
	_, head, err := c.log.Bounds(ctx)
	if err != nil {
		return 0, err
	}
	return head, c.barrier.Wait(ctx, generation)
}

// Check implements sync.CatchUp.
func (c *CatchUp) Check(ctx context.Context, epoch ids.ID, cursor, target int64) error {
	own, err := c.Epoch(ctx)
	if err != nil {
		return err
	}
	minSeq, _, err := c.log.Bounds(ctx)
	if err != nil {
		return err
	}
	log := domain.Log{Epoch: own, MinSeq: minSeq, Target: target, MaxEvents: c.config.MaxEvents}
	if reason := log.CheckCursor(epoch, cursor); reason != "" {
		return resync(reason)
	}
	return nil
}

func resync(reason string) error {
	return errs.New(errs.CodeResyncRequired, "Load the snapshot and continue from its head.").WithReason(reason)
}

// Page implements sync.CatchUp. The target is a position this process has passed on, so all
// of the stretch is durable. The recipient's rights must be filled and stay so.
func (c *CatchUp) Page(ctx context.Context, recipient ids.ID, cursor, target int64) (sync.Page, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return sync.Page{}, ctx.Err()
	}
	page, err := c.page(ctx, recipient, cursor, target)
	if errors.Is(err, errStale) {
		if err := c.delivery.Fill(ctx, recipient); err != nil {
			return sync.Page{}, fmt.Errorf("fill the rights of a recipient: %w", err)
		}
		defer c.delivery.Release(recipient)
		page, err = c.page(ctx, recipient, cursor, target)
	}
	if errors.Is(err, errStale) {
		return sync.Page{}, errs.Unavailable(err)
	}
	return page, err
}

func (c *CatchUp) page(ctx context.Context, recipient ids.ID, cursor, target int64) (sync.Page, error) {
	scope, ok := c.delivery.Visible(recipient)
	if !ok {
		return sync.Page{}, errStale
	}
	page := sync.Page{FromSeq: cursor + 1, ThroughSeq: min(target, cursor+c.config.ScanRows)}
	if page.FromSeq > page.ThroughSeq {
		page.ThroughSeq = cursor
		return page, nil
	}
	rows, err := c.log.Visible(ctx, recipient, scope, page.FromSeq, page.ThroughSeq, c.config.PageSize)
	if err != nil {
		return sync.Page{}, err
	}
	if len(rows) == c.config.PageSize {
		page.ThroughSeq = rows[len(rows)-1].Seq
	}
	if err := c.admit(&page, recipient, rows); err != nil {
		return sync.Page{}, err
	}
	stored, err := c.log.Count(ctx, page.FromSeq, page.ThroughSeq)
	if err != nil {
		return sync.Page{}, err
	}
	if stored < page.ThroughSeq-page.FromSeq+1 {
		return sync.Page{}, resync(domain.ResyncRetention)
	}
	return page, nil
}

// admit decides about each row and ends the page early when it grows too large.
func (c *CatchUp) admit(page *sync.Page, recipient ids.ID, rows []eventlog.Record) error {
	size, stale := 0, false
	for _, e := range rows {
		switch verdict := sync.Admit(c.delivery, recipient, e); {
		case verdict == authorize.Unknown:
			stale = true // The others are asked all the same, so that one Fill is enough for all.
			continue
		case verdict == authorize.Denied, stale:
			continue
		}
		size += len(e.Payload)
		if size > c.config.PageBytes && len(page.Events) > 0 {
			page.ThroughSeq = e.Seq - 1
			return nil
		}
		page.Events = append(page.Events, e)
	}
	if stale {
		return errStale
	}
	return nil
}

// Personal implements sync.CatchUp.
func (c *CatchUp) Personal(ctx context.Context, principal ids.ID, cursor, target int64, limit int) ([]eventlog.Record, error) {
	return c.log.Personal(ctx, principal, cursor, target, limit)
}
