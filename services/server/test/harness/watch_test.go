// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var shared = NewShared()

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestIdentifiersInPathsMustBeAuthorized gives the watch what it must find.
func TestIdentifiersInPathsMustBeAuthorized(t *testing.T) {
	s := shared.Use(t)
	place := s.Space(t, "read")
	elsewhere := s.Space(t, "read")
	id := func(text string) ids.ID {
		parsed, err := ids.Parse(text)
		Must(t, err)
		return parsed
	}
	for _, c := range []struct {
		name, operation, param, value string
		checked                       authorize.Resource
		fault                         bool
	}{
		{"the thing itself", "getSpace", "space_id", place.Space, authorize.Space(id(place.Space)), false},
		{"another thing", "getSpace", "space_id", place.Space, authorize.Space(id(elsewhere.Space)), true},
		{"the channel around a thread", "getThread", "thread_id", place.Thread, authorize.Channel(id(place.Channel)), false},
		{"another channel", "getThread", "thread_id", place.Thread, authorize.Channel(id(elsewhere.Channel)), true},
		{"nothing but the instance", "getChannel", "channel_id", place.Channel, authorize.Instance(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWatch()
			w.db = s.DB
			ctx, log := authorize.WithCheckLog(context.Background())
			authorize.Note(ctx, authorize.Check{Action: "test", Resource: c.checked, Allowed: true})
			r := httptest.NewRequest("GET", "/", nil)
			r.SetPathValue(c.param, c.value)
			w.inspect(c.operation, r, log)
			if found := len(w.faults) > 0; found != c.fault {
				t.Errorf("faults: %v", w.faults)
			}
		})
	}
}

func TestInternalErrorsAndUnprovenSuccessesAreFaults(t *testing.T) {
	w := newWatch()
	w.Answer("getSpace", 404, "not_found")
	w.Op("focus", "forbidden")
	if len(w.faults) > 0 {
		t.Errorf("faults: %v", w.faults)
	}
	w.Answer("getSpace", 500, "internal_error")
	w.Op("focus", "internal_error")
	w.unproven("getThread", nil)
	if len(w.faults) != 3 {
		t.Errorf("faults: %v", w.faults)
	}
}

func TestAnswersAreHeldAgainstTheContract(t *testing.T) {
	s := shared.Use(t)
	good := s.Owner(t).Call(t, "getSelf").OK(t)
	for name, spoil := range map[string]func(r *Response){
		"another status":     func(r *Response) { r.Status = 201 },
		"another media type": func(r *Response) { r.Header.Set("Content-Type", "text/plain") },
		"a missing member":   func(r *Response) { r.Body = []byte(strings.Replace(string(r.Body), `"handle"`, `"handel"`, 1)) },
		"a time of another form": func(r *Response) {
			r.Body = []byte(strings.Replace(string(r.Body), `"title":null`, `"title":"2026-01-02T03:04:05Z"`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := &Response{Operation: good.Operation, Status: good.Status, Header: good.Header.Clone(), Body: good.Body}
			spoil(bad)
			if err := bad.check(); err == nil {
				t.Errorf("accepted: %s", bad.Body)
			}
		})
	}
	if err := (&Response{Operation: good.Operation, Status: good.Status, Header: good.Header, Body: good.Body}).check(); err != nil {
		t.Error(err)
	}
}

func TestTimersFireWhenTheClockMoves(t *testing.T) {
	c := newClock()
	timer := c.NewTimer(time.Hour)
	before := c.Now()
	c.Advance(59 * time.Minute)
	select {
	case <-timer.C():
		t.Fatal("fired too early")
	default:
	}
	c.Advance(2 * time.Minute)
	select {
	case <-timer.C():
	case <-time.After(Patience):
		t.Fatal("did not fire")
	}
	if passed := c.Now().Sub(before); passed < time.Hour {
		t.Errorf("%s passed", passed)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s := Start(b)
		s.Stop(b)
	}
}
