// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// town is what the rights in memory say, without any index: who sees which space as a whole
// and which channel for itself, and where the channels and threads lie.
type town struct {
	authorize.Delivery
	all, away map[ids.ID]bool
	spaces    map[ids.ID]map[ids.ID]bool
	channels  map[ids.ID]map[ids.ID]bool
	in        map[ids.ID]ids.ID
	closed    map[ids.ID]bool
	threads   map[ids.ID]ids.ID
	asked     int
}

func newTown() *town {
	return &town{
		all: map[ids.ID]bool{}, away: map[ids.ID]bool{}, spaces: map[ids.ID]map[ids.ID]bool{}, channels: map[ids.ID]map[ids.ID]bool{},
		in: map[ids.ID]ids.ID{}, closed: map[ids.ID]bool{}, threads: map[ids.ID]ids.ID{},
	}
}

func (w *town) sees(p, channel ids.ID) bool {
	return w.all[p] || w.channels[p][channel] || w.spaces[p][w.in[channel]] && !w.closed[channel]
}

func (w *town) Admit(p ids.ID, _ authorize.Action, r authorize.Resource, _ int64) authorize.Verdict {
	w.asked++
	channel, space, known := w.Located(r)
	switch {
	case w.away[p]:
		return authorize.Unknown
	case !known:
		return authorize.Admitted
	case channel.IsZero():
		if w.all[p] || w.spaces[p][space] {
			return authorize.Admitted
		}
	case w.sees(p, channel):
		return authorize.Admitted
	}
	return authorize.Denied
}

func (w *town) Visible(p ids.ID) (authorize.Scope, bool) {
	s := authorize.Scope{All: w.all[p], Spaces: slices.Collect(maps.Keys(w.spaces[p]))}
	for c := range w.channels[p] {
		s.Channels = append(s.Channels, c)
	}
	return s, !w.away[p]
}

func (w *town) Located(r authorize.Resource) (channel, space ids.ID, known bool) {
	switch r.Kind {
	case authorize.ResourceThread:
		channel = w.threads[r.ID]
		return channel, w.in[channel], !channel.IsZero()
	case authorize.ResourceChannel:
		return r.ID, w.in[r.ID], true
	case authorize.ResourceSpace:
		return channel, r.ID, true
	default:
		return channel, space, false
	}
}

func (w *town) gateway() *Gateway {
	g := New(testConfig(), Deps{Delivery: w, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Observer: &world{}})
	g.Start(0)
	return g
}

func enter(g *Gateway, principal ids.ID) *conn {
	c := newConn(g, nil, netip.MustParseAddr("192.0.2.1"))
	c.principal, c.device = principal, ids.New()
	g.hub.register(c)
	return c
}

// caughtUp reads the rights of a connection into memory and brings it up to the head.
func (w *town) caughtUp(c *conn) {
	delete(w.away, c.principal)
	for done := false; !done; {
		var target int64
		if _, target, done = c.catchUpPosition(); !done {
			c.catchUp.cursor = target
		}
	}
}

func toggle(set map[ids.ID]bool, id ids.ID) {
	if set[id] {
		delete(set, id)
	} else {
		set[id] = true
	}
}

