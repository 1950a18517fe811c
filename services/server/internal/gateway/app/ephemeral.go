// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	gosync "sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// Publish implements eventlog.EphemeralPublisher.
func (g *Gateway) Publish(_ context.Context, e eventlog.Ephemeral) {
	if update, ok := e.Payload.(runs.Updated); ok {
		g.gather.add(progressOf(update, e))
		return
	}
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		g.deps.Log.Error("signal cannot be encoded", "component", "gateway", "type", e.Type, "error", err)
		return
	}
	g.hub.sendSignal(e, payload, ids.ID{})
}

// sendSignal puts a signal into the queues of those who look at its thread, or of everybody
// when it lies in none. Each receiver is decided on at this moment.
func (h *hub) sendSignal(e eventlog.Ephemeral, payload json.RawMessage, run ids.ID) {
	record := signalRecord(e, payload)
	envelope, err := sync.Envelope(record)
	if err != nil {
		h.gateway.deps.Log.Error("signal cannot be encoded", "component", "gateway.hub", "type", e.Type, "error", err)
		return
	}
	out := frame{bytes: encodeFrame("ephemeral", "", envelope), run: run}
	h.mu.Lock()
	defer h.mu.Unlock()
	send := func(c *conn) {
		if c.consumer != nil || c.principal == e.ExceptPrincipalID {
			return
		}
		if sync.Admit(h.gateway.deps.Delivery, c.principal, record) == authorize.Admitted {
			c.push(out)
			h.gateway.deps.Observer.Event(e.Type)
		}
	}
	if !e.Place.ThreadID.IsZero() {
		for c := range h.byFocus[e.Place.ThreadID] {
			send(c)
		}
		return
	}
	for _, set := range h.byPrincipal {
		for c := range set {
			send(c)
		}
	}
}

func signalRecord(e eventlog.Ephemeral, payload json.RawMessage) eventlog.Record {
	return eventlog.Record{
		EventID: ids.NewAt(e.OccurredAt), Type: e.Type, OccurredAt: e.OccurredAt, Actor: e.Actor, Place: e.Place,
		PrincipalID: e.PrincipalID, Payload: payload, Resource: signalResource(e),
	}
}

// signalResource names the agent of a change of presence, which is checked on the agent.
func signalResource(e eventlog.Ephemeral) eventlog.Resource {
	if e.Type == "agent.presence_changed" {
		return eventlog.Resource{Type: "agent", ID: e.Actor.ID}
	}
	return eventlog.Resource{}
}

// Progress of runs.

// snapshotAbove is the weight of gathered patches above which the whole run is sent.
const snapshotAbove = 64 << 10

// gatherer lets progress of a run leave at most once per interval: the first step goes at
// once, later ones gather and leave as one. One short-lived goroutine per run that is
// making progress.
type gatherer struct {
	interval time.Duration
	clock    clock.Clock
	send     func(domain.RunProgress)
	snapshot func(ctx context.Context, run ids.ID)

	mu      gosync.Mutex
	open    map[ids.ID]*domain.RunProgress
	ctx     context.Context
	cancel  context.CancelFunc
	running gosync.WaitGroup
}

func newGatherer(interval time.Duration, clk clock.Clock, send func(domain.RunProgress), snapshot func(context.Context, ids.ID)) *gatherer {
	ctx, cancel := context.WithCancel(context.Background())
	return &gatherer{interval: interval, clock: clk, send: send, snapshot: snapshot, open: map[ids.ID]*domain.RunProgress{}, ctx: ctx, cancel: cancel}
}

func (g *gatherer) add(p domain.RunProgress) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return
	}
	if waiting, ok := g.open[p.RunID]; ok {
		waiting.Gather(p)
		return
	}
	g.open[p.RunID] = &domain.RunProgress{}
	g.send(p)
	g.running.Go(func() { g.window(p.RunID) })
}

// window ends with the first interval in which nothing gathered.
func (g *gatherer) window(run ids.ID) {
	for pause(g.ctx, g.clock, g.interval) {
		p, ok := g.takeOut(run, true)
		if !ok {
			return
		}
		if p.Bytes > snapshotAbove {
			g.snapshot(g.ctx, run)
			continue
		}
		g.send(p)
	}
}

// takeOut hands over what has gathered. With nothing gathered the window closes.
func (g *gatherer) takeOut(run ids.ID, closeEmpty bool) (domain.RunProgress, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, ok := g.open[run]
	if !ok {
		return domain.RunProgress{}, false
	}
	if len(waiting.Patches) == 0 {
		if closeEmpty {
			delete(g.open, run)
		}
		return domain.RunProgress{}, false
	}
	p := *waiting
	*waiting = domain.RunProgress{}
	return p, true
}

