// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// mirror is what a client knows: the snapshot it began with and every event since. It follows
// the rules of the contract for clients and knows nothing of the server.
type mirror struct {
	client *harness.Client
	// things are kept by their kind and identifier, with the position they reflect.
	things map[string]map[string]thing
	access map[string]any
	// next is the number of events of the connection that were applied.
	next int
}

type thing struct {
	value map[string]any
	seq   int64
}

// kinds are the sections of a snapshot that a mirror keeps, with the member that holds the
// thing and the one that identifies it.
var kinds = map[string]struct{ inner, id string }{
	"spaces": {"space", "id"}, "channels": {"channel", "id"}, "threads": {"", "id"},
	"principals": {"", "id"}, "runs": {"", "id"}, "read_states": {"", "thread_id"},
}

func newMirror(t testing.TB, c *harness.Client) *mirror {
	t.Helper()
	m := &mirror{client: c, things: map[string]map[string]thing{}, access: map[string]any{}}
	for kind := range kinds {
		m.things[kind] = map[string]thing{}
	}
	m.load(t, nil)
	return m
}

// load reads all pages of a snapshot, of everything or of some targets.
func (m *mirror) load(t testing.TB, targets []string) {
	t.Helper()
	query := harness.Query{}
	if targets != nil {
		query["targets"] = strings.Join(targets, ",")
	}
	for {
		page := m.client.Call(t, "getSnapshot", query).OK(t)
		seq := page.Int("page_seq")
		for kind, how := range kinds {
			for _, item := range page.List("sections." + kind) {
				value, _ := harness.At(item, how.inner).(map[string]any)
				if access := harness.At(item, "access"); access != nil && how.inner != "" {
					m.access[value["id"].(string)] = access
				}
				m.put(kind, value, seq)
			}
		}
		next := page.Str("next_cursor")
		if next == "" {
			return
		}
		query = harness.Query{"cursor": next}
	}
}

// put keeps a thing unless the mirror knows a later state of it.
func (m *mirror) put(kind string, value map[string]any, seq int64) {
	id := value[kinds[kind].id].(string)
	if old, known := m.things[kind][id]; known && old.seq >= seq {
		return
	}
	m.things[kind][id] = thing{value, seq}
}

// follow applies what the connection has received since the last time.
func (m *mirror) follow(t testing.TB, s *harness.Socket) {
	t.Helper()
	events := s.Events()
	for _, e := range events[m.next:] {
		m.apply(t, e)
	}
	m.next = len(events)
}

func (m *mirror) apply(t testing.TB, e harness.Event) {
	t.Helper()
	object := func(path string) map[string]any {
		v, _ := harness.At(e.Body, path).(map[string]any)
		return v
	}
	switch e.Type {
	case "access.changed":
		m.rights(t, e)
	case "space.created", "space.updated":
		m.update("spaces", object("data"), e.Seq)
	case "channel.created":
		m.create(t, e, object("data"))
	case "channel.updated", "channel.archived":
		m.update("channels", object("data"), e.Seq)
	case "thread.created":
		if m.knows("channels", e.Str("place.channel_id")) {
			m.put("threads", object("data"), e.Seq)
		}
	case "message.created":
		m.counters(e.Str("place.thread_id"), object("data.counters"), e.Seq)
		m.posted(object("data.message"), e.Seq)
	case "message.deleted":
		m.counters(e.Str("place.thread_id"), object("data.counters"), e.Seq)
	case "user.updated":
		m.put("principals", object("data.user"), e.Seq)
	case "read_state.updated":
		list, _ := harness.At(e.Body, "data.read_states").([]any)
		for _, state := range list {
			m.put("read_states", state.(map[string]any), e.Seq)
		}
	case "run.state_changed":
		if run := object("data.run"); run["ended_at"] != nil {
			delete(m.things["runs"], run["id"].(string))
		} else if m.knows("threads", e.Str("place.thread_id")) {
			m.put("runs", run, e.Seq)
		}
	}
}

func (m *mirror) knows(kind, id string) bool {
	_, known := m.things[kind][id]
	return known
}

// update changes a thing that is known; events of others come before the change of rights that
// makes them known.
func (m *mirror) update(kind string, value map[string]any, seq int64) {
	if m.knows(kind, value["id"].(string)) {
		m.put(kind, value, seq)
	}
}

// create takes up a channel that was made in a space that is known; what comes with it is
// loaded.
func (m *mirror) create(t testing.TB, e harness.Event, channel map[string]any) {
	t.Helper()
	if m.knows("spaces", e.Str("place.space_id")) {
		m.load(t, []string{"channel:" + channel["id"].(string)})
	}
}

