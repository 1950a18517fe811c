// SPDX-License-Identifier: Apache-2.0

package bothy_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/bothytest"
)

// waits records what a client would have waited.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
	return ctx.Err()
}

func client(t *testing.T, url string, w *waits, options ...bothy.Option) *bothy.Client {
	t.Helper()
	c, err := bothy.New(url, append([]bothy.Option{bothy.WithRetry(bothy.Retry{Sleep: w.sleep})}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var device = api.DeviceInfo{Name: "Test", Platform: api.PlatformLinux, Client: api.ClientKindCli, ClientVersion: "1"}

func TestAddressesThatAreNoInstance(t *testing.T) {
	for _, address := range []string{"", "chat.example.org", "ftp://x", "http://", "http://u:p@x", "http://x?y=1", "http://x#y", "http://a b"} {
		if _, err := bothy.New(address); err == nil {
			t.Errorf("New(%q) found no fault", address)
		}
	}
}

// answers serves the handlers one after the other and records the requests.
func answers(t *testing.T, handlers ...http.HandlerFunc) (url string, seen *[]http.Header, bodies *[]string) {
	t.Helper()
	var mu sync.Mutex
	var headers []http.Header
	var texts []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		n := len(headers)
		headers, texts = append(headers, r.Header.Clone()), append(texts, string(body))
		mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, &headers, &texts
}

func fault(status int, code api.ErrorCode, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if len(header) > 0 {
			w.Header().Set(header[0], header[1])
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "title": "Text.", "status": status, "correlation_id": "c", "reason": "why"})
	}
}

func message(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write([]byte(`{"id":"m"}`))
}

func TestAWriteIsRepeatedWithTheSameKeyAndBytesUntilItIsAnswered(t *testing.T) {
	var w waits
	lost := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}
	url, seen, bodies := answers(t, lost, fault(429, api.ErrorCodeRateLimited, "Retry-After", "7"), fault(503, api.ErrorCodeUnavailable),
		fault(409, api.ErrorCodeRequestInProgress), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, message)
	m, err := client(t, url, &w).CreateMessage(t.Context(), "t", api.CreateMessageRequest{Content: "hello"})
	if err != nil || m.ID != "m" {
		t.Fatalf("CreateMessage = %v, %v", m, err)
	}
	if len(*seen) != 6 {
		t.Fatalf("%d requests", len(*seen))
	}
	for i, h := range *seen {
		if h.Get("Idempotency-Key") == "" || h.Get("Idempotency-Key") != (*seen)[0].Get("Idempotency-Key") || (*bodies)[i] != (*bodies)[0] {
			t.Errorf("attempt %d: key %q, body %s", i, h.Get("Idempotency-Key"), (*bodies)[i])
		}
	}
	if w.all[1] < 7*time.Second {
		t.Errorf("waited %v although the server asked for 7 s", w.all[1])
	}
}

func TestFinalAnswersAreNotRepeated(t *testing.T) {
	for _, code := range []struct {
		status int
		code   api.ErrorCode
	}{{400, api.ErrorCodeValidationFailed}, {403, api.ErrorCodeForbidden}, {404, api.ErrorCodeNotFound}, {409, api.ErrorCodeConflict}, {412, api.ErrorCodeVersionConflict}, {503, api.ErrorCodeMaintenance}} {
		var w waits
		url, seen, _ := answers(t, fault(code.status, code.code))
		_, err := client(t, url, &w).Self(t.Context())
		var p *bothy.Problem
		if !errors.As(err, &p) || p.Code != code.code || p.Reason != "why" || p.CorrelationID != "c" || len(*seen) != 1 {
			t.Errorf("%s: %v after %d requests", code.code, err, len(*seen))
		}
		if !bothy.HasCode(err, code.code) || bothy.Reason(err) != "why" {
			t.Errorf("%s: HasCode or Reason do not see it", code.code)
		}
	}
}

