// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs"
)

// person adds a person with a token and read access to channels.
func (w *world) person(token string, channels ...ids.ID) actor.Actor {
	a := actor.Actor{ID: ids.New(), Kind: actor.KindPerson, SessionID: ids.New(), DeviceID: ids.New()}
	w.actors["Bearer "+token] = a
	w.rights[a.ID] = map[ids.ID]bool{}
	for _, c := range channels {
		w.rights[a.ID][c] = true
	}
	return a
}

func message(channel ids.ID) eventlog.Record {
	return eventlog.Record{Type: "message.created", Place: eventlog.Place{ChannelID: channel, ThreadID: ids.New()}}
}

func seqsOf(t testing.TB, f gotFrame) []int64 {
	t.Helper()
	var d struct {
		Seq    int64 `json:"seq"`
		Events []struct {
			Seq int64 `json:"seq"`
		} `json:"events"`
	}
	if err := json.Unmarshal(f.D, &d); err != nil {
		t.Fatal(err)
	}
	if f.Op == "dispatch" {
		return []int64{d.Seq}
	}
	var out []int64
	for _, e := range d.Events {
		out = append(out, e.Seq)
	}
	return out
}

func TestLiveEventsReachWhoMaySeeThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		open, secret := ids.New(), ids.New()
		w.person("ana", open, secret)
		w.person("ben", open)
		g := newGateway(w)
		ana, ben := connect(t, g), connect(t, g)
		ana.identify("ana", "")
		ben.identify("ben", "")
		synctest.Wait()
		w.append(g, message(secret))
		w.append(g, message(open))
		if got := seqsOf(t, ana.expect("dispatch")); !slices.Equal(got, []int64{1}) {
			t.Errorf("ana got %v first", got)
		}
		if got := seqsOf(t, ben.expect("dispatch")); !slices.Equal(got, []int64{2}) {
			t.Errorf("ben got %v, and may see position 2 alone", got)
		}
		ana.drop()
		ben.drop()
	})
}

func TestReconnectWithCursorBringsExactlyWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		channel := ids.New()
		w.person("ana", channel)
		g := newGateway(w)
		for range 8 {
			w.append(g, message(channel))
		}
		c := connect(t, g)
		c.identify("ana", `,"cursor":2`)
		var got []int64
		for {
			f := c.next()
			if f.Op == "catchup.complete" {
				break
			}
			got = append(got, seqsOf(t, f)...)
		}
		if want := []int64{3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) {
			t.Errorf("caught up %v, want %v", got, want)
		}
		c.drop()
	})
}

// A client that connects, loses the connection and comes back at random moments, while
// events are written and its rights are at times not in memory, receives every event it may
// see once and in order.
func TestNoEventIsLostDoubledOrReordered(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			seen, hidden := ids.New(), ids.New()
			ana := w.person("ana", seen)
			g := newGateway(w)
			var c *client
			cursor := int64(0)
			var got []int64
			drain := func() {
				for c != nil {
					synctest.Wait()
					select {
					case b := <-c.pipe.out:
						var f gotFrame
						if err := json.Unmarshal(b, &f); err != nil {
							t.Fatal(err)
						}
						switch f.Op {
						case "dispatch", "catchup.page":
							for _, seq := range seqsOf(t, f) {
								got = append(got, seq)
								cursor = seq
							}
						}
					default:
						return
					}
				}
			}
			for range rapid.IntRange(5, 60).Draw(rt, "steps") {
				switch rapid.SampledFrom([]string{"write", "write", "write", "hide", "stale", "connect", "drop", "read"}).Draw(rt, "step") {
				case "write":
					w.append(g, message(seen))
				case "hide":
					w.append(g, message(hidden))
				case "stale":
					w.mu.Lock()
					w.stale[ana.ID] = true
					w.mu.Unlock()
				case "connect":
					if c == nil {
						c = connect(t, g)
						c.send(fmt.Sprintf(`{"op":"identify","d":{"token":"ana","protocol_version":1,"client":{"name":"t","version":"1","platform":"t"},"cursor":%d}}`, cursor))
					}
				case "drop":
					if c != nil {
						// What has arrived was applied; what is under way is lost.
						if rapid.Bool().Draw(rt, "read before") {
							drain()
						}
						c.drop()
						c = nil
					}
				case "read":
					drain()
				}
			}
			if c == nil {
				c = connect(t, g)
				c.send(fmt.Sprintf(`{"op":"identify","d":{"token":"ana","protocol_version":1,"client":{"name":"t","version":"1","platform":"t"},"cursor":%d}}`, cursor))
			}
			w.append(g, message(seen))
			drain()
			c.drop()
			var want []int64
			for _, e := range w.log {
				if e.Place.ChannelID == seen {
					want = append(want, e.Seq)
				}
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("received %v, want %v", got, want)
			}
		})
	})
}

func TestSlowPeerIsClosedAndHurtsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		channel := ids.New()
		w.person("slow", channel)
		w.person("quick", channel)
		g := newGateway(w)
		slow, quick := connect(t, g), connect(t, g)
		slow.identify("slow", "")
		quick.identify("quick", "")
		synctest.Wait()
		slow.pipe.mu.Lock()
		slow.pipe.stuck = true
		slow.pipe.mu.Unlock()
		for i := range 200 {
			w.append(g, message(channel))
			if got := seqsOf(t, quick.expect("dispatch")); got[0] != int64(i+1) {
				t.Fatalf("quick got %v, want %d", got, i+1)
			}
		}
		slow.closedWith(4014)
		quick.drop()
	})
}

func TestEndedCredentialClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ana := w.person("ana")
		g := newGateway(w)
		c := connect(t, g)
		c.identify("ana", "")
		synctest.Wait() // Only a connection that has caught up has the event in its queue.
		w.append(g, eventlog.Record{
			Type: "session.revoked", PrincipalID: ana.ID,
			Payload: json.RawMessage(fmt.Sprintf(`{"session_id":%q,"reason":"revoked"}`, ana.SessionID)),
		})
		c.expect("dispatch")
		c.closedWith(4010)

		w.person("bot")
		bot := connect(t, g)
		bot.identify("bot", "")
		w.mu.Lock()
		w.ended[w.actors["Bearer bot"].ID] = true
		w.mu.Unlock()
		time.Sleep(31 * time.Second) // Virtual time: the next check of the credential.
		bot.closedWith(4010)
	})
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		g := newGateway(w)
		mute := connect(t, g)
		time.Sleep(11 * time.Second)
		mute.closedWith(4003)

		silent := connect(t, g)
		silent.identify("ana", "")
		time.Sleep(76 * time.Second)
		silent.closedWith(4009)

		alive := connect(t, g)
		alive.identify("ana", "")
		for range 5 {
			time.Sleep(30 * time.Second)
			alive.send(`{"op":"heartbeat","d":{}}`)
			alive.expect("heartbeat_ack")
		}
		alive.drop()
	})
}

func TestProtocolFaults(t *testing.T) {
	identify := `{"op":"identify","d":{"token":"ana","protocol_version":1,"client":{"name":"t","version":"1","platform":"t"}}}`
	for name, tc := range map[string]struct {
		frames []string
		code   int
	}{
		"no JSON":                   {[]string{`{`}, 4001},
		"unknown op":                {[]string{`{"op":"x"}`}, 4002},
		"unknown member":            {[]string{`{"op":"identify","d":{"token":"ana","protocol_version":1,"nope":1}}`}, 4001},
		"wrong token":               {[]string{strings.Replace(identify, "ana", "eve", 1)}, 4004},
		"other protocol":            {[]string{strings.Replace(identify, ":1,", ":9,", 1)}, 4011},
		"twice":                     {[]string{identify, identify}, 4005},
		"unknown session":           {[]string{`{"op":"resume","d":{"session_id":"0199c2a0-0001-7000-8000-000000000001","token":"ana","cursor":0,"sync_epoch":"0199c2a0-0001-7000-8000-000000000001"}}`}, 4006},
		"cursor ahead of the log":   {[]string{strings.Replace(identify, `"protocol_version":1`, `"protocol_version":1,"cursor":99`, 1)}, 4007},
		"cursor behind the log":     {[]string{strings.Replace(identify, `"protocol_version":1`, `"protocol_version":1,"cursor":0`, 1)}, 4007},
		"member of heartbeat twice": {[]string{`{"op":"heartbeat","d":{"cursor":1,"cursor":2}}`}, 4001},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.person("ana")
				w.minSeq = 5
				g := newGateway(w)
				for range 8 {
					w.append(g, message(ids.New()))
				}
				c := connect(t, g)
				for _, f := range tc.frames {
					c.send(f)
				}
				c.closedWith(tc.code)
			})
		})
	}
}

