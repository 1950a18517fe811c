// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/test/harness"
)

// event is one case of something that happens in a hidden place. A new type of event needs one
// line. to is the insider who must receive it, about the hidden thing that it must mention; do
// makes it happen unless something has already. known names strangers who may hear of that thing
// all the same, by rule.
type event struct {
	name  string
	to    string
	about string
	do    func(t *testing.T, h *hiding)
	known []string
}

// notYet are types that nothing makes.
var notYet = map[string]string{"thread.updated": "nothing changes a thread"}

var events = []event{
	{name: "user.updated", to: "owner", about: "person", known: members},
	{name: "agent.updated", to: "owner", about: "agent"},
	{name: "group.changed", to: "owner", about: "group", known: ofGroups},
	{name: "space.created", to: "owner", about: "space"},
	{name: "channel.created", to: "owner", about: "channel"},
	{name: "thread.created", to: "owner", about: "thread"},
	{name: "grant.changed", to: "owner", about: "grant"},
	{name: "message.created", to: "owner", about: "message"},
	{name: "agent.invocation", to: "agent", about: "run"},
	{name: "run.state_changed", to: "owner", about: "run"},
	{name: "access.changed", to: "caller", about: "channel", do: func(t *testing.T, h *hiding) {
		h.s.Grant(t, h.team.caller, "manage", "channel", h.hidden["channel"])
	}},
	{name: "instance.updated", to: "caller", do: func(t *testing.T, h *hiding) {
		owner := h.s.Owner(t)
		owner.Call(t, "updateInstanceSettings", owner.Call(t, "getInstanceSettings").Version(t), harness.Body{"instance.name": "Harbour"}).OK(t)
	}},
	{name: "message.updated", to: "caller", about: "message", do: func(t *testing.T, h *hiding) {
		id := h.hidden["message"]
		h.team.caller.Call(t, "updateMessage", id, h.team.caller.Call(t, "getMessage", id).Version(t), harness.Body{"content": "still hidden"}).OK(t)
	}},
	{name: "read_state.updated", to: "caller", about: "thread", do: func(t *testing.T, h *hiding) {
		h.team.caller.Call(t, "markThreadUnread", h.hidden["thread"], harness.Body{"from_thread_seq": 1}).OK(t)
	}},
	{name: "typing.started", to: "owner", about: "thread", do: func(t *testing.T, h *hiding) {
		look := harness.Body{"thread_ids": []string{h.hidden["thread"]}, "idle": false}
		h.sockets["owner"].Do(t, "focus", look)
		for _, who := range []string{"member", "guest"} { // Strangers ask for it as well.
			h.sockets[who].Send(t, "focus", look)
		}
		h.sockets["caller"].Do(t, "typing.start", harness.Body{"thread_id": h.hidden["thread"]})
	}},
	{name: "run.updated", to: "owner", about: "run", do: func(t *testing.T, h *hiding) {
		order := harness.Invocation(h.hidden["order"])
		version := h.team.caller.Call(t, "getRun", h.hidden["run"]).Int("doc_version")
		h.team.agent.Call(t, "updateRun", h.hidden["run"], order, harness.Body{"base_version": version, "patch": harness.Body{"status_line": "x"}}).OK(t)
	}},
	{name: "agent.followup", to: "agent", about: "run", do: func(t *testing.T, h *hiding) {
		h.team.caller.Say(t, h.hidden["thread"], "<@"+h.hidden["agent"]+"> and this")
	}},
	{name: "run.cancel_requested", to: "agent", about: "run", do: func(t *testing.T, h *hiding) {
		h.team.caller.Call(t, "cancelRun", h.hidden["run"], harness.Body{}).OK(t)
	}},
	{name: "agent.presence_changed", to: "owner", about: "agent", do: func(t *testing.T, h *hiding) {
		h.team.agent.Call(t, "sendHeartbeat", h.hidden["agent"], harness.Body{"state": "degraded", "details": harness.Body{"degraded_reasons": []string{"disk_full"}}}).OK(t)
	}},
	{name: "message.deleted", to: "caller", about: "message", do: func(t *testing.T, h *hiding) {
		h.team.caller.Call(t, "deleteMessage", h.hidden["message"]).OK(t)
	}},
	{name: "space.updated", to: "caller", about: "space", do: func(t *testing.T, h *hiding) {
		owner, id := h.s.Owner(t), h.hidden["space"]
		owner.Call(t, "updateSpace", id, owner.Call(t, "getSpace", id).Version(t), harness.Body{"description": "x"}).OK(t)
	}},
	{name: "channel.updated", to: "caller", about: "channel", do: func(t *testing.T, h *hiding) {
		owner, id := h.s.Owner(t), h.hidden["channel"]
		owner.Call(t, "updateChannel", id, owner.Call(t, "getChannel", id).Version(t), harness.Body{"topic": "x"}).OK(t)
	}},
	{name: "channel.settings_changed", to: "caller", about: "channel", do: func(t *testing.T, h *hiding) {
		owner, id := h.s.Owner(t), h.hidden["channel"]
		owner.Call(t, "updateChannelBehavior", id, owner.Call(t, "getChannelBehavior", id).Version(t), harness.Body{"prompt": "x"}).OK(t)
	}},
	{name: "agent.config_changed", to: "agent", about: "channel", do: func(t *testing.T, h *hiding) {
		owner, id := h.s.Owner(t), h.hidden["channel"]
		owner.Call(t, "setChannelOperator", id, owner.Call(t, "getChannel", id).Version(t), harness.Body{"mode": "own", "agent_id": h.hidden["agent"]}).OK(t)
	}},
	{name: "session.revoked", to: "caller", do: func(t *testing.T, h *hiding) {
		other := h.team.caller.Login(t)
		h.team.caller.StepUp(t)
		h.team.caller.Call(t, "revokeSession", other.Session).OK(t)
	}},
	{name: "device.pending", to: "caller", about: "person", do: func(t *testing.T, h *hiding) {
		h.set(t, "auth.device_approval", "password")
		signInWaiting(t, h.team.caller)
	}},
	{name: "channel.archived", to: "caller", about: "channel", do: func(t *testing.T, h *hiding) {
		owner, id := h.s.Owner(t), h.hidden["channel"]
		owner.Call(t, "archiveChannel", id, owner.Call(t, "getChannel", id).Version(t)).OK(t)
	}},
	{name: "access.expiring", to: "caller", about: "space", do: func(t *testing.T, h *hiding) {
		ending := grantOf(h.hidden["person"], "space", h.hidden["space"], "trigger")
		ending["replaces"], ending["expires_at"] = h.hidden["grant"], h.s.In(24*time.Hour+2*time.Minute)
		h.s.Owner(t).Call(t, "createGrant", ending).OK(t)
		for range 6 {
			h.s.Clock.Advance(time.Minute / 2)
			for _, socket := range h.sockets {
				socket.Beat(t)
			}
		}
	}},
}