func TestPatienceEnds(t *testing.T) {
	var w waits
	url, seen, _ := answers(t, fault(503, api.ErrorCodeUnavailable))
	_, err := client(t, url, &w).Self(t.Context())
	if !bothy.HasCode(err, api.ErrorCodeUnavailable) || len(*seen) != 8 {
		t.Errorf("%v after %d requests", err, len(*seen))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, url, &w).Self(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestALoginIsNotRepeatedBlindly(t *testing.T) {
	var w waits
	s := bothytest.Start(t)
	s.Inject(bothytest.Fault{Method: "POST", Path: "/complete", Times: 1, LoseAnswer: true})
	key, err := bothy.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, s.URL, &w).LoginWithPassword(t.Context(), key, device, "ana", bothytest.Password); err == nil {
		t.Error("a login whose answer was lost succeeded")
	}
}

func login(t *testing.T, s *bothytest.Server, w *waits) (*bothy.Client, *bothy.Session) {
	t.Helper()
	key, err := bothy.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, s.URL, w)
	session, err := c.LoginWithPassword(t.Context(), key, device, "ana", bothytest.Password)
	if err != nil {
		t.Fatal(err)
	}
	return c.As(session), session
}

func TestASessionProvesItselfAndGoesOn(t *testing.T) {
	var w waits
	s := bothytest.Start(t)
	c, session := login(t, s, &w)
	var stored bothy.SessionState
	session.OnChange(func(state bothy.SessionState) error { stored = state; return nil })
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"fresh", func() {}},
		{"the nonce is stale", s.ForgetNonces},
		{"the token has expired", s.ExpireAccess},
		{"both", func() { s.ForgetNonces(); s.ExpireAccess() }},
	} {
		step.do()
		self, err := c.Self(t.Context())
		if err != nil || self.ID != s.PersonID {
			t.Fatalf("%s: %v, %v", step.what, self, err)
		}
	}
	if stored.RefreshToken == "" || stored.RefreshToken != session.State().RefreshToken {
		t.Error("the new refresh token was not given to be stored")
	}
	s.EndSession()
	if _, err := c.Self(t.Context()); !errors.Is(err, bothy.ErrSignedOut) {
		t.Errorf("after the end of the session: %v", err)
	}
}

func TestAStoredSessionGoesOnAfterARestart(t *testing.T) {
	var w waits
	s := bothytest.Start(t)
	key, err := bothy.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, s.URL, &w)
	session, err := c.LoginWithCode(t.Context(), key, device, "AAAAAA-BBBBBB-CCCCCC-DDDDDD", bothytest.Password)
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.PEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := bothy.ParseKey(text)
	if err != nil || again.Thumbprint() != key.Thumbprint() {
		t.Fatalf("key after a restart: %v", err)
	}
	resumed := c.ResumeSession(again, session.State(), nil)
	if _, err := c.As(resumed).Self(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAWrongPasswordIsAProblemWithAReason(t *testing.T) {
	var w waits
	s := bothytest.Start(t)
	key, err := bothy.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, err = client(t, s.URL, &w).LoginWithPassword(t.Context(), key, device, "ana", "wrong")
	if bothy.Reason(err) != "login_failed" {
		t.Error(err)
	}
}

func TestManyCallsShareOneRefresh(t *testing.T) {
	var w waits
	s := bothytest.Start(t)
	c, session := login(t, s, &w)
	before := session.State().RefreshToken
	changes := 0
	session.OnChange(func(bothy.SessionState) error { changes++; return nil })
	s.ExpireAccess()
	if err := session.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := c.Self(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if changes != 1 || session.State().RefreshToken == before {
		t.Errorf("%d refreshes", changes)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	token := bothy.APIToken("bothy_agent_secret")
	for _, text := range []string{token.String(), token.GoString()} {
		if strings.Contains(text, "secret") {
			t.Errorf("printed as %q", text)
		}
	}
}

func TestBackoffStaysInItsBounds(t *testing.T) {
	for n := range 40 {
		for range 50 {
			if d := bothy.Backoff(n, 0, 0); d < 0 || d > min(time.Minute, time.Second<<min(n, 10)) {
				t.Fatalf("Backoff(%d) = %v", n, d)
			}
		}
	}
}

func TestIDsAreUUIDs(t *testing.T) {
	known := map[string]bool{}
	for range 1000 {
		id := bothy.NewID()
		if len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) || known[id] {
			t.Fatalf("NewID() = %q", id)
		}
		known[id] = true
	}
}
