// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// todo is what the writer does next.
type todo int

const (
	doWait todo = iota
	doWrite
	doClose
	doRecheck
	doCatchUp
	doSnapshot
)

// writeLoop sends what waits, brings the connection up, and watches its deadlines.
func (c *conn) writeLoop(ctx context.Context) {
	clk := c.gateway.deps.Clock
	timer := clk.NewTimer(c.untilDeadline(clk.Now()))
	defer timer.Stop()
	for {
		what, f := c.next()
		switch what {
		case doClose:
			c.finish()
			return
		case doWrite:
			if !c.write(ctx, f.bytes) {
				return
			}
			continue
		case doRecheck:
			c.revalidate(ctx)
			continue
		case doCatchUp:
			if !c.catchUpStep(ctx) {
				return
			}
			continue
		case doSnapshot:
			c.sendSnapshots(ctx)
			continue
		case doWait:
		}
		timer.Reset(c.untilDeadline(clk.Now()))
		select {
		case <-ctx.Done():
			return
		case <-c.notify:
		case <-timer.C():
			c.overdue(ctx, clk.Now())
		}
	}
}

func (c *conn) next() (todo, frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing != nil && c.closeNow {
		return doClose, frame{}
	}
	if c.recheck && c.identified {
		c.recheck = false
		return doRecheck, frame{}
	}
	if f, ok := c.queue.pop(); ok {
		return doWrite, f
	}
	switch {
	case c.closing != nil:
		return doClose, frame{}
	case c.catchUp != nil && c.identified:
		return doCatchUp, frame{}
	case len(c.needSnapshot) > 0:
		return doSnapshot, frame{}
	default:
		return doWait, frame{}
	}
}

// write sends one frame; false means that the connection has ended.
func (c *conn) write(ctx context.Context, text []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, c.gateway.config.WriteTimeout)
	defer cancel()
	err := c.transport.Write(ctx, text)
	if err == nil {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.transport.Close(int(domain.CloseTooSlow), tooSlow.Reason())
		c.gateway.deps.Observer.Closed(int(domain.CloseTooSlow))
	}
	return false
}

// finish ends the connection. What was to be said before went out with the queue.
func (c *conn) finish() {
	c.mu.Lock()
	end := *c.closing
	c.mu.Unlock()
	if end.Code == 0 {
		c.transport.Close(normalClosure, "")
		return
	}
	c.transport.Close(int(end.Code), end.Reason())
	c.gateway.deps.Observer.Closed(int(end.Code))
}

// normalClosure is the code of RFC 6455 for an end that nobody needs to explain.
const normalClosure = 1000

// untilDeadline is the time to the next thing that must happen without a signal.
func (c *conn) untilDeadline(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg := c.gateway.config
	if !c.identified {
		return c.openedAt.Add(cfg.IdentifyTimeout).Sub(now)
	}
	next := c.lastBeat.Add(cfg.heartbeatDeadline())
	if expires := c.actor.CredentialExpiresAt; !expires.IsZero() {
		due := expires
		if !c.reauthAsked {
			due = expires.Add(-cfg.ReauthLead)
		}
		if due.Before(next) {
			next = due
		}
	}
	if check := c.checkedAt.Add(cfg.RevalidateEvery); check.Before(next) {
		next = check
	}
	return next.Sub(now)
}

// overdue acts on the deadlines that have passed.
func (c *conn) overdue(ctx context.Context, now time.Time) {
	cfg := c.gateway.config
	c.mu.Lock()
	identified, beat, expires, asked := c.identified, c.lastBeat, c.actor.CredentialExpiresAt, c.reauthAsked
	checked := c.checkedAt
	c.mu.Unlock()
	switch {
	case !identified:
		if !now.Before(c.openedAt.Add(cfg.IdentifyTimeout)) {
			c.closeWith(domain.Close{Code: domain.CloseIdentifyTimeout})
		}
	case !now.Before(beat.Add(cfg.heartbeatDeadline())):
		c.closeWith(domain.Close{Code: domain.CloseHeartbeatMissed})
	case !expires.IsZero() && !now.Before(expires):
		c.closeAfterQueue(domain.Close{Code: domain.CloseCredentialsEnded, Detail: "expired"})
	case !expires.IsZero() && !asked && !now.Before(expires.Add(-cfg.ReauthLead)):
		c.askReauth(ctx, "expiring", expires.Sub(now))
	case !now.Before(checked.Add(cfg.RevalidateEvery)):
		c.recheckSoon()
	}
}

func (c *conn) askReauth(ctx context.Context, reason string, left time.Duration) {
	c.mu.Lock()
	c.reauthAsked = true
	c.mu.Unlock()
	c.send("reauth_required", "", map[string]any{
		"deadline_ms": left.Milliseconds(), "reason": reason, "dpop_nonce": c.gateway.deps.Nonce(ctx),
	})
}

