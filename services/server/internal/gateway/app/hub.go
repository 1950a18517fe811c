// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	gosync "sync"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// hub knows who is connected and who looks at what. Its lock is held while one event is put
// into the queues, so a connection that registers sees every event behind the position it
// is told, and none before. Nothing under the lock waits for a connection.
type hub struct {
	gateway *Gateway

	mu          gosync.Mutex
	head        int64
	byPrincipal map[ids.ID]map[*conn]struct{}
	byFocus     map[ids.ID]map[*conn]struct{}
	byDevice    map[ids.ID]*conn
	index       *index
}

func newHub(g *Gateway) *hub {
	return &hub{
		gateway: g, byPrincipal: map[ids.ID]map[*conn]struct{}{}, byFocus: map[ids.ID]map[*conn]struct{}{}, byDevice: map[ids.ID]*conn{},
		index: newIndex(g.deps.Delivery),
	}
}

func (h *hub) start(head int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head = head
}

// position is the last event that has been put into the queues.
func (h *hub) position() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head
}

// register makes the connection a receiver of events behind the position that it returns.
// An older connection of the same device is handed back for being closed.
func (h *hub) register(c *conn) (head int64, older *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.byPrincipal[c.principal]
	if set == nil {
		set = map[*conn]struct{}{}
		h.byPrincipal[c.principal] = set
		h.index.put(c.principal)
	}
	set[c] = struct{}{}
	if !c.device.IsZero() {
		older = h.byDevice[c.device]
		h.byDevice[c.device] = c
	}
	return h.head, older
}

func (h *hub) unregister(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if set := h.byPrincipal[c.principal]; set != nil {
		delete(set, c)
		if len(set) == 0 {
			delete(h.byPrincipal, c.principal)
			h.index.remove(c.principal)
		}
	}
	if h.byDevice[c.device] == c {
		delete(h.byDevice, c.device)
	}
	h.unfocus(c)
}

// consumers lists the agents that are connected.
func (h *hub) consumers() []*consumer {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*consumer
	for _, set := range h.byPrincipal {
		for c := range set {
			if c.consumer != nil {
				out = append(out, c.consumer)
			}
		}
	}
	return out
}

// count is the number of connections of a principal that have no device.
func (h *hub) count(principal ids.ID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.byPrincipal[principal])
}

// focus replaces what a connection looks at.
func (h *hub) focus(c *conn, threads []ids.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unfocus(c)
	c.focused = threads
	for _, t := range threads {
		set := h.byFocus[t]
		if set == nil {
			set = map[*conn]struct{}{}
			h.byFocus[t] = set
		}
		set[c] = struct{}{}
	}
}

func (h *hub) unfocus(c *conn) {
	for _, t := range c.focused {
		delete(h.byFocus[t], c)
		if len(h.byFocus[t]) == 0 {
			delete(h.byFocus, t)
		}
	}
	c.focused = nil
}

// Deliver implements sync.Follower: it puts one event into the queues of those who may have
// it. The rights in memory have been brought up to the event before.
func (g *Gateway) Deliver(e eventlog.Record) {
	if e.Type == "run.state_changed" {
		// Progress that was gathered before the change leaves before it.
		g.gather.flush(e.Resource.ID)
	}
	h := g.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head = e.Seq
	if !e.PrincipalID.IsZero() {
		var out *frame
		h.deliverTo(e.PrincipalID, e, &out)
	} else {
		h.deliverAt(e)
	}
	h.consequences(e)
}

// deliverAt puts an event that is addressed to nobody into the queues of those at its place.
func (h *hub) deliverAt(e eventlog.Record) {
	var out *frame
	a := h.index.audienceOf(e)
	if !a.all {
		h.index.each(a, func(principal ids.ID) { h.deliverTo(principal, e, &out) })
		return
	}
	for principal := range h.byPrincipal {
		if h.deliverTo(principal, e, &out) == authorize.Admitted && !a.place.IsZero() {
			h.index.saw(principal, a.place)
		}
	}
}

// deliverTo decides once for a principal and fills the queues of its connections. The
// frame is encoded for the first of them.
func (h *hub) deliverTo(principal ids.ID, e eventlog.Record, out **frame) authorize.Verdict {
	set := h.byPrincipal[principal]
	if len(set) == 0 {
		return authorize.Denied
	}
	verdict := sync.Admit(h.gateway.deps.Delivery, principal, e)
	if verdict == authorize.Denied {
		return verdict
	}
	for c := range set {
		switch {
		case c.consumer != nil:
			// An agent reads the log from its own place; this only wakes it.
			if e.PrincipalID == principal {
				c.consumer.wakeUp()
			}
		case verdict == authorize.Unknown:
			c.fallBack(e.Seq - 1)
		default:
			if *out == nil {
				*out = h.encode(e)
			}
			if *out == nil {
				return verdict
			}
			c.enqueueEvent(e.Seq, **out)
			h.gateway.deps.Observer.Event(e.Type)
		}
	}
	return verdict
}

func (h *hub) encode(e eventlog.Record) *frame {
	envelope, err := sync.Envelope(e)
	if err != nil {
		h.gateway.deps.Log.Error("event cannot be encoded", "component", "gateway.hub", "seq", e.Seq, "type", e.Type, "error", err)
		return nil
	}
	return &frame{bytes: encodeFrame("dispatch", "", envelope), durable: true}
}

// consequences are what an event means for open connections beside being sent.
func (h *hub) consequences(e eventlog.Record) {
	switch e.Type {
	case "session.revoked":
		h.endSession(e)
	case "access.changed":
		if len(h.byPrincipal[e.PrincipalID]) > 0 {
			h.index.put(e.PrincipalID)
		}
		for c := range h.byPrincipal[e.PrincipalID] {
			c.recheckSoon()
		}
	case "user.updated", "agent.updated":
		for c := range h.byPrincipal[e.Resource.ID] {
			c.recheckSoon()
		}
	}
}

// endSession closes the connections of a login session that has ended. The event itself is
// in their queues and goes out first, unless a connection still catches up: then the end
// comes at once, with its reason, because nothing more is owed to such a session.
func (h *hub) endSession(e eventlog.Record) {
	var payload struct {
		SessionID ids.ID `json:"session_id"`
		Reason    string `json:"reason"`
	}
	if err := json.Unmarshal(e.Payload, &payload); err != nil {
		h.gateway.deps.Log.Error("payload of session.revoked cannot be read", "component", "gateway.hub", "seq", e.Seq, "error", err)
		return
	}
	for c := range h.byPrincipal[e.PrincipalID] {
		if c.login == payload.SessionID {
			c.closeAfterQueue(domain.Close{Code: domain.CloseCredentialsEnded, Detail: payload.Reason})
		}
	}
}

// CredentialEnded makes the connections of a principal check their credential at once. It is
// called in the process in which a token was revoked; others find out by their interval.
func (g *Gateway) CredentialEnded(principal ids.ID) {
	g.hub.mu.Lock()
	defer g.hub.mu.Unlock()
	for c := range g.hub.byPrincipal[principal] {
		c.recheckSoon()
	}
}