func TestFaultsOfAnOpAreAnsweredAndKeepTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		g := newGateway(w)
		c := connect(t, g)
		c.send(`{"op":"focus","id":"f","d":{"thread_ids":[],"idle":false}}`)
		if f := c.expect("error"); f.ID != "f" || !strings.Contains(string(f.D), "unauthenticated") {
			t.Errorf("before identify: %s", f.D)
		}
		c.identify("ana", "")
		c.send(`{"op":"focus","id":"g","d":{"thread_ids":["` + ids.New().String() + `"],"idle":false}}`)
		if f := c.expect("error"); !strings.Contains(string(f.D), `"not_found"`) {
			t.Errorf("unknown thread: %s", f.D)
		}
		c.send(`{"op":"typing.start","d":{"nope":1}}`)
		if f := c.expect("error"); !strings.Contains(string(f.D), `"validation_failed"`) {
			t.Errorf("unknown member: %s", f.D)
		}
		c.send(`{"op":"ack","d":{"seq":1}}`)
		if f := c.expect("error"); !strings.Contains(string(f.D), `"forbidden"`) {
			t.Errorf("ack of a person: %s", f.D)
		}
		c.send(`{"op":"heartbeat","id":"h","d":{}}`)
		if f := c.expect("heartbeat_ack"); f.ID != "h" {
			t.Errorf("heartbeat answered with id %q", f.ID)
		}
		c.drop()
	})
}

func TestNewerConnectionOfADeviceReplacesTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		g := newGateway(w)
		first := connect(t, g)
		first.identify("ana", "")
		second := connect(t, g)
		second.identify("ana", "")
		first.closedWith(4017)
		second.drop()
	})
}

func TestResumeRestoresTheFocusOfTheSameLoginAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		channel, thread := ids.New(), ids.New()
		w.person("ana", channel)
		w.person("ben", channel)
		w.threads[thread] = channel
		g := newGateway(w)
		c := connect(t, g)
		var ready struct {
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal(c.identify("ana", "").D, &ready); err != nil {
			t.Fatal(err)
		}
		c.send(`{"op":"focus","d":{"thread_ids":["` + thread.String() + `"],"idle":false}}`)
		c.send(`{"op":"heartbeat","d":{}}`)
		c.expect("heartbeat_ack")
		c.drop()

		resume := `{"op":"resume","d":{"session_id":"` + ready.SessionID + `","token":"%s","cursor":0,"sync_epoch":"` + g.deps.Instance.SyncEpoch.String() + `"}}`
		thief := connect(t, g)
		thief.send(fmt.Sprintf(resume, "ben"))
		thief.closedWith(4006)
		// The attempt cost the owner nothing.
		back := connect(t, g)
		back.send(fmt.Sprintf(resume, "ana"))
		back.expect("resumed")
		back.drop()
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		channel, thread := ids.New(), ids.New()
		w.person("ana", channel)
		w.threads[thread] = channel
		g := newGateway(w)
		c := connect(t, g)
		var ready struct {
			SessionID string `json:"session_id"`
		}
		if err := json.Unmarshal(c.identify("ana", `,"focus":{"thread_ids":["`+thread.String()+`"],"idle":false}`).D, &ready); err != nil {
			t.Fatal(err)
		}
		c.drop()
		back := connect(t, g)
		back.send(`{"op":"resume","d":{"session_id":"` + ready.SessionID + `","token":"ana","cursor":0,"sync_epoch":"` + g.deps.Instance.SyncEpoch.String() + `"}}`)
		f := back.expect("resumed")
		if !strings.Contains(string(f.D), thread.String()) {
			t.Errorf("focus is lost: %s", f.D)
		}
		back.drop()
	})
}

func TestFloodOfFramesIsLimitedAndThenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		g := newGateway(w)
		c := connect(t, g)
		c.identify("ana", "")
		w.mu.Lock()
		w.limit["rl.gateway_op"] = 2
		w.mu.Unlock()
		for range 25 {
			c.send(`{"op":"focus","d":{"thread_ids":[],"idle":true}}`)
		}
		c.expect("error")
		c.closedWith(4008)
	})
}

func TestPeopleBehindOneAddressDoNotTakeEachOthersFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.limitPerKey = map[string]int{"rl.gateway_op": 1}
		w.person("ana")
		w.person("ben")
		g := newGateway(w)
		for _, person := range []string{"ana", "ben"} {
			c := connect(t, g)
			defer c.drop()
			c.identify(person, "")
		}
	})
}