// revalidate checks that the credential still lives. A source that cannot answer changes
// nothing: the check comes again.
func (c *conn) revalidate(ctx context.Context) {
	c.mu.Lock()
	who := c.actor
	c.checkedAt = c.gateway.deps.Clock.Now()
	c.mu.Unlock()
	fresh, err := c.gateway.deps.Authenticator.Revalidate(ctx, who)
	if err != nil {
		if errs.As(err).Kind() == errs.KindUnauthenticated {
			c.closeAfterQueue(domain.Close{Code: domain.CloseCredentialsEnded, Detail: errs.As(err).Reason})
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.actor.CredentialExpiresAt.Equal(who.CredentialExpiresAt) {
		c.actor = fresh
	}
}

// Catching up.

const (
	// catchUpPatience is how long rights that cannot be read keep a connection waiting.
	catchUpPatience = 30 * time.Second
	catchUpPause    = 250 * time.Millisecond
)

// catchUpStep sends one page, or ends the catching up and lets the live events follow.
// False means that the connection has ended.
func (c *conn) catchUpStep(ctx context.Context) bool {
	cursor, target, done := c.catchUpPosition()
	if done {
		return true
	}
	page, err := c.gateway.deps.CatchUp.Page(ctx, c.principal, cursor, target)
	if err != nil {
		return c.catchUpFailed(ctx, err)
	}
	if len(page.Events) > 0 || page.ThroughSeq >= target {
		text, err := encodePage(page, target)
		if err != nil {
			c.closeWith(domain.Close{Code: domain.CloseInternal})
			return true
		}
		if !c.write(ctx, text) {
			return false
		}
		for _, e := range page.Events {
			c.gateway.deps.Observer.Event(e.Type)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catchUp != nil {
		c.catchUp.cursor = page.ThroughSeq
		c.catchUp.since = c.gateway.deps.Clock.Now()
	}
	return true
}

// catchUpPosition gives the stretch to read next. When nothing is left it hands over to the
// live events, under the hub's lock, so that none falls between.
func (c *conn) catchUpPosition() (cursor, target int64, done bool) {
	h := c.gateway.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.catchUp
	if state == nil {
		return 0, 0, true
	}
	if state.cursor < state.target {
		return state.cursor, state.target, false
	}
	if c.liveLost {
		c.live.clear()
		c.liveLost = false
		state.target = h.head
		if state.cursor < state.target {
			return state.cursor, state.target, false
		}
	}
	if !state.silent {
		complete, _ := json.Marshal(map[string]int64{"cursor": state.target})
		c.queue.frames = append(c.queue.frames, frame{bytes: encodeFrame("catchup.complete", "", complete), durable: true})
	}
	for _, f := range c.live.frames {
		c.queue.frames = append(c.queue.frames, f)
		c.queue.bytes += len(f.bytes)
	}
	c.live.clear()
	c.catchUp = nil
	// The rights may have been read anew meanwhile, of somebody who stood nowhere.
	h.index.refill(c.principal)
	return 0, 0, true
}

func (c *conn) catchUpFailed(ctx context.Context, err error) bool {
	fault := errs.As(err)
	if fault.Code == errs.CodeResyncRequired {
		c.sendError("", "identify", fault)
		c.closeAfterQueue(domain.Close{Code: domain.CloseCursor, Detail: fault.Reason})
		return true
	}
	c.mu.Lock()
	since := c.gateway.deps.Clock.Now()
	if c.catchUp != nil {
		since = c.catchUp.since
	}
	c.mu.Unlock()
	if c.gateway.deps.Clock.Now().Sub(since) > catchUpPatience {
		c.gateway.deps.Log.Error("connection cannot catch up", "component", "gateway", "error", err)
		c.closeWith(domain.Close{Code: domain.CloseInternal})
		return true
	}
	return pause(ctx, c.gateway.deps.Clock, catchUpPause)
}

// pause waits on the clock; false means that the context has ended.
func pause(ctx context.Context, clk clock.Clock, d time.Duration) bool {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}

func encodePage(page sync.Page, target int64) ([]byte, error) {
	events := make([]json.RawMessage, 0, len(page.Events))
	for _, e := range page.Events {
		envelope, err := sync.Envelope(e)
		if err != nil {
			return nil, err
		}
		events = append(events, envelope)
	}
	d, err := json.Marshal(struct {
		Events     []json.RawMessage `json:"events"`
		FromSeq    int64             `json:"from_seq"`
		ThroughSeq int64             `json:"through_seq"`
		ToSeq      int64             `json:"to_seq"`
	}{events, page.FromSeq, page.ThroughSeq, target})
	if err != nil {
		return nil, err
	}
	return encodeFrame("catchup.page", "", d), nil
}

// sendSnapshots makes up for progress that was dropped.
func (c *conn) sendSnapshots(ctx context.Context) {
	c.mu.Lock()
	list := c.needSnapshot
	c.needSnapshot = nil
	who := c.actor
	c.mu.Unlock()
	ctx = actor.With(ctx, who)
	for run := range list {
		c.gateway.sendRunSnapshot(ctx, c, run)
	}
}

// sentThrough is a position up to which everything admitted is sent before whatever is put
// into the queue next.
func (c *conn) sentThrough() int64 {
	if c.consumer != nil {
		return c.consumer.position()
	}
	head := c.gateway.hub.position()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catchUp != nil {
		return c.catchUp.cursor
	}
	return head
}

func idOrNil(id ids.ID) *ids.ID { return id.Ptr() }
