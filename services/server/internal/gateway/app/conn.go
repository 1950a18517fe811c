// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime/debug"
	gosync "sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// conn is one connection. One goroutine reads and runs the ops one after the other, one
// writes; they meet in the queue. The lock is never held while something waits, and it is
// taken behind the hub's, never before.
type conn struct {
	gateway   *Gateway
	transport Transport
	ip        netip.Addr
	openedAt  time.Time
	notify    chan struct{}
	// newcomer names the connection before it has a session.
	newcomer ids.ID

	// Set by identify and then constant. The hub reads them only of registered connections.
	principal, device, login, token ids.ID
	session                         ids.ID
	consumer                        *consumer

	// focused belongs to the hub's lock.
	focused []ids.ID

	// The reader alone uses these.
	focus       focusState
	typing      map[ids.ID]time.Time
	identifying int
	refused     refusals
	beats       beats

	mu           gosync.Mutex
	queue        queue
	live         queue
	liveLost     bool
	catchUp      *catchUpState
	identified   bool
	closing      *domain.Close
	closeNow     bool
	actor        actor.Actor
	lastBeat     time.Time
	reauthAsked  bool
	recheck      bool
	checkedAt    time.Time
	needSnapshot map[ids.ID]struct{}
}

// catchUpState is how far a connection has been brought up. Events that are committed
// meanwhile wait in the queue live.
type catchUpState struct {
	cursor, target int64
	// silent is set for a client that named no cursor: it missed nothing.
	silent bool
	since  time.Time
}

func newConn(g *Gateway, t Transport, ip netip.Addr) *conn {
	now := g.deps.Clock.Now()
	c := &conn{
		gateway: g, transport: t, ip: ip, openedAt: now, lastBeat: now, notify: make(chan struct{}, 1), newcomer: ids.New(), typing: map[ids.ID]time.Time{},
		queue: queue{maxFrames: g.config.QueueFrames, maxBytes: g.config.QueueBytes},
		live:  queue{maxFrames: g.config.QueueFrames, maxBytes: g.config.QueueBytes},
	}
	return c
}

// run keeps the connection until it ends, for whatever reason.
func (c *conn) run(ctx context.Context, cancel context.CancelFunc) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		defer c.recover("write")
		c.writeLoop(ctx)
	}()
	c.hello(ctx)
	func() {
		defer c.recover("read")
		c.readLoop(ctx)
	}()
	// The writer may still have a close to send; a peer that is gone fails at once.
	c.closeWith(domain.Close{})
	<-written
	c.end()
}

// recover keeps a fault of one connection from ending the process.
func (c *conn) recover(what string) {
	if cause := recover(); cause != nil {
		c.gateway.deps.Log.Error("panic on a gateway connection", "component", "gateway", "part", what, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		c.transport.Close(int(domain.CloseInternal), domain.CloseInternal.Name())
	}
}

// end lets go of everything the connection held.
func (c *conn) end() {
	g := c.gateway
	c.mu.Lock()
	identified := c.identified
	c.mu.Unlock()
	if !identified {
		g.settled(c.ip)
		return
	}
	g.hub.unregister(c)
	if c.consumer != nil {
		c.consumer.stop()
	} else {
		g.sessions.keep(session{id: c.session, principal: c.principal, device: c.device, login: c.login, token: c.token, focus: c.focus})
	}
	g.deps.Delivery.Release(c.principal)
}

func (c *conn) signal() {
	select {
	case c.notify <- struct{}{}:
	default:
	}
}

// send puts an answer into the queue, ahead of nothing and behind everything before it.
func (c *conn) send(op, id string, d any) {
	payload, err := json.Marshal(d)
	if err != nil {
		c.gateway.deps.Log.Error("frame cannot be encoded", "component", "gateway", "op", op, "error", err)
		c.closeWith(domain.Close{Code: domain.CloseInternal})
		return
	}
	c.push(frame{bytes: encodeFrame(op, id, payload), durable: true})
}

func (c *conn) push(f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushLocked(&c.queue, f)
	c.signal()
}

func (c *conn) pushLocked(q *queue, f frame) {
	switch q.push(f) {
	case taken:
	case dropped:
		if !f.run.IsZero() {
			if c.needSnapshot == nil {
				c.needSnapshot = map[ids.ID]struct{}{}
			}
			c.needSnapshot[f.run] = struct{}{}
		}
	case overflow:
		if q == &c.live {
			// What does not fit is read from the log again, so catching up never closes.
			c.live.clear()
			c.liveLost = true
			return
		}
		c.closeLocked(tooSlow, true)
	}
}

// enqueueEvent takes an event of the log from the hub, in order.
func (c *conn) enqueueEvent(_ int64, f frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catchUp != nil {
		if !c.liveLost {
			c.pushLocked(&c.live, f)
		}
		return
	}
	c.pushLocked(&c.queue, f)
	c.signal()
}

// fallBack sends the connection back to catching up behind a position, because the rights
// it is decided with are not in memory. The tail does not wait for them.
func (c *conn) fallBack(cursor int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.liveLost = true
	c.live.clear()
	if c.catchUp == nil {
		c.catchUp = &catchUpState{cursor: cursor, target: cursor, since: c.gateway.deps.Clock.Now()}
	}
	c.signal()
}

// recheckSoon makes the writer check the credential before it sends anything further.
func (c *conn) recheckSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recheck = true
	c.signal()
}

// closeWith ends the connection without sending what waits. A zero code only ends it.
func (c *conn) closeWith(end domain.Close) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(end, true)
}

// closeAfterQueue ends the connection when everything that waits has been sent.
func (c *conn) closeAfterQueue(end domain.Close) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeLocked(end, false)
}

func (c *conn) closeLocked(end domain.Close, now bool) {
	if c.closing == nil {
		c.closing = &end
	}
	c.closeNow = c.closeNow || now
	c.signal()
}

// encodeFrame writes a frame around a payload that is JSON already.
func encodeFrame(op, id string, d json.RawMessage) []byte {
	b := make([]byte, 0, len(d)+len(op)+len(id)+24)
	b = append(b, `{"op":"`...)
	b = append(b, op...)
	if id != "" {
		quoted, _ := json.Marshal(id)
		b = append(b, `","id":`...)
		b = append(b, quoted...)
		b = append(b, `,"d":`...)
	} else {
		b = append(b, `","d":`...)
	}
	b = append(b, d...)
	return append(b, '}')
}
