// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const (
	// denialQueue bounds the denials that wait to be written. A denial is made inside a unit
	// that is about to be rolled back and holds a connection, so writing it there and then
	// could wait for a second connection for ever; it is written right after instead.
	denialQueue = 1024
	// denialBatch is how many rows one unit writes.
	denialBatch = 64
	// maxWindows bounds the kinds of denials that are counted at one time.
	maxWindows = 10_000
	// lastDenials is how long a stopping process may take to write what waits.
	lastDenials = 5 * time.Second
	// ipKeyCheck is how often the keys of the pseudonyms are looked after.
	ipKeyCheck = time.Hour
)

// denials collects denials and lets equal ones within a window become one row, so that a
// flood of them cannot fill the log.
type denials struct {
	s     *Service
	queue chan domain.Row

	mu      sync.Mutex
	windows map[denialKey]*window
}

// denialKey is what makes two denials equal. Anonymous callers are told apart by address.
type denialKey struct {
	actor    ids.ID
	ip       string
	action   string
	resource ids.ID
	reason   string
}

type window struct {
	row   domain.Row
	count int
	until time.Time
}

func newDenials(s *Service) *denials {
	return &denials{s: s, queue: make(chan domain.Row, denialQueue), windows: map[denialKey]*window{}}
}

// Denied implements auditing.Recorder. It never blocks: the row is written by Run.
func (s *Service) Denied(ctx context.Context, e auditing.Entry) {
	row, err := s.row(ctx, e, auditing.Deny)
	if err != nil {
		s.lost(ctx, 1, err)
		return
	}
	select {
	case s.denials.queue <- row:
	default:
		s.lost(ctx, 1, nil)
	}
}

func (s *Service) lost(ctx context.Context, n int, err error) {
	s.log.Error("denials are missing from the audit log", "count", n, "error", err)
	s.metrics.DenialsLost(ctx, n)
}

// Run writes denials until the context ends, and then what still waits. It also looks after
// the keys of the pseudonyms.
func (s *Service) Run(ctx context.Context) error {
	work := actor.With(context.WithoutCancel(ctx), actor.System())
	check := s.clock.NewTimer(ipKeyCheck)
	defer check.Stop()
	for {
		timer := s.clock.NewTimer(s.cfg.DenyWindow)
		select {
		case row := <-s.denials.queue:
			s.denials.take(work, row)
		case <-timer.C():
			s.denials.close(work, false)
		case <-check.C():
			if err := s.EnsureIPKeys(work); err != nil {
				s.log.Error("the keys of the address pseudonyms cannot be renewed", "error", err)
			}
			check.Reset(ipKeyCheck)
		case <-ctx.Done():
			timer.Stop()
			last, cancel := context.WithTimeout(work, lastDenials)
			defer cancel()
			s.Drain(last)
			return nil
		}
		timer.Stop()
	}
}

// Drain writes everything that waits, with the counts of windows that are still open. For
// commands, which have no Run, for the end of the process and for tests.
func (s *Service) Drain(ctx context.Context) {
	ctx = actor.With(ctx, actor.System())
	for {
		select {
		case row := <-s.denials.queue:
			s.denials.take(ctx, row)
		default:
			s.denials.close(ctx, true)
			return
		}
	}
}

// take handles one denial and those that wait behind it.
func (d *denials) take(ctx context.Context, first domain.Row) {
	rows := d.due(nil, first)
	for len(rows) < denialBatch {
		select {
		case row := <-d.queue:
			rows = d.due(rows, row)
			continue
		default:
		}
		break
	}
	d.write(ctx, rows)
	d.close(ctx, false)
}

// due adds the row when it opens a window, and counts it otherwise.
func (d *denials) due(rows []domain.Row, row domain.Row) []domain.Row {
	key := denialKey{actor: row.Actor.ID, action: row.Action, resource: row.ResourceID, reason: row.Reason}
	if key.actor.IsZero() {
		key.ip = row.IPPseudonym
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.windows[key]; w != nil && row.OccurredAt.Before(w.until) {
		w.row = row
		w.count++
		return rows
	} else if w != nil && w.count > 0 {
		rows = append(rows, w.counted())
	}
	if len(d.windows) < maxWindows {
		d.windows[key] = &window{row: row, until: row.OccurredAt.Add(d.s.cfg.DenyWindow)}
	}
	return append(rows, row)
}

// counted is the row at the end of a window: the last denial, and how many it stands for.
func (w *window) counted() domain.Row {
	row := w.row
	details := map[string]any{}
	_ = json.Unmarshal(row.Details, &details) // It was encoded by this package.
	details[domain.CountKey] = w.count
	if raw, err := json.Marshal(details); err == nil {
		row.Details = raw
	}
	return row
}

// close ends windows whose time is over, or all of them.
func (d *denials) close(ctx context.Context, all bool) {
	now := d.s.clock.Now()
	var rows []domain.Row
	d.mu.Lock()
	for key, w := range d.windows {
		if !all && now.Before(w.until) {
			continue
		}
		if w.count > 0 {
			rows = append(rows, w.counted())
		}
		delete(d.windows, key)
	}
	d.mu.Unlock()
	for len(rows) > 0 {
		n := min(len(rows), denialBatch)
		d.write(ctx, rows[:n])
		rows = rows[n:]
	}
}

func (d *denials) write(ctx context.Context, rows []domain.Row) {
	if len(rows) == 0 {
		return
	}
	// A unit of the caller must not swallow the rows: it is the one that was refused.
	if err := d.s.writeRows(txn.WithUnit(ctx, nil), rows); err != nil {
		d.s.lost(ctx, len(rows), err)
	}
}