// flush sends what has gathered for a run, before something that must not overtake it.
func (g *gatherer) flush(run ids.ID) {
	if p, ok := g.takeOut(run, false); ok {
		g.send(p)
	}
}

func (g *gatherer) stop() {
	g.cancel()
	g.running.Wait()
}

func progressOf(u runs.Updated, e eventlog.Ephemeral) domain.RunProgress {
	p := domain.RunProgress{
		RunID: u.RunID, ThreadID: u.ThreadID, ChannelID: e.Place.ChannelID, BaseVersion: u.BaseVersion, Version: u.Version,
		SpaceID: e.Place.SpaceID, AgentID: e.Actor.ID,
	}
	for _, patch := range u.Patches {
		out := domain.RunPatch{Version: patch.Version, Patch: patch.Patch}
		p.Bytes += len(patch.Patch)
		for _, a := range patch.Append {
			out.Append = append(out.Append, domain.RunAppend{Target: a.Target, Offset: a.Offset, Text: a.Text})
			p.Bytes += len(a.Text)
		}
		p.Patches = append(p.Patches, out)
	}
	return p
}

// sendProgress puts gathered progress into the queues of those who look at the thread.
func (h *hub) sendProgress(p domain.RunProgress) {
	update := runs.Updated{RunID: p.RunID, ThreadID: p.ThreadID, BaseVersion: p.BaseVersion, Version: p.Version}
	for _, patch := range p.Patches {
		out := runs.Patch{Version: patch.Version, Patch: patch.Patch}
		for _, a := range patch.Append {
			out.Append = append(out.Append, runs.Append{Target: a.Target, Offset: a.Offset, Text: a.Text})
		}
		update.Patches = append(update.Patches, out)
	}
	payload, err := json.Marshal(update)
	if err != nil {
		h.gateway.deps.Log.Error("progress cannot be encoded", "component", "gateway.hub", "run_id", p.RunID, "error", err)
		return
	}
	place := eventlog.Place{SpaceID: p.SpaceID, ChannelID: p.ChannelID, ThreadID: p.ThreadID}
	h.sendSignal(h.gateway.runSignal(place, p.AgentID), payload, p.RunID)
}

func (g *Gateway) runSignal(place eventlog.Place, agent ids.ID) eventlog.Ephemeral {
	return eventlog.Ephemeral{
		Type: "run.updated", Place: place, Actor: eventlog.Actor{ID: agent, Kind: string(actor.KindAgent)}, OccurredAt: g.deps.Clock.Now(),
	}
}

// snapshotOf sends the whole state of a run to those who look at its thread.
func (g *Gateway) snapshotOf(ctx context.Context, run ids.ID) {
	item, err := g.deps.RunReads.Snapshot(ctx, run)
	if err != nil {
		g.deps.Log.WarnContext(ctx, "run cannot be read for its watchers", "component", "gateway", "run_id", run, "error", err)
		return
	}
	g.hub.sendSignal(g.runSignal(item.Place, item.AgentID), item.Payload, run)
}

// sendRunSnapshot sends the state of a run to one connection.
func (g *Gateway) sendRunSnapshot(ctx context.Context, c *conn, run ids.ID) {
	item, err := g.deps.RunReads.Snapshot(ctx, run)
	if err != nil {
		return
	}
	g.sendItem(c, item)
}

// sendThreadRuns sends the running work of a thread to a connection that begins to look.
func (g *Gateway) sendThreadRuns(ctx context.Context, c *conn, thread ids.ID) error {
	items, err := g.deps.RunReads.Snapshots(ctx, thread)
	if err != nil {
		return fmt.Errorf("read the runs of the thread: %w", err)
	}
	for _, item := range items {
		g.sendItem(c, item)
	}
	return nil
}

func (g *Gateway) sendItem(c *conn, item runs.SnapshotItem) {
	e := g.runSignal(item.Place, item.AgentID)
	record := signalRecord(e, item.Payload)
	if sync.Admit(g.deps.Delivery, c.principal, record) != authorize.Admitted {
		return
	}
	envelope, err := sync.Envelope(record)
	if err != nil {
		g.deps.Log.Error("run cannot be encoded", "component", "gateway", "run_id", item.ID, "error", err)
		return
	}
	c.push(frame{bytes: encodeFrame("ephemeral", "", envelope), run: item.ID})
	g.deps.Observer.Event(e.Type)
}

// restartClose tells clients to come back within a while, each at its own moment.
func (g *Gateway) restartClose() domain.Close {
	return domain.Close{Code: domain.CloseServerRestart, Detail: fmt.Sprint(g.config.RestartSpread.Milliseconds())}
}