// posted has read everything up to an own message.
func (m *mirror) posted(message map[string]any, seq int64) {
	thread, _ := message["thread_id"].(string)
	if message["kind"] != "message" || harness.At(message, "author.id") != m.client.ID {
		return
	}
	version := 1.0
	if known, ok := m.things["read_states"][thread]; ok {
		if known.value["as_of_thread_seq"].(float64) >= message["thread_seq"].(float64) {
			return
		}
		version = known.value["version"].(float64) + 1
	}
	m.put("read_states", map[string]any{
		"thread_id": thread, "channel_id": message["channel_id"], "last_read_thread_seq": message["thread_seq"],
		"manually_unread_from": nil, "first_unread_thread_seq": nil, "unread_count": 0.0, "unread_capped": false, "mention_count": 0.0,
		"as_of_thread_seq": message["thread_seq"], "version": version, "updated_at": message["created_at"],
	}, seq)
}

func (m *mirror) counters(thread string, counters map[string]any, seq int64) {
	old, known := m.things["threads"][thread]
	if !known || counters == nil || old.seq >= seq {
		return
	}
	value := maps.Clone(old.value)
	value["counters"] = counters
	m.things["threads"][thread] = thing{value, seq}
}

// rights follows a change of the own rights: what was gained is loaded, what was lost goes.
func (m *mirror) rights(t testing.TB, e harness.Event) {
	t.Helper()
	list := func(name string) []any {
		l, _ := harness.At(e.Body, "data."+name).([]any)
		return l
	}
	for _, target := range list("lost") {
		id, _ := harness.At(target, "id").(string)
		m.forget("spaces", id)
		m.forget("channels", id)
	}
	m.close()
	var load []string
	for _, change := range append(list("gained"), list("changed")...) {
		kind, _ := harness.At(change, "target.kind").(string)
		id, _ := harness.At(change, "target.id").(string)
		m.access[id] = map[string]any{"level": harness.At(change, "level"), "capabilities": harness.At(change, "capabilities")}
		load = append(load, kind+":"+id)
	}
	if len(load) > 0 {
		m.load(t, load)
	}
}

// forget removes a space or channel with everything inside.
func (m *mirror) forget(kind, id string) {
	delete(m.things[kind], id)
	delete(m.access, id)
	for inner, member := range map[string]string{"channels": "space_id", "threads": "channel_id", "runs": "channel_id", "read_states": "channel_id"} {
		for child, th := range m.things[inner] {
			if th.value[member] != id {
				continue
			}
			delete(m.things[inner], child)
			if inner == "channels" {
				m.forget("channels", child)
			}
		}
	}
}

// close forgets spaces that were shown for the sake of a channel which is gone.
func (m *mirror) close() {
	for id := range m.things["spaces"] {
		inside := false
		for _, c := range m.things["channels"] {
			inside = inside || c.value["space_id"] == id
		}
		if !inside && harness.At(m.access[id], "level") == nil {
			m.forget("spaces", id)
		}
	}
}

// differences compares a mirror with a fresh one.
func (m *mirror) differences(fresh *mirror) []string {
	var out []string
	for kind := range kinds {
		have, want := m.plain(kind), fresh.plain(kind)
		if kind == "read_states" {
			maps.DeleteFunc(want, func(id string, _ map[string]any) bool { return have[id] == nil })
		}
		out = append(out, differ(kind, have, want)...)
	}
	slices.Sort(out)
	return out
}

func differ(kind string, have, want map[string]map[string]any) []string {
	var out []string
	for id, value := range have {
		other, known := want[id]
		if !known {
			out = append(out, fmt.Sprintf("%s %s is known from events alone: %v", kind, id, value))
			continue
		}
		for name, member := range value {
			if !reflect.DeepEqual(member, other[name]) {
				out = append(out, fmt.Sprintf("%s %s: %s is %v after the events, %v in a fresh snapshot", kind, id, name, member, other[name]))
			}
		}
	}
	for id, value := range want {
		if _, known := have[id]; !known {
			out = append(out, fmt.Sprintf("%s %s is in a fresh snapshot alone: %v", kind, id, value))
		}
	}
	return out
}

// plain gives the things of a kind as they are compared. Of read states only what an event
// told: counts are made by the client itself, and a position that nobody set is the server's
// guess.
func (m *mirror) plain(kind string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for id, th := range m.things[kind] {
		value := th.value
		switch kind {
		case "read_states":
			if value["version"] == 0.0 {
				continue
			}
			value = map[string]any{"last_read_thread_seq": value["last_read_thread_seq"], "manually_unread_from": value["manually_unread_from"]}
		case "spaces", "channels":
			if kind == "spaces" && harness.At(m.access[id], "level") == nil {
				// Shown for the sake of a channel in it; no event tells how it changes.
				out[id] = map[string]any{}
				continue
			}
			value = maps.Clone(value)
			value["access"] = m.access[id]
		}
		out[id] = value
	}
	return out
}
