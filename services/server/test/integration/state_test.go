// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// world is a small team at random work. Viewer is whose client is followed.
type world struct {
	t      *testing.T
	s      *harness.Server
	owner  *harness.Client
	viewer *harness.Client
	agent  *harness.Client
	places []harness.Place
	// threads are all threads, with those of archived channels.
	threads []string
	// said are messages of the viewer and of the owner.
	said    map[*harness.Client][]string
	granted map[string]string
	runs    []string
	// last is the highest position an answer told of.
	last int64
}

func (w *world) do(by *harness.Client, op string, parts ...any) *harness.Response {
	r := by.Call(w.t, op, parts...)
	w.last = max(w.last, r.Seq())
	return r
}

func pick[T any](r *rapid.T, list []T, name string) T {
	if len(list) == 0 {
		r.Skip("nothing to pick")
	}
	return rapid.SampledFrom(list).Draw(r, name)
}

func (w *world) by(r *rapid.T) *harness.Client {
	return map[string]*harness.Client{"owner": w.owner, "viewer": w.viewer}[pick(r, []string{"owner", "viewer"}, "who")]
}

func (w *world) place(r *rapid.T) harness.Place { return pick(r, w.places, "place") }

func (w *world) makeSpace() {
	space := w.do(w.owner, "createSpace", harness.Body{"name": w.s.Unique("Space")}).OK(w.t).Str("id")
	w.makeChannel(space)
	w.do(w.owner, "createGrant", grantOf(w.agent.ID, "space", space, "write")).OK(w.t)
}

func (w *world) makeChannel(space string) {
	channel := w.do(w.owner, "createChannel", space, harness.Body{"kind": "text", "name": w.s.Unique("channel")}).OK(w.t)
	w.places = append(w.places, harness.Place{Space: space, Channel: channel.Str("id"), Thread: channel.Str("main_thread_id")})
	w.threads = append(w.threads, channel.Str("main_thread_id"))
}

func (w *world) say(by *harness.Client, thread, text string) {
	if m := w.do(by, "createMessage", thread, harness.Message(text)); m.Status < 400 {
		w.said[by] = append(w.said[by], m.Str("id"))
	}
}

