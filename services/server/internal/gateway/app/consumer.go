// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	gosync "sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// consumer reads the log for an agent from its own place: events come in order, at least
// once, and the place moves when the agent says that it is safe. One goroutine per agent
// connection reads, sends and saves.
type consumer struct {
	conn   *conn
	wake   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}

	mu    gosync.Mutex
	sent  int64 // highest position covered, sent or withheld
	last  int64 // highest position of a frame that was sent
	acked int64
	saved int64
	open  []int64 // positions sent and not acknowledged, ascending
	// savedAt is when the place was stored last.
	savedAt time.Time
}

func newConsumer(c *conn, acked int64) *consumer {
	return &consumer{conn: c, wake: make(chan struct{}, 1), sent: acked, last: acked, acked: acked, saved: acked, savedAt: c.gateway.deps.Clock.Now()}
}

// position is how far everything has been sent or withheld.
func (a *consumer) position() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent
}

func (a *consumer) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *consumer) start(who actor.Actor) {
	ctx, cancel := context.WithCancel(actor.With(context.Background(), who))
	a.cancel, a.done = cancel, make(chan struct{})
	go func() {
		defer close(a.done)
		defer a.conn.recover("consumer")
		a.run(ctx)
	}()
	a.wakeUp()
}

// stop ends the reading and saves the place; a session that was taken over saves nothing.
func (a *consumer) stop() {
	if a.cancel == nil {
		return
	}
	a.cancel()
	<-a.done
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = a.save(ctx)
}

// savePatience bounds how long a stopping process tries to store the places of its agents.
const savePatience = 5 * time.Second

// savePlaces stores the places of all agents, side by side. A place that cannot be stored
// costs its agent a redelivery and holds up nobody else.
func (g *Gateway) savePlaces(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	var saving gosync.WaitGroup
	for _, a := range g.hub.consumers() {
		saving.Go(func() {
			if err := a.save(ctx); err != nil {
				g.deps.Log.WarnContext(ctx, "place of an agent cannot be saved", "component", "gateway.consumer", "agent_id", a.conn.principal, "error", err)
			}
		})
	}
	saving.Wait()
}

// acknowledge takes the agent's word that everything up to seq is safe with it.
func (a *consumer) acknowledge(seq int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if seq > a.last {
		return errs.Invalid("/d/seq", "not_sent", fmt.Sprintf("The highest position sent is %d.", a.last))
	}
	if seq <= a.acked {
		return nil
	}
	a.acked = seq
	for len(a.open) > 0 && a.open[0] <= seq {
		a.open = a.open[1:]
	}
	a.wakeUp()
	return nil
}

// The pauses behind an event that cannot be prepared. Later events wait, so that order holds.
const (
	firstRetry = time.Second
	maxRetry   = 30 * time.Second
)

func (a *consumer) run(ctx context.Context) {
	g := a.conn.gateway
	retry := firstRetry
	for {
		wait := g.config.AckInterval
		more, err := a.step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			g.deps.Log.WarnContext(ctx, "event for an agent cannot be prepared", "component", "gateway.consumer", "agent_id", a.conn.principal, "error", err)
			wait, retry = retry, min(2*retry, maxRetry)
		case more:
			retry = firstRetry
			continue
		default:
			retry = firstRetry
		}
		timer := g.deps.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-a.wake:
			timer.Stop()
			if err != nil && !pause(ctx, g.deps.Clock, wait) {
				return
			}
		}
		a.saveIfDue(ctx)
	}
}

// step sends the next events, as far as the window allows; more is true when it stopped
// before the end of what is there.
func (a *consumer) step(ctx context.Context) (more bool, err error) {
	const batch = 50
	g := a.conn.gateway
	a.mu.Lock()
	from, room := a.sent, g.config.ConsumerWindow-len(a.open)
	a.mu.Unlock()
	head := g.hub.position()
	if from >= head || room <= 0 {
		return false, nil
	}
	limit := min(batch, room)
	events, err := g.deps.CatchUp.Personal(ctx, a.conn.principal, from, head, limit)
	if err != nil {
		return false, fmt.Errorf("read the events: %w", err)
	}
	for _, e := range events {
		if err := a.deliver(ctx, e); err != nil {
			return false, fmt.Errorf("event %d of type %s: %w", e.Seq, e.Type, err)
		}
	}
	if len(events) < limit {
		a.mu.Lock()
		a.sent = max(a.sent, head)
		a.mu.Unlock()
		return false, nil
	}
	return true, nil
}

func (a *consumer) deliver(ctx context.Context, e eventlog.Record) error {
	g := a.conn.gateway
	covered := func(sent bool) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sent = e.Seq
		if sent {
			a.last = e.Seq
			a.open = append(a.open, e.Seq)
		}
	}
	switch sync.Admit(g.deps.Delivery, a.conn.principal, e) {
	case authorize.Unknown:
		return errs.Unavailable(g.deps.Delivery.Fill(ctx, a.conn.principal))
	case authorize.Denied:
		covered(false)
		return nil
	case authorize.Admitted:
	}
	if e.Type == "agent.invocation" || e.Type == "agent.followup" {
		prepared, err := g.deps.RunDelivery.Prepare(ctx, a.conn.principal, e.Type, e.EventID, e.Payload)
		if err != nil {
			return err
		}
		if prepared.Refused {
			covered(false)
			return nil
		}
		e.Payload = prepared.Payload
	}
	envelope, err := sync.Envelope(e)
	if err != nil {
		return err
	}
	covered(true)
	a.conn.push(frame{bytes: encodeFrame("dispatch", "", envelope), durable: true})
	g.deps.Observer.Event(e.Type)
	return nil
}

func (a *consumer) saveIfDue(ctx context.Context) {
	g := a.conn.gateway
	a.mu.Lock()
	due := a.acked > a.saved && !g.deps.Clock.Now().Before(a.savedAt.Add(g.config.AckInterval))
	a.mu.Unlock()
	if !due {
		return
	}
	if err := a.save(ctx); err != nil && ctx.Err() == nil {
		g.deps.Log.WarnContext(ctx, "place of an agent cannot be saved", "component", "gateway.consumer", "agent_id", a.conn.principal, "error", err)
	}
}

// save stores the place. The guard in the statement decides who holds the agent: a session
// that does not any more closes.
func (a *consumer) save(ctx context.Context) error {
	a.mu.Lock()
	acked := a.acked
	a.mu.Unlock()
	held, err := a.conn.gateway.deps.Consumers.Save(ctx, a.conn.principal, a.conn.session, acked)
	if err != nil {
		return err
	}
	if !held {
		a.conn.closeWith(domain.Close{Code: domain.CloseConsumerTaken})
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.saved, a.savedAt = max(a.saved, acked), a.conn.gateway.deps.Clock.Now()
	return nil
}