func TestAgentTakesUpBehindItsAcknowledgedPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent := actor.Actor{ID: ids.New(), Kind: actor.KindAgent, TokenID: ids.New()}
		w.actors["Bearer bot"] = agent
		g := newGateway(w)
		order := func() { w.append(g, eventlog.Record{Type: "agent.invocation", PrincipalID: agent.ID}) }

		first := connect(t, g)
		first.identify("bot", "")
		for range 5 {
			order()
		}
		for want := int64(1); want <= 3; want++ {
			if got := seqsOf(t, first.expect("dispatch")); got[0] != want {
				t.Fatalf("got %v, want %d", got, want)
			}
		}
		synctest.Wait()
		select {
		case b := <-first.pipe.out:
			t.Fatalf("the window of 3 is full, and yet came %s", b)
		default:
		}
		first.send(`{"op":"ack","d":{"seq":2}}`)
		if got := seqsOf(t, first.expect("dispatch")); got[0] != 4 {
			t.Fatalf("behind the acknowledgement came %v", got)
		}
		first.drop()

		second := connect(t, g)
		second.identify("bot", "")
		if got := seqsOf(t, second.expect("dispatch")); got[0] != 3 {
			t.Errorf("the restart began at %v, acknowledged was 2", got)
		}
		third := connect(t, g)
		third.identify("bot", "")
		second.closedWith(4015)
		third.send(`{"op":"ack","d":{"seq":99}}`)
		if f := third.expect("error"); !strings.Contains(string(f.D), "validation_failed") {
			t.Errorf("acknowledged what was never sent: %s", f.D)
		}
		third.drop()
	})
}

func TestProgressOfARunIsGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		channel, thread, run := ids.New(), ids.New(), ids.New()
		w.person("ana", channel)
		w.threads[thread] = channel
		g := newGateway(w)
		c := connect(t, g)
		c.identify("ana", `,"focus":{"thread_ids":["`+thread.String()+`"],"idle":false}`)
		offset := 0
		for v := int64(1); v <= 10; v++ {
			text := fmt.Sprintf("piece %d ", v)
			g.Publish(t.Context(), eventlog.Ephemeral{
				Type: "run.updated", Place: eventlog.Place{ChannelID: channel, ThreadID: thread},
				Payload: runs.Updated{
					RunID: run, ThreadID: thread, BaseVersion: v - 1, Version: v,
					Patches: []runs.Patch{{Version: v, Append: []runs.Append{{Target: "output", Offset: offset, Text: text}}}},
				},
			})
			offset += len(text)
		}
		var first, second struct {
			Data runs.Updated `json:"data"`
		}
		if err := json.Unmarshal(c.expect("ephemeral").D, &first); err != nil {
			t.Fatal(err)
		}
		if first.Data.Version != 1 {
			t.Errorf("the first step left as version %d", first.Data.Version)
		}
		if err := json.Unmarshal(c.expect("ephemeral").D, &second); err != nil {
			t.Fatal(err)
		}
		if second.Data.BaseVersion != 1 || second.Data.Version != 10 || len(second.Data.Patches) != 1 {
			t.Errorf("the rest left as %+v", second.Data)
		}
		c.drop()
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestUncheckedOpEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		g := newGateway(w)
		c := connect(t, g)
		c.identify("ana", "")
		saved := ops["focus"]
		ops["focus"] = op{action: saved.action, run: (*opRunner)(nil).heartbeat}
		defer func() { ops["focus"] = saved }()
		c.send(`{"op":"focus","d":{}}`)
		c.closedWith(4000)
	})
}

// When a connection hears of the restart, what it has acknowledged is stored: the next process
// must not send it again.
func TestDrainStoresPlacesBeforeItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		agent := actor.Actor{ID: ids.New(), Kind: actor.KindAgent, TokenID: ids.New()}
		w.actors["Bearer bot"] = agent
		g := newGateway(w)
		c := connect(t, g)
		c.identify("bot", "")
		w.append(g, eventlog.Record{Type: "agent.invocation", PrincipalID: agent.ID})
		c.expect("dispatch")
		c.send(`{"op":"ack","d":{"seq":1}}`)
		synctest.Wait()
		stored := int64(-1)
		c.pipe.onClose = func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			stored = w.acked[agent.ID]
		}
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.closedWith(4013)
		if stored != 1 {
			t.Errorf("at the close %d was stored", stored)
		}
	})
}

func TestDrainSendsEverybodyElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		g := newGateway(w)
		c := connect(t, g)
		c.identify("ana", "")
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.closedWith(4013)
		if got := g.Admit(c2ip); got != RefusedDraining {
			t.Errorf("a draining gateway answered %v", got)
		}
	})
}

func TestForbiddenPrincipalMayNotConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.person("ana")
		w.refuse = errs.Forbidden("view_as_read_only")
		g := newGateway(w)
		c := connect(t, g)
		c.send(`{"op":"identify","d":{"token":"ana","protocol_version":1,"client":{"name":"t","version":"1","platform":"t"}}}`)
		c.closedWith(4018)
	})
}