// steps are everything that happens. A refusal is as good as a success: it changes nothing.
func (w *world) steps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"space":   func(*rapid.T) { w.makeSpace() },
		"channel": func(r *rapid.T) { w.makeChannel(w.place(r).Space) },
		"rename space": func(r *rapid.T) {
			id := w.place(r).Space
			w.do(w.owner, "updateSpace", id, w.do(w.owner, "getSpace", id).OK(w.t).Version(w.t), harness.Body{"name": w.s.Unique("Space")})
		},
		"topic": func(r *rapid.T) {
			id := w.place(r).Channel
			w.do(w.owner, "updateChannel", id, w.do(w.owner, "getChannel", id).OK(w.t).Version(w.t), harness.Body{"topic": w.s.Unique("topic")})
		},
		"barrier": func(r *rapid.T) {
			id := w.place(r).Channel
			w.do(w.owner, "updateChannel", id, w.do(w.owner, "getChannel", id).OK(w.t).Version(w.t), harness.Body{"inherits": rapid.Bool().Draw(r, "inherits")})
		},
		"behavior": func(r *rapid.T) {
			id := w.place(r).Channel
			rule := pick(r, []string{"mention", "off", "all"}, "rule")
			w.do(w.owner, "updateChannelBehavior", id, w.do(w.owner, "getChannelBehavior", id).OK(w.t).Version(w.t), harness.Body{"trigger_rule": rule})
		},
		"archive": func(r *rapid.T) {
			id := w.place(r).Channel
			w.do(w.owner, "archiveChannel", id, w.do(w.owner, "getChannel", id).OK(w.t).Version(w.t))
		},
		"grant": func(r *rapid.T) {
			p, kind := w.place(r), pick(r, []string{"space", "channel"}, "kind")
			target := map[string]string{"space": p.Space, "channel": p.Channel}[kind]
			body := grantOf(w.viewer.ID, kind, target, pick(r, []string{"read", "write", "trigger"}, "level"))
			if old := w.granted[target]; old != "" {
				body["replaces"] = old
			}
			if g := w.do(w.owner, "createGrant", body); g.Status < 400 {
				w.granted[target] = g.Str("id")
			}
		},
		"revoke": func(r *rapid.T) {
			p := w.place(r)
			target := pick(r, []string{p.Space, p.Channel}, "target")
			if id := w.granted[target]; id != "" {
				w.do(w.owner, "revokeGrant", id).OK(w.t)
				delete(w.granted, target)
			}
		},
		"say": func(r *rapid.T) { w.say(w.by(r), pick(r, w.threads, "thread"), w.s.Unique("text")) },
		"thread": func(r *rapid.T) {
			made := w.do(w.by(r), "createThread", w.place(r).Channel, harness.Body{"title": w.s.Unique("Thread"), "message": harness.Message("begin")})
			if made.Status < 400 {
				w.threads = append(w.threads, made.Str("thread.id"))
			}
		},
		"edit": func(r *rapid.T) {
			by := w.by(r)
			id := pick(r, w.said[by], "message")
			if m := w.do(by, "getMessage", id); m.Status < 400 {
				w.do(by, "updateMessage", id, m.Version(w.t), harness.Body{"content": w.s.Unique("edited")})
			}
		},
		"delete": func(r *rapid.T) {
			by := w.by(r)
			w.do(by, "deleteMessage", pick(r, w.said[by], "message"))
		},
		"read": func(r *rapid.T) {
			w.do(w.viewer, "updateReadState", pick(r, w.threads, "thread"), harness.Body{"last_read_thread_seq": rapid.IntRange(1, 9).Draw(r, "to")})
		},
		"unread": func(r *rapid.T) {
			w.do(w.viewer, "markThreadUnread", pick(r, w.threads, "thread"), harness.Body{"from_thread_seq": 1})
		},
		"profile": func(r *rapid.T) {
			w.do(w.owner, "updateSelf", w.do(w.owner, "getSelf").OK(w.t).Version(w.t), harness.Body{"title": w.s.Unique("title")})
		},
		"order": func(r *rapid.T) {
			m := w.do(w.owner, "createMessage", pick(r, w.threads, "thread"), harness.Message("<@"+w.agent.ID+"> work"))
			if m.Status >= 400 {
				return
			}
			read := w.do(w.owner, "getMessage", m.Str("id")).OK(w.t)
			if run := read.Str("triggers.0.run_id"); run != "" {
				w.runs = append(w.runs, run)
			}
		},
		"cancel": func(r *rapid.T) { w.do(w.owner, "cancelRun", pick(r, w.runs, "run"), harness.Body{}) },
	}
}

// TestStateAndEventsEqualAFreshState lets a small team do anything in any order, and compares
// what a client knows from its snapshot and the events since with a fresh snapshot.
func TestStateAndEventsEqualAFreshState(t *testing.T) {
	few(t)
	s := harness.Start(t)
	owner := s.Owner(t)
	rapid.Check(t, func(r *rapid.T) {
		owner.StepUp(t)
		w := &world{
			t: t, s: s, owner: owner, viewer: s.Person(t, "vera"), agent: s.Agent(t, "aida"),
			said: map[*harness.Client][]string{}, granted: map[string]string{},
		}
		w.makeSpace()
		w.granted[w.places[0].Space] = s.Grant(t, w.viewer, "write", "space", w.places[0].Space, "threads.create")
		socket := w.viewer.Dial(t)
		socket.Identify(t, nil)
		known := newMirror(t, w.viewer)
		steps := w.steps()
		steps[""] = func(r *rapid.T) {
			socket.Reach(t, w.last)
			known.follow(t, socket)
		}
		r.Repeat(steps)
		socket.Reach(t, w.last)
		known.follow(t, socket)
		if list := known.differences(newMirror(t, w.viewer)); len(list) > 0 {
			r.Fatalf("events and snapshot differ:\n%s", strings.Join(list, "\n"))
		}
		socket.Close()
	})
}

// few makes rapid run few long courses, because each costs a hundred requests.
func few(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"rapid.checks": "4", "rapid.steps": "50", "rapid.shrinktime": "10s", "rapid.nofailfile": "true"} {
		f := flag.Lookup(name)
		if f == nil {
			t.Fatalf("rapid has no flag %s", name)
		}
		before := f.Value.String()
		harness.Must(t, f.Value.Set(value))
		t.Cleanup(func() { harness.Must(t, f.Value.Set(before)) })
	}
}
