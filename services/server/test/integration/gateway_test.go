// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"testing"

	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/test/harness"
)

func TestUpgradesAreRefused(t *testing.T) {
	s := harness.Start(t, harness.WithKeys(map[string]string{"gateway.max_unidentified_per_ip": "1", "gateway.max_connections": "10"}))
	ana := s.Person(t, "ana")
	refused := func(code, subprotocol string, header http.Header) {
		t.Helper()
		_, answer, err := ana.TryDial(t, subprotocol, header)
		if err == nil || answer == nil {
			t.Fatalf("the upgrade was not refused with %s: %v", code, err)
		}
		answer.Refused(t, code)
	}
	refused("validation_failed", "", nil)
	refused("forbidden", ws.Subprotocol, http.Header{"Origin": {"https://elsewhere.example"}})
	first := ana.Dial(t)
	refused("rate_limited", ws.Subprotocol, nil)
	first.Identify(t, nil)
	for range 9 {
		s.Person(t, "crew").Connect(t)
	}
	refused("unavailable", ws.Subprotocol, nil)
}

func TestConnectionsEndWithTheirCode(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	identified := func(t *testing.T) *harness.Socket { return ana.Connect(t) }
	plain := func(t *testing.T) *harness.Socket { return ana.Dial(t) }
	credentials := func(c *harness.Socket, t *testing.T, more harness.Body) harness.Body {
		d := c.Credentials(t)
		for k, v := range more {
			d[k] = v
		}
		return d
	}
	client := harness.Body{"name": "test", "version": "1", "platform": "linux"}
	for _, c := range []struct {
		name string
		open func(t *testing.T) *harness.Socket
		code int
		do   func(t *testing.T, c *harness.Socket)
	}{
		{"no JSON", plain, 4001, func(t *testing.T, c *harness.Socket) { c.SendRaw(t, "ahoy") }},
		{"unknown op", identified, 4002, func(t *testing.T, c *harness.Socket) { c.Send(t, "dance", harness.Body{}) }},
		{"bad token", plain, 4004, func(t *testing.T, c *harness.Socket) {
			c.Send(t, "identify", harness.Body{"token": "nonsense", "protocol_version": 1, "client": client})
		}},
		{"twice", identified, 4005, func(t *testing.T, c *harness.Socket) {
			c.Send(t, "identify", credentials(c, t, harness.Body{"protocol_version": 1, "client": client}))
		}},
		{"unknown session", plain, 4006, func(t *testing.T, c *harness.Socket) {
			c.Send(t, "resume", credentials(c, t, harness.Body{"session_id": harness.NewID(), "cursor": 1, "sync_epoch": harness.NewID()}))
		}},
		{"other epoch", plain, 4007, func(t *testing.T, c *harness.Socket) {
			c.Send(t, "identify", credentials(c, t, harness.Body{"protocol_version": 1, "client": client, "cursor": 1, "sync_epoch": harness.NewID()}))
		}},
		{"other version", plain, 4011, func(t *testing.T, c *harness.Socket) {
			c.Send(t, "identify", credentials(c, t, harness.Body{"protocol_version": 9, "client": client}))
		}},
		{"too large", identified, 4016, func(t *testing.T, c *harness.Socket) { c.SendRaw(t, `{"op":"focus","d":{"x":"`+letters(300_000)+`"}}`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := c.open(t)
			c.do(t, socket)
			if code := socket.Closed(t); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		first := ana.Connect(t)
		ana.Connect(t)
		if code := first.Closed(t); code != 4017 {
			t.Errorf("closed with %d", code)
		}
	})
}

func TestTypingIsShownToThoseWhoLook(t *testing.T) {
	s := shared.Use(t)
	ana, bob, out := s.Person(t, "ana"), s.Person(t, "bob"), s.Person(t, "out")
	place := s.Space(t, "write", ana, bob)
	typing, looking, elsewhere := ana.Connect(t), bob.Connect(t), out.Connect(t)
	if f, ok := looking.Do(t, "focus", harness.Body{"thread_ids": []string{place.Thread}, "channel_id": place.Channel, "idle": false}); !ok {
		t.Fatalf("focus: %v", f.D)
	}
	typing.Do(t, "typing.start", harness.Body{"thread_id": place.Thread})
	looking.Event(t, "typing.started", func(e harness.Event) bool { return e.Str("data.principal_id") == ana.ID })
	typing.Do(t, "typing.stop", harness.Body{"thread_id": place.Thread})
	for op, d := range map[string]harness.Body{
		"focus":        {"thread_ids": []string{place.Thread}, "idle": false},
		"typing.start": {"thread_id": place.Thread},
		"typing.stop":  {"thread_id": place.Thread},
	} {
		if f, ok := elsewhere.Do(t, op, d); ok || f.Str("code") != "not_found" {
			t.Errorf("%s on a hidden thread: %v", op, f.D)
		}
	}
	if f, ok := looking.Do(t, "ack", harness.Body{"seq": 0}); ok || f.Str("code") != "forbidden" {
		t.Errorf("ack by a person: %v", f.D)
	}
	if f, ok := looking.Do(t, "focus", harness.Body{"thread_ids": "x"}); ok || f.Str("code") != "validation_failed" {
		t.Errorf("focus of a wrong form: %v", f.D)
	}
}

func TestALostConnectionMissesNothing(t *testing.T) {
	s := shared.Use(t)
	ana, bob := s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "write", ana, bob)
	first := ana.Dial(t)
	ready := first.Identify(t, nil)
	heard := bob.Say(t, place.Thread, "heard")
	first.Reach(t, heard.Seq())
	first.Drop()
	missed := bob.Say(t, place.Thread, "missed")
	second := ana.Dial(t)
	d := second.Credentials(t)
	d["session_id"], d["cursor"], d["sync_epoch"] = ready.Str("session_id"), heard.Seq(), ready.Str("sync_epoch")
	if f := second.Answer(t, second.Send(t, "resume", d)); f.Op != "resumed" {
		t.Fatalf("resume was answered with %s: %v", f.Op, f.D)
	}
	second.Event(t, "message.created", func(e harness.Event) bool { return e.Str("data.message.id") == missed.Str("id") })
	second.Frame(t, "the end of what was missed", func(f harness.Frame) bool { return f.Op == "catchup.complete" })
	again := slices.ContainsFunc(second.Events(), func(e harness.Event) bool { return e.Str("data.message.id") == heard.Str("id") })
	if again {
		t.Error("what had been received came again")
	}
	// A client that was away for longer identifies with its position.
	third := ana.Dial(t)
	third.Identify(t, harness.Body{"cursor": heard.Seq(), "sync_epoch": ready.Str("sync_epoch")})
	third.Event(t, "message.created", func(e harness.Event) bool { return e.Str("data.message.id") == missed.Str("id") })
}

func TestCredentialsOfAConnectionAreRenewed(t *testing.T) {
	s := harness.Start(t)
	ana := s.Person(t, "ana")
	socket := ana.Connect(t)
	for range 9 {
		s.Clock.Advance(minute)
		socket.Beat(t)
	}
	ask := socket.Frame(t, "the request for a new credential", func(f harness.Frame) bool { return f.Op == "reauth_required" })
	if ask.Str("reason") != "expiring" {
		t.Errorf("reason: %v", ask.D)
	}
	ana.Renew(t).OK(t)
	if f, ok := socket.Do(t, "reauth", socket.Credentials(t)); !ok {
		t.Fatalf("reauth: %v", f.D)
	}
	beat := socket.Beat(t)
	if beat.Op != "heartbeat_ack" {
		t.Errorf("the connection ended: %v", beat)
	}
}