// set changes a setting of the instance.
func (h *hiding) set(t *testing.T, key string, value any) {
	t.Helper()
	owner := h.s.Owner(t)
	owner.StepUp(t)
	owner.Call(t, "updateInstanceSettings", owner.Call(t, "getInstanceSettings").Version(t), harness.Body{key: value}).OK(t)
}

// TestNothingHiddenArrives makes every type of event in a hidden place. Somebody inside receives it;
// no stranger receives anything that mentions it, neither live nor with what she missed.
func TestNothingHiddenArrives(t *testing.T) {
	h := newHiding(t, harness.WithKeys(map[string]string{"authz.expiry_interval": "1s"}))
	known := map[string][]string{}
	for _, e := range events {
		known[e.name] = append(known[e.name], e.known...)
	}
	for _, e := range routes.Events {
		if _, cased := known[e.Type]; !cased && notYet[e.Type] == "" {
			t.Errorf("%s has no case: add a line to events in leak_events_test.go", e.Type)
		}
	}
	h.sockets = map[string]*harness.Socket{"owner": h.s.Owner(t).Connect(t)}
	strangers := maps.Clone(h.strangers)
	delete(strangers, "anonymous")
	for name, by := range strangers {
		h.sockets[name] = by.Connect(t)
	}
	h.hide()
	h.sockets["caller"], h.sockets["agent inside"] = h.team.caller.Connect(t), h.team.inbox
	for _, e := range events {
		t.Run(e.name, func(t *testing.T) {
			if e.do != nil {
				e.do(t, h)
			}
			to := e.to
			if to == "agent" {
				to = "agent inside"
			}
			h.sockets[to].Event(t, e.name, func(got harness.Event) bool {
				return e.about == "" || contains(got.Body, h.hidden[e.about])
			})
		})
	}
	last := h.strangers["member"].Say(t, h.open.Thread, "the end").Seq()
	for name, by := range strangers {
		h.sockets[name].Reach(t, last)
		missed := h.missed(t, by)
		if len(missed) == 0 {
			t.Errorf("%s has missed nothing", name)
		}
		for _, got := range append(h.sockets[name].Events(), missed...) {
			if thing := mentions(got.Body, h.hidden); thing != "" && !slices.Contains(known[got.Type], name) {
				t.Errorf("%s received %s about the hidden %s: %v", name, got.Type, thing, got.Body)
			}
		}
	}
}

// missed are the events that somebody reads who was away from the beginning.
func (h *hiding) missed(t *testing.T, by *harness.Client) []harness.Event {
	t.Helper()
	var out []harness.Event
	after := int64(0)
	for {
		page := by.Call(t, "listSyncEvents", harness.Query{"after": number(after), "sync_epoch": h.hidden["epoch"]}).OK(t)
		for _, e := range page.List("events") {
			name, _ := harness.At(e, "type").(string)
			out = append(out, harness.Event{Type: name, Body: e})
		}
		if next := page.Int("through_seq"); next > after && page.At("complete") != true {
			after = next
			continue
		}
		return out
	}
}

func contains(body any, id string) bool { return mentions(body, map[string]string{"it": id}) != "" }
