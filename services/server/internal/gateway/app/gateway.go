// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"log/slog"
	"net/netip"
	gosync "sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// Transport carries the frames of one connection.
type Transport interface {
	// Read gives the next text frame. A fault of the peer is a domain.Close; any other error
	// means that the connection is gone.
	Read(ctx context.Context) ([]byte, error)
	// Write sends one text frame; it fails when the peer does not take it in time.
	Write(ctx context.Context, frame []byte) error
	// Close ends the connection with a code.
	Close(code int, reason string)
}

// Limiter takes a token from a bucket; false comes with the time until the next.
type Limiter interface {
	Take(class, key string) (ok bool, retryAfter time.Duration)
}

// Principals names the principal of a connection for the answer to identify.
type Principals interface {
	// Name gives handle and display name.
	Name(ctx context.Context, principal ids.ID) (handle, displayName string, err error)
}

// Instance is what the gateway says about the installation.
type Instance struct {
	ID            ids.ID
	SyncEpoch     ids.ID
	ServerVersion string
	// URL is the public address of the gateway, for which proofs are made.
	URL string
}

// Observer is told what happens, for metrics and for the accounting of tests.
type Observer interface {
	// Op is called after each op with its error code, empty for success.
	Op(op, code string)
	// Event is called when an event is put into the queue of a connection.
	Event(eventType string)
	// Closed is called when a connection ends by the server's will.
	Closed(code int)
}

// Deps are the parts the gateway works with.
type Deps struct {
	Instance      Instance
	Authenticator actor.Authenticator
	Authorizer    authorize.Authorizer
	Delivery      authorize.Delivery
	CatchUp       sync.CatchUp
	Principals    Principals
	Threads       chat.Threads
	Presence      agents.Presence
	Consumers     agents.Consumers
	RunDelivery   runs.Delivery
	RunUpdates    runs.Updates
	RunReads      runs.Reads
	Limiter       Limiter
	// Request prepares the context of one op, as the chain does for a request; nil for nothing.
	Request func(ctx context.Context) context.Context
	// Nonce gives a fresh nonce for proofs.
	Nonce func(ctx context.Context) string
	// Ready reports whether the installation has an owner.
	Ready    func(ctx context.Context) (bool, error)
	Clock    clock.Clock
	Log      *slog.Logger
	Observer Observer
}

// Gateway accepts connections and keeps them.
type Gateway struct {
	config   Config
	deps     Deps
	hub      *hub
	sessions *sessions
	gather   *gatherer

	mu           gosync.Mutex
	connections  map[*conn]struct{}
	unidentified map[netip.Addr]int
	draining     bool
	running      gosync.WaitGroup
}

// New makes a gateway. Follow it with the log tail and start it at the tail's position.
func New(config Config, deps Deps) *Gateway {
	g := &Gateway{
		config: config, deps: deps, sessions: newSessions(config.ResumeWindow, config.MaxSessions, deps.Clock),
		connections: map[*conn]struct{}{}, unidentified: map[netip.Addr]int{},
	}
	g.hub = newHub(g)
	g.gather = newGatherer(config.CoalesceInterval, deps.Clock, g.hub.sendProgress, g.snapshotOf)
	return g
}

// Start sets the position behind which events are delivered; call it before the tail runs.
func (g *Gateway) Start(head int64) { g.hub.start(head) }

// Refusal tells why a connection cannot be taken, before the upgrade.
type Refusal int

// The refusals. RefusedNone means that Serve may be called.
const (
	RefusedNone Refusal = iota
	RefusedFull
	RefusedUnidentified
	RefusedDraining
)

// Admit counts a connection in before the upgrade. Every RefusedNone is followed by Serve.
func (g *Gateway) Admit(ip netip.Addr) Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.draining:
		return RefusedDraining
	case len(g.connections)+g.waiting() >= g.config.MaxConnections:
		return RefusedFull
	case g.unidentified[ip] >= g.config.MaxUnidentified:
		return RefusedUnidentified
	}
	g.unidentified[ip]++
	g.running.Add(1)
	return RefusedNone
}

// waiting counts admitted connections that have not identified themselves.
func (g *Gateway) waiting() int {
	n := 0
	for _, count := range g.unidentified {
		n += count
	}
	return n
}

// settled takes a connection out of the count of those that have not identified themselves.
func (g *Gateway) settled(ip netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unidentified[ip]--; g.unidentified[ip] <= 0 {
		delete(g.unidentified, ip)
	}
}

// Forget undoes Admit for a connection whose upgrade failed.
func (g *Gateway) Forget(ip netip.Addr) {
	g.settled(ip)
	g.running.Done()
}

// Serve keeps one admitted connection until it ends.
func (g *Gateway) Serve(ctx context.Context, t Transport, ip netip.Addr) {
	defer g.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := newConn(g, t, ip)
	g.mu.Lock()
	g.connections[c] = struct{}{}
	draining := g.draining
	g.mu.Unlock()
	if draining {
		c.closeWith(g.restartClose())
	}
	c.run(ctx, cancel)
	g.mu.Lock()
	delete(g.connections, c)
	g.mu.Unlock()
}

// Drain closes every connection so that clients come back to another process or to the next
// one, and waits until all are gone or the context ends. The places of agents are stored
// before any connection closes: whoever comes back elsewhere must not be sent again what it
// has acknowledged here.
func (g *Gateway) Drain(ctx context.Context) error {
	g.mu.Lock()
	g.draining = true
	list := make([]*conn, 0, len(g.connections))
	for c := range g.connections {
		list = append(list, c)
	}
	g.mu.Unlock()
	g.savePlaces(ctx)
	for _, c := range list {
		c.closeWith(g.restartClose())
	}
	done := make(chan struct{})
	go func() { g.running.Wait(); close(done) }()
	select {
	case <-done:
		g.gather.stop()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Connections is the number of open connections.
func (g *Gateway) Connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.connections)
}
