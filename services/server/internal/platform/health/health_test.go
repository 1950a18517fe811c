// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
)

func setup(t *testing.T) (*Checker, *clocktest.Fake) {
	t.Helper()
	clk := clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return New(Info{Role: "all", Version: "1.4.0", StartedAt: clk.Now(), Maintenance: "off"}, clk), clk
}

func get(c *Checker, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestALivingProcessSaysWhatItIs(t *testing.T) {
	c, _ := setup(t)
	w := get(c, "GET", "/healthz")
	want := `{"status":"alive","role":"all","version":"1.4.0","started_at":"2026-03-01T12:00:00.000Z"}`
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != want || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestReadinessNamesEachFailedCheckByItsCode(t *testing.T) {
	c, clk := setup(t)
	startup := NewGate(false)
	c.Register("startup", startup.Check)
	c.Register("database", func(context.Context) bool { return true })
	w := get(c, "GET", "/readyz")
	want := `{"status":"not_ready","role":"all","maintenance":"off","checks":[{"name":"startup","ok":false,"code":"startup"},{"name":"database","ok":true}]}`
	if w.Code != 503 || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	startup.Set(true)
	clk.Advance(time.Second)
	if w := get(c, "HEAD", "/readyz"); w.Code != 200 {
		t.Errorf("open gate gives %d", w.Code)
	}
}

func TestManyQuestionsRunACheckOnceASecond(t *testing.T) {
	c, clk := setup(t)
	var runs atomic.Int64
	c.Register("database", func(context.Context) bool { runs.Add(1); return true })
	for range 1000 {
		get(c, "GET", "/readyz")
	}
	if runs.Load() != 1 {
		t.Fatalf("%d runs", runs.Load())
	}
	clk.Advance(time.Second)
	get(c, "GET", "/readyz")
	c.Invalidate()
	get(c, "GET", "/readyz")
	if runs.Load() != 3 {
		t.Fatalf("%d runs after a second and an invalidation", runs.Load())
	}
}

func TestOtherMethodsAreRefusedWithAllow(t *testing.T) {
	c, _ := setup(t)
	w := get(c, "POST", "/readyz")
	if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestAnAnswerHoldsNoFurtherMembers(t *testing.T) {
	c, _ := setup(t)
	c.Register("startup", NewGate(true).Check)
	var body map[string]json.RawMessage
	if err := json.Unmarshal(get(c, "GET", "/readyz").Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"status", "role", "maintenance", "checks"} {
		delete(body, k)
	}
	if len(body) != 0 {
		t.Errorf("unexpected members %v", body)
	}
}
