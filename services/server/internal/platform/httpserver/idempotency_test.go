// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
)

func TestARepeatedWriteRunsOnceAndAnswersAlike(t *testing.T) {
	b := setup(t, nil)
	first := b.write("Idempotency-Key", "k1")
	second := b.write("Idempotency-Key", "k1")
	if b.runs != 1 || first.Code != 201 || second.Code != 201 || first.Body.String() != second.Body.String() {
		t.Errorf("%d runs, %d %s, %d %s", b.runs, first.Code, first.Body, second.Code, second.Body)
	}
	if first.Header().Get("Idempotency-Replayed") != "" || second.Header().Get("Idempotency-Replayed") != "true" || second.Header().Get("ETag") != `"2"` {
		t.Errorf("%v", second.Header())
	}
	if first.Header().Get("Sync-Seq") != "42" || first.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v", first.Header())
	}
	if w := b.send("POST", thing, `{"name":"m"}`, append(good, "Idempotency-Key", "k1")...); code(t, w) != "idempotency_key_reuse" {
		t.Errorf("%s", w.Body)
	}
	if w := b.write("Idempotency-Key", "k2"); w.Code != 201 || b.runs != 2 {
		t.Errorf("another key: %d, %d runs", w.Code, b.runs)
	}
}

func TestFinalRefusalsAreStoredAndOthersAreNot(t *testing.T) {
	for _, c := range []struct {
		err    error
		stored bool
	}{
		{errs.NotFound(), true},
		{errs.Conflict("taken", "x"), true},
		{errs.New(errs.CodeStepUpRequired, "x"), false},
		{errs.New(errs.CodeRateLimited, "x"), false},
		{errs.Unavailable(nil), false},
		{errors.New("bug"), false},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			b := setup(t, nil)
			b.handle = func(w http.ResponseWriter, r *http.Request) { WriteError(w, r, c.err) }
			first := b.write("Idempotency-Key", "k")
			second := b.write("Idempotency-Key", "k")
			if b.units.committed > 1 || b.units.rolledBack == 0 || first.Code != second.Code {
				t.Errorf("committed %d, rolled back %d, %d then %d", b.units.committed, b.units.rolledBack, first.Code, second.Code)
			}
			if replayed := second.Header().Get("Idempotency-Replayed") == "true"; replayed != c.stored || (b.runs == 1) != c.stored {
				t.Errorf("replayed %v, %d runs", replayed, b.runs)
			}
		})
	}
}

func TestASecretIsNotStored(t *testing.T) {
	b := setup(t, nil)
	inner := b.handle
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		idempotency.ShowsSecret(r.Context(), principal)
		inner(w, r)
	}
	if w := b.write("Idempotency-Key", "k"); w.Code != 201 {
		t.Fatal(w.Body)
	}
	w := b.write("Idempotency-Key", "k")
	if code(t, w) != "conflict" || !strings.Contains(w.Body.String(), `"reason":"secret_already_shown"`) || !strings.Contains(w.Body.String(), principal.String()) {
		t.Errorf("%s", w.Body)
	}
	for _, a := range b.store.answers {
		if len(a.Body) > 0 {
			t.Error("the body was stored")
		}
	}
}

func TestARepeatedUnitBeginsAfresh(t *testing.T) {
	b := setup(t, nil)
	b.units.repeat = 2
	inner := b.handle
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 12 {
			t.Errorf("the body is gone: %d", r.ContentLength)
		}
		inner(w, r)
	}
	b.store = &fakeStore{}
	b.Chain.options.Idempotency = forgetful{b.store}
	w := b.write("Idempotency-Key", "k")
	if w.Code != 201 || w.Body.String() != `{"ok":true}` || b.runs != 3 {
		t.Errorf("%d %s, %d runs", w.Code, w.Body, b.runs)
	}
}

// forgetful never finds an answer, as after a rollback.
type forgetful struct{ *fakeStore }

func (f forgetful) Begin(ctx ctxType, _ idempotency.Key) (*idempotency.Answer, error) {
	return nil, ctx.Err()
}

func TestTheUnitSeesWhyAHandlerFailed(t *testing.T) {
	b := setup(t, nil)
	cause := errors.New("deadlock")
	b.handle = func(w http.ResponseWriter, r *http.Request) { WriteError(w, r, errs.Unavailable(cause)) }
	var seen error
	b.Chain.options.Units = unitsFunc(func(ctx ctxType, fn func(ctxType) error) error {
		seen = fn(ctx)
		return seen
	})
	if w := b.write("Idempotency-Key", "k"); w.Code != 503 || !errors.Is(seen, cause) {
		t.Errorf("%d, %v", w.Code, seen)
	}
	if strings.Count(b.log.String(), "request could not be served") != 1 {
		t.Errorf("the cause must be logged once: %s", b.log)
	}
}

func TestTheUnitKnowsBetterThanTheHandler(t *testing.T) {
	b := setup(t, nil)
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		WriteError(w, r, errors.New("raw failure of the database"))
	}
	b.Chain.options.Units = unitsFunc(func(ctx ctxType, fn func(ctxType) error) error { return errs.Unavailable(fn(ctx)) })
	if w := b.write("Idempotency-Key", "k"); code(t, w) != "unavailable" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAFailedCommitIsAnsweredInsteadOfTheBuffer(t *testing.T) {
	b := setup(t, nil)
	b.Chain.options.Units = unitsFunc(func(ctx ctxType, fn func(ctxType) error) error {
		if err := fn(ctx); err != nil {
			t.Error(err)
		}
		return errs.Unavailable(errors.New("not durable in time"))
	})
	w := b.write("Idempotency-Key", "k")
	if code(t, w) != "unavailable" || strings.Contains(w.Body.String(), "ok") || w.Header().Get("ETag") != "" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAnonymousCallersHaveNoKeys(t *testing.T) {
	b := setup(t, nil)
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		authorize.Note(r.Context(), authorize.Check{Action: "thing.write", Allowed: true})
		w.WriteHeader(http.StatusNoContent)
	}
	for range 2 {
		b.send("POST", thing, `{"name":"n"}`, "Content-Type", "application/json", "If-Match", `"1"`, "Idempotency-Key", "k")
	}
	if b.runs != 2 || len(b.store.answers) != 0 {
		t.Errorf("%d runs, %d answers", b.runs, len(b.store.answers))
	}
}

func TestATwinThatHoldsTheKeyIsTold(t *testing.T) {
	b := setup(t, nil)
	b.store.err = errs.New(errs.CodeRequestInProgress, "x")
	w := b.write("Idempotency-Key", "k")
	if code(t, w) != "request_in_progress" || w.Header().Get("Retry-After") != "1" || b.runs != 0 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