// TestTheIndexMissesNobody lets people come and go while rights and places change, and holds
// that everybody who may have an event gets it exactly once, and nobody else.
func TestTheIndexMissesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown()
		g := w.gateway()
		var spaces, channels, threads []ids.ID
		people := make([]ids.ID, 5)
		for i := range people {
			people[i] = ids.New()
			w.spaces[people[i]], w.channels[people[i]] = map[ids.ID]bool{}, map[ids.ID]bool{}
		}
		here := map[ids.ID]*conn{}
		seq := int64(0)
		pick := func(from []ids.ID, what string) ids.ID {
			if len(from) == 0 {
				t.Skip("none yet")
			}
			return rapid.SampledFrom(from).Draw(t, what)
		}
		deliver := func(e eventlog.Record) {
			seq++
			e.Seq, e.EventID, e.Payload = seq, ids.New(), []byte(`{}`)
			fell, want := map[ids.ID]bool{}, map[ids.ID]bool{}
			for p, c := range here {
				c.queue.clear()
				r, _ := sync.ReceivedAt(e)
				switch verdict := w.Admit(p, "", r, 0); {
				case !e.PrincipalID.IsZero() && e.PrincipalID != p:
				case verdict == authorize.Unknown:
					fell[p] = true
				default:
					want[p] = verdict == authorize.Admitted
				}
			}
			g.Deliver(e)
			for p, c := range here {
				got := len(c.queue.frames)
				if fell[p] {
					if !c.liveLost {
						t.Fatalf("%s of %v: somebody without rights in memory was passed over", e.Type, e.Place)
					}
					w.caughtUp(c)
					continue
				}
				if (got == 1) != want[p] || got > 1 {
					t.Fatalf("%s of %v: %d frames, wanted %v", e.Type, e.Place, got, want[p])
				}
			}
		}
		changed := func(p ids.ID) { deliver(eventlog.Record{Type: "access.changed", PrincipalID: p}) }
		t.Repeat(map[string]func(*rapid.T){
			"comes": func(*rapid.T) {
				p := pick(people, "who")
				if here[p] != nil {
					t.Skip("is here")
				}
				here[p] = enter(g, p)
			},
			"goes": func(*rapid.T) {
				p := pick(slices.SortedFunc(maps.Keys(here), ids.ID.Compare), "who")
				g.hub.unregister(here[p])
				delete(here, p)
			},
			"new space": func(*rapid.T) {
				s := ids.New()
				spaces = append(spaces, s)
				deliver(eventlog.Record{Type: "space.created", Place: eventlog.Place{SpaceID: s}, Resource: eventlog.Resource{Type: "space", ID: s}})
			},
			"new channel": func(*rapid.T) {
				c, thread := ids.New(), ids.New()
				w.in[c], w.closed[c], w.threads[thread] = pick(spaces, "space"), rapid.Bool().Draw(t, "closed"), c
				channels, threads = append(channels, c), append(threads, thread)
				deliver(eventlog.Record{Type: "channel.created", Place: eventlog.Place{SpaceID: w.in[c], ChannelID: c}, Resource: eventlog.Resource{Type: "channel", ID: c}})
			},
			"new direct channel": func(*rapid.T) {
				c, thread := ids.New(), ids.New()
				w.in[c], w.threads[thread] = ids.ID{}, c
				w.channels[pick(people, "one")][c], w.channels[pick(people, "other")][c] = true, true
				channels, threads = append(channels, c), append(threads, thread)
				deliver(eventlog.Record{Type: "channel.created", Place: eventlog.Place{ChannelID: c}, Resource: eventlog.Resource{Type: "channel", ID: c}})
			},
			"channel moves or closes": func(*rapid.T) {
				c := pick(channels, "channel")
				w.in[c], w.closed[c] = pick(spaces, "space"), rapid.Bool().Draw(t, "closed")
				deliver(eventlog.Record{Type: "channel.updated", Place: eventlog.Place{SpaceID: w.in[c], ChannelID: c}, Resource: eventlog.Resource{Type: "channel", ID: c}})
			},
			"thread moves": func(*rapid.T) { w.threads[pick(threads, "thread")] = pick(channels, "channel") },
			"rights of a space": func(*rapid.T) {
				p, s := pick(people, "who"), pick(spaces, "space")
				toggle(w.spaces[p], s)
				changed(p)
			},
			"rights of a channel": func(*rapid.T) {
				p, c := pick(people, "who"), pick(channels, "channel")
				toggle(w.channels[p], c)
				changed(p)
			},
			"rights of everything": func(*rapid.T) {
				p := pick(people, "who")
				toggle(w.all, p)
				changed(p)
			},
			"rights fall out of memory": func(*rapid.T) {
				p := pick(people, "who")
				w.away[p] = true
				changed(p)
			},
			"message": func(*rapid.T) {
				thread := pick(threads, "thread")
				// The place that was stored may be an older one.
				deliver(eventlog.Record{Type: "message.created", Place: eventlog.Place{ChannelID: pick(channels, "stored"), ThreadID: thread}, Resource: eventlog.Resource{Type: "message", ID: ids.New()}})
			},
			"somebody's name": func(*rapid.T) {
				deliver(eventlog.Record{Type: "user.updated", Resource: eventlog.Resource{Type: "principal", ID: pick(people, "who")}})
			},
		})
	})
}

// BenchmarkDeliverToFew puts an event for two into the queues while 5,000 are connected.
func BenchmarkDeliverToFew(b *testing.B) {
	w := newTown()
	g := w.gateway()
	channel, thread := ids.New(), ids.New()
	w.in[channel], w.threads[thread] = ids.New(), channel
	for n := range 5000 {
		p := ids.New()
		if n < 2 {
			w.channels[p] = map[ids.ID]bool{channel: true}
		}
		enter(g, p)
	}
	e := eventlog.Record{Type: "message.created", Place: eventlog.Place{ChannelID: channel, ThreadID: thread}, Payload: []byte(`{}`)}
	w.asked = 0
	for b.Loop() {
		e.Seq++
		g.Deliver(e)
	}
	b.ReportMetric(float64(w.asked)/float64(b.N), "asked/event")
}

func TestTheWorkOfAnEventGrowsWithItsReceiversAlone(t *testing.T) {
	w := newTown()
	g := w.gateway()
	channel, thread, space := ids.New(), ids.New(), ids.New()
	w.in[channel], w.threads[thread] = space, channel
	for n := range 1000 {
		p := ids.New()
		w.spaces[p] = map[ids.ID]bool{ids.New(): true}
		if n < 2 {
			w.spaces[p][space] = true
		}
		enter(g, p)
	}
	g.Deliver(eventlog.Record{Seq: 1, Type: "message.created", Place: eventlog.Place{SpaceID: space, ChannelID: channel, ThreadID: thread}, Payload: []byte(`{}`)})
	if w.asked != 2 {
		t.Errorf("%d principals were asked about an event for 2", w.asked)
	}
}
