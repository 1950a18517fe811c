// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// open are the operations that need no credential: they are how one gets it.
var open = map[string]bool{"getDiscovery": true, "getJwks": true, "beginLogin": true, "completeLogin": true, "refreshToken": true, "openGateway": true, "submitCspReport": true, "beginPairing": true, "pollPairing": true, "oidcCallback": true}

func TestStrangersGetNothing(t *testing.T) {
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	wrong := &harness.Client{Server: s, Bearer: "bothy_pat_" + letters(43)}
	// A token that was stolen is worth nothing without the key of its device.
	stolen := &harness.Client{Server: s, Bearer: ana.Access()}
	for _, op := range routes.Operations {
		if open[op.ID] {
			continue
		}
		t.Run(op.ID, func(t *testing.T) {
			parts := append(named(op, unknown), harness.IfMatch(1), bodyFor(op))
			s.Anonymous().Call(t, op.ID, parts...).Refused(t, "unauthenticated")
			wrong.Call(t, op.ID, parts...).Refused(t, "unauthenticated")
			if code := stolen.Call(t, op.ID, parts...).Code(); code != "unauthenticated" && code != "invalid_dpop_proof" {
				t.Errorf("a stolen token is answered with %q", code)
			}
		})
	}
}

// TestTokensReachNoFurtherThanTheirScopes calls everything with a token of one scope, which no
// operation here belongs to.
func TestTokensReachNoFurtherThanTheirScopes(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	token := w.caller.Token(t, "gateway.read")
	message := w.caller.Say(t, w.place.Thread, "visible")
	visible := map[string]string{"space_id": w.place.Space, "channel_id": w.place.Channel, "thread_id": w.place.Thread, "message_id": message.Str("id"), "agent_id": w.agent.ID}
	for _, id := range []string{"getInstance", "listSpaces", "getSpace", "listChannels", "getChannel", "getThread", "listMessages", "getMessage", "getAgent", "getSnapshot", "getSelf", "listUsers"} {
		op := routes.ByID(id)
		token.Call(t, id, named(*op, func(name string) string { return visible[name] })...).Refused(t, "scope_missing")
	}
	token.Call(t, "createMessage", w.place.Thread, harness.Message("x")).Refused(t, "scope_missing")
	token.Call(t, "createSpace", harness.Body{"name": "x"}).Refused(t, "scope_missing")
	token.Call(t, "logout").Refused(t, "scope_missing")
	token.Connect(t)
}

func TestBeforeTheFirstOwner(t *testing.T) {
	s := harness.Start(t)
	nobody := s.Anonymous()
	if found := nobody.Call(t, "getDiscovery").OK(t); found.At("setup_complete") != false {
		t.Errorf("discovery: %s", found.Body)
	}
	fresh := newDevice(t, s)
	for _, r := range []*harness.Response{
		nobody.Call(t, "listSpaces"), fresh.Call(t, "refreshToken", harness.Body{"refresh_token": "x"}),
	} {
		if r.Code() != "setup_required" && r.Code() != "unauthenticated" {
			t.Errorf("%s: %s", r.Operation, r.Body)
		}
	}
	socket := nobody.Dial(t)
	socket.Send(t, "identify", harness.Body{"token": "x", "protocol_version": 1, "client": harness.Body{"name": "t", "version": "1", "platform": "linux"}})
	if code := socket.Closed(t); code != 4012 {
		t.Errorf("closed with %d", code)
	}
	s.Owner(t).Call(t, "listSpaces").OK(t)
}
