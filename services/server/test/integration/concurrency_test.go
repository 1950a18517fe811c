// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

// together runs a call several times at once and gives the answers.
func together(n int, call func(i int) *harness.Response) []*harness.Response {
	answers := make([]*harness.Response, n)
	var begin, done sync.WaitGroup
	begin.Add(1)
	for i := range n {
		done.Go(func() {
			begin.Wait()
			answers[i] = call(i)
		})
	}
	begin.Done()
	done.Wait()
	return answers
}

func count(answers []*harness.Response, fits func(*harness.Response) bool) int {
	n := 0
	for _, r := range answers {
		if fits(r) {
			n++
		}
	}
	return n
}

func status(code int) func(*harness.Response) bool {
	return func(r *harness.Response) bool { return r.Status == code }
}

func refusedWith(code string) func(*harness.Response) bool {
	return func(r *harness.Response) bool { return r.Code() == code }
}

func TestOneMessageOfManyRepeats(t *testing.T) {
	const repeats = 50
	s := shared.Use(t)
	ana := s.Person(t, "ana")
	place := s.Space(t, "write", ana)
	ana.Call(t, "getSelf").OK(t)
	body := harness.Message("only once")
	answers := together(repeats, func(int) *harness.Response { return ana.Call(t, "createMessage", place.Thread, body) })
	if made, found := count(answers, status(http.StatusCreated)), count(answers, status(http.StatusOK)); made != 1 || made+found != repeats {
		t.Errorf("%d made, %d found of %d", made, found, repeats)
	}
	for _, r := range answers {
		if r.Str("id") != answers[0].Str("id") {
			t.Fatalf("two messages: %s and %s", answers[0].Body, r.Body)
		}
	}
	if n := s.DB.Count(t, "SELECT count(*) FROM messages WHERE thread_id = $1", place.Thread); n != 1 {
		t.Errorf("%d messages", n)
	}
	if n := s.DB.Count(t, "SELECT count(*) FROM event_log WHERE type = 'message.created' AND thread_id = $1", place.Thread); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestOneSpaceOfManyRepeatsWithAKey(t *testing.T) {
	const repeats = 20
	s := shared.Use(t)
	owner := s.Owner(t)
	owner.Call(t, "getSelf").OK(t)
	name := s.Unique("Together")
	answers := together(repeats, func(int) *harness.Response {
		return owner.Call(t, "createSpace", harness.Body{"name": name}, harness.Key(name))
	})
	made, running := count(answers, status(http.StatusCreated)), count(answers, refusedWith("request_in_progress"))
	if made == 0 || made+running != repeats {
		t.Errorf("%d made or repeated, %d told to wait, of %d", made, running, repeats)
	}
	if n := s.DB.Count(t, "SELECT count(*) FROM spaces WHERE name = $1", name); n != 1 {
		t.Errorf("%d spaces", n)
	}
}

func TestOneOfTwoStartsWins(t *testing.T) {
	s := shared.Use(t)
	w := newTeam(t, s)
	for i := range 5 {
		run := w.order(t, fmt.Sprint("race ", i))
		token := w.invoked(t, run)
		answers := together(2, func(int) *harness.Response { return w.agent.Call(t, "startRun", run, token, harness.Body{}) })
		if won, lost := count(answers, status(http.StatusOK)), count(answers, refusedWith("already_started")); won != 1 || lost != 1 {
			t.Errorf("%d starts won, %d lost: %s %s", won, lost, answers[0].Body, answers[1].Body)
		}
		w.agent.Call(t, "finishRun", run, token, harness.Body{"state": "completed"}).OK(t)
	}
}

func TestADeletionBeatsEveryEdit(t *testing.T) {
	const rounds, edits = 10, 4
	s := shared.Use(t)
	ana, bob := s.Person(t, "ana"), s.Person(t, "bob")
	place := s.Space(t, "write", ana, bob)
	for i := range rounds {
		secret := s.Unique("secret")
		made := ana.Say(t, place.Thread, secret+" first")
		id := made.Str("id")
		answers := together(edits+1, func(i int) *harness.Response {
			if i == edits/2 {
				return ana.Call(t, "deleteMessage", id)
			}
			return ana.Call(t, "updateMessage", id, made.Version(t), harness.Body{"content": fmt.Sprint(secret, " edit ", i)})
		})
		for _, r := range answers {
			switch {
			case r.Operation == "deleteMessage" && r.Status == http.StatusNoContent:
			case r.Operation == "updateMessage" && (r.Status == http.StatusOK || slices.Contains([]string{"message_deleted", "version_conflict"}, r.Code())):
			default:
				t.Errorf("round %d: %s answered %d %s", i, r.Operation, r.Status, r.Body)
			}
		}
		bob.Call(t, "getMessage", id).Refused(t, "message_deleted")
		for table, column := range map[string]string{"messages": "content", "message_revisions": "content", "event_log": "payload::text"} {
			if n := s.DB.Count(t, "SELECT count(*) FROM "+table+" WHERE position($1 IN "+column+") > 0", secret); n > 0 {
				t.Errorf("round %d: the text is still in %s", i, table)
			}
		}
	}
}

func TestOneThreadOfManyBeginnings(t *testing.T) {
	const people = 8
	s := shared.Use(t)
	owner := s.Owner(t)
	place := s.Space(t, "write")
	parent := owner.Say(t, place.Thread, "begin here")
	answers := together(people, func(i int) *harness.Response {
		return owner.Call(t, "createThread", place.Channel, harness.Body{"parent_message_id": parent.Str("id"), "message": harness.Message(fmt.Sprint("me ", i))})
	})
	if made, joined := count(answers, status(http.StatusCreated)), count(answers, status(http.StatusOK)); made != 1 || made+joined != people {
		t.Errorf("%d made, %d joined", made, joined)
	}
	page := owner.Call(t, "listMessages", answers[0].Str("thread.id")).OK(t)
	if len(page.List("items")) != people {
		t.Errorf("%d messages in the thread", len(page.List("items")))
	}
}
