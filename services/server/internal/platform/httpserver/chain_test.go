// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/idempotency"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
)

var principal = ids.MustParse("0199c2a0-000f-7000-8000-00000000000f")

type bundle struct {
	*Chain
	clock     *clocktest.Fake
	auth      *fakeAuth
	store     *fakeStore
	units     *fakeUnits
	meter     *otel.MemoryMeter
	log       *bytes.Buffer
	setup     bool
	unproven  int
	observed  []Observation
	positions int64
	runs      int
	// handle is what the handler of writeThing and getThing does behind its check.
	handle func(w http.ResponseWriter, r *http.Request)
}

func setup(t testing.TB, change func(*Options, *Operation)) *bundle {
	t.Helper()
	b := &bundle{
		clock: clocktest.New(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), auth: &fakeAuth{}, store: &fakeStore{},
		units: &fakeUnits{}, meter: &otel.MemoryMeter{}, log: &bytes.Buffer{}, setup: true, positions: 41,
	}
	limiter, err := ratelimit.New(ratelimit.Config{MaxTrackedKeys: 1000, Classes: map[string]*ratelimit.Class{
		"write": {Key: ratelimit.KeyPrincipal, Burst: 1_000_000, PerMinute: 60}, "public_auth": {Key: ratelimit.KeyClientIP, Burst: 3, PerMinute: 60},
		"tight": {Key: ratelimit.KeyPrincipal, Burst: 1, PerMinute: 60},
	}}, b.clock)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Config: Config{
			PublicURL: "https://chat.example.org", RequestTimeout: time.Minute, TransferTimeout: time.Minute, MaxJSONBodyBytes: 1000, MaxJSONDepth: 8,
			UnavailableRetryAfter: 5 * time.Second, MaintenanceRetryAfter: time.Minute, MaintenanceMode: "off",
			CORSAllowedOrigins: []string{"https://other.example"}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		},
		Log: slog.New(slog.NewJSONHandler(b.log, nil)), Clock: b.clock, Limiter: limiter, Authenticator: b.auth, Meter: b.meter,
		Units: b.units, Idempotency: b.store, Positions: b,
		SetupComplete: func() (bool, error) { return b.setup, nil },
		Observe:       func(o Observation) { b.observed = append(b.observed, o) },
		Unproven:      func(Operation, []authorize.Check) { b.unproven++ },
	}
	write := Operation{ID: "writeThing", Pattern: "POST /api/v1/things/{thing_id}", Action: "thing.write", RateLimitClass: "rl.write", Writes: true, Body: BodyJSON, RequiresIfMatch: true}
	if change != nil {
		change(&o, &write)
	}
	operations := []Operation{
		write,
		{ID: "getThing", Pattern: "GET /api/v1/things/{thing_id}", Action: "thing.read", RateLimitClass: "rl.write", Body: BodyNone, SyncPosition: true},
		{ID: "openGateway", Pattern: "GET /api/v1/gateway", Action: "gateway.connect", RateLimitClass: "tight", Body: BodyNone, AuthorizedInBand: true},
	}
	if b.Chain, err = New(o, operations); err != nil {
		t.Fatal(err)
	}
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		authorize.Note(r.Context(), authorize.Check{Action: "thing.write", Allowed: true})
		authorize.Note(r.Context(), authorize.Check{Action: "thing.read", Allowed: true})
		flush.Record(r.Context(), 42)
		w.Header().Set("ETag", `"2"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"ok":true}`)
	}
	for _, op := range operations {
		b.HandleFunc(op.Pattern, func(w http.ResponseWriter, r *http.Request) { b.runs++; b.handle(w, r) })
	}
	if err := b.Seal(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bundle) ReadPosition(context.Context) (int64, error) { return b.positions, nil }

type fakeAuth struct {
	err   error
	calls int
	seen  actor.Credentials
}

func (f *fakeAuth) Authenticate(_ context.Context, c actor.Credentials) (actor.Actor, error) {
	f.calls++
	f.seen = c
	return actor.Actor{ID: principal, Kind: actor.KindPerson, SessionID: principal}, f.err
}

func (f *fakeAuth) Revalidate(_ context.Context, a actor.Actor) (actor.Actor, error) { return a, nil }

type fakeUnits struct {
	repeat     int
	rolledBack int
	committed  int
}

func (f *fakeUnits) Do(ctx context.Context, fn func(context.Context) error, _ ...txn.Option) error {
	for range f.repeat {
		_ = fn(ctx)
		f.rolledBack++
	}
	if err := fn(ctx); err != nil {
		f.rolledBack++
		return err
	}
	f.committed++
	return nil
}

func (f *fakeUnits) View(ctx context.Context, fn func(context.Context) error, _ ...txn.Option) error {
	return fn(ctx)
}

type fakeStore struct {
	answers map[idempotency.Key]idempotency.Answer
	err     error
}

func (f *fakeStore) Begin(_ context.Context, k idempotency.Key) (*idempotency.Answer, error) {
	if f.err != nil {
		return nil, f.err
	}
	for known, a := range f.answers {
		if known.Value == k.Value && known.RequestHash != k.RequestHash {
			return nil, errs.New(errs.CodeIdempotencyKeyReuse, "reused")
		}
		if known == k {
			return &a, nil
		}
	}
	return nil, nil
}

func (f *fakeStore) Complete(_ context.Context, k idempotency.Key, a idempotency.Answer) error {
	if f.answers == nil {
		f.answers = map[idempotency.Key]idempotency.Answer{}
	}
	a.Body = bytes.Clone(a.Body)
	f.answers[k] = a
	return nil
}

func (f *fakeStore) CompleteFailed(ctx context.Context, k idempotency.Key, a idempotency.Answer) error {
	return f.Complete(ctx, k, a)
}

func (b *bundle) send(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, reader)
	r.RemoteAddr = "203.0.113.9:1234"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

const thing = "/api/v1/things/a"

var good = []string{"Authorization", "DPoP abc.def.ghi", "Content-Type", "application/json", "If-Match", `"1"`}

func (b *bundle) write(extra ...string) *httptest.ResponseRecorder {
	return b.send("POST", thing, `{"name":"n"}`, append(slices.Clone(good), extra...)...)
}

func code(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Code < 400 {
		return ""
	}
	var p struct {
		Type, Title, Code, CorrelationID string
		Status                           int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d %q: %v", w.Code, w.Body, err)
	}
	if p.Status != w.Code || !strings.HasSuffix(p.Type, "/problems/"+p.Code) || w.Header().Get("Content-Type") != "application/problem+json" || p.Title == "" {
		t.Errorf("bad problem document: %s", w.Body)
	}
	return p.Code
}

// The order is a contract; whoever changes it changes what is promised in doc.go.
func TestTheStagesStandInTheirOrder(t *testing.T) {
	want := []string{
		"operation", "cors", "nonce", "authentication", "ratelimit", "maintenance", "setup", "signed_in", "idempotency",
		"content", "if_match", "position", "check_log",
	}
	var got []string
	for _, s := range stages {
		got = append(got, s.name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// A stranger is told to sign in, whatever else is wrong with the request.
func TestStrangersReachNoHandlerOfSignedInOperations(t *testing.T) {
	for _, signedIn := range []bool{true, false} {
		called := false
		b := setup(t, func(_ *Options, op *Operation) { op.SignedIn = signedIn })
		answer := b.handle
		b.handle = func(w http.ResponseWriter, r *http.Request) {
			called = true
			answer(w, r)
		}
		w := b.send("POST", thing, `{"name":"n"}`, "Content-Type", "application/json", "If-Match", `"1"`)
		if called == signedIn || (code(t, w) == "unauthenticated") != signedIn {
			t.Errorf("signed in %t: called %t, answer %d %s", signedIn, called, w.Code, w.Body)
		}
		if w := b.send("POST", thing, `{`); signedIn && code(t, w) != "unauthenticated" {
			t.Errorf("a stranger learns of other faults: %s", w.Body)
		}
		if w := b.write(); w.Code != http.StatusCreated {
			t.Errorf("somebody signed in: %d %s", w.Code, w.Body)
		}
	}
}

// What may be written in maintenance is written by a use case that knows nothing of it.
func TestAllowedWritesAreExemptFromMaintenance(t *testing.T) {
	for _, rule := range []MaintenanceRule{MaintenanceAllow, MaintenanceConditional} {
		b := setup(t, func(options *Options, op *Operation) {
			options.Config.MaintenanceMode = "read_only"
			options.MaintenanceAllows = func(*http.Request, Operation) (bool, error) { return true, nil }
			op.Maintenance = rule
		})
		exempt, answer := false, b.handle
		b.handle = func(w http.ResponseWriter, r *http.Request) {
			exempt = txn.IsExemptFromMaintenance(r.Context())
			answer(w, r)
		}
		for _, headers := range [][]string{nil, {"Idempotency-Key", "k1"}} {
			exempt = false
			if w := b.write(headers...); w.Code != http.StatusCreated || !exempt {
				t.Errorf("%v %v: status %d, exempt %v", rule, headers, w.Code, exempt)
			}
		}
	}
}

// One request violates every stage. Each row mends the fault that was found and meets the
// next one, which shows the order from outside.
func TestAnEarlierStageAnswersFirst(t *testing.T) {
	b := setup(t, func(options *Options, op *Operation) {
		options.Config.MaintenanceMode = "read_only"
		op.Maintenance = MaintenanceConditional
	})
	allowed := false
	b.Chain.options.MaintenanceAllows = func(*http.Request, Operation) (bool, error) { return allowed, nil }
	b.setup = false
	b.auth.err = errs.New(errs.CodeUnauthenticated, "no")
	body, headers := strings.Repeat("x", 2000), []string{"Authorization", "DPoP x", "Idempotency-Key", "bad key", "Content-Type", "text/plain"}
	for _, step := range []struct {
		want string
		mend func()
	}{
		{"payload_too_large", func() { body = `{"a":1,"a":2}` }},
		{"unauthenticated", func() { b.auth.err = nil }},
		{"maintenance", func() { allowed = true }},
		{"setup_required", func() { b.setup = true }},
		{"validation_failed", func() { headers[3] = "good-key" }},
		{"unsupported_media_type", func() { headers[5] = "application/json"; headers[3] = "k2" }},
		{"malformed_request", func() { body = `{"name":"n"}`; headers[3] = "k3" }},
		{"precondition_required", func() { headers = append(headers, "If-Match", `"1"`); headers[3] = "k4" }},
		{"", func() {}},
	} {
		if got := code(t, b.send("POST", thing, body, headers...)); got != step.want {
			t.Fatalf("got %q, want %q", got, step.want)
		}
		step.mend()
	}
}

func TestEveryAnswerCarriesTheBaseHeaders(t *testing.T) {
	b := setup(t, nil)
	for _, w := range []*httptest.ResponseRecorder{b.write(), b.send("GET", "/api/v1/none", ""), b.send("PUT", thing, "")} {
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
			"Strict-Transport-Security": "max-age=31536000",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%d %s: %q", w.Code, name, got)
			}
		}
		if len(w.Header().Get("Correlation-Id")) != 36 {
			t.Errorf("correlation ID %q", w.Header().Get("Correlation-Id"))
		}
	}
}

func TestTheRouterAnswersProblems(t *testing.T) {
	b := setup(t, nil)
	if w := b.send("GET", "/api/v1/none", ""); w.Code != 404 || code(t, w) != "not_found" {
		t.Errorf("unknown path: %d %s", w.Code, w.Body)
	}
	w := b.send("PUT", thing, "")
	if w.Code != 405 || code(t, w) != "method_not_allowed" || w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("wrong method: %d %q %s", w.Code, w.Header().Get("Allow"), w.Body)
	}
	if w := b.send("GET", "/api/v1//things/a", ""); w.Code != 404 || w.Header().Get("Location") != "" {
		t.Errorf("unclean path: %d %v", w.Code, w.Header())
	}
}

func TestPathsOutsideTheAPIBelongToThePages(t *testing.T) {
	b := setup(t, func(o *Options, _ *Operation) {
		o.Pages = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	})
	if w := b.send("GET", "/channels/x", ""); w.Code != 200 || w.Body.String() != "page" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.send("GET", "/api/none", ""); code(t, w) != "not_found" {
		t.Errorf("%s", w.Body)
	}
}

func TestASuccessWithoutTheCheckIsThrownAway(t *testing.T) {
	for name, note := range map[string]func(ctx context.Context){
		"no check":       func(context.Context) {},
		"another action": func(ctx context.Context) { authorize.Note(ctx, authorize.Check{Action: "x", Allowed: true}) },
		"denied":         func(ctx context.Context) { authorize.Note(ctx, authorize.Check{Action: "thing.write"}) },
	} {
		for _, key := range []string{"", "k"} {
			t.Run(name+key, func(t *testing.T) {
				b := setup(t, nil)
				b.handle = func(w http.ResponseWriter, r *http.Request) {
					note(r.Context())
					w.Header().Set("X-Secret", "1")
					_, _ = io.WriteString(w, "secret")
				}
				var extra []string
				if key != "" {
					extra = []string{"Idempotency-Key", key}
				}
				w := b.write(extra...)
				if code(t, w) != "internal_error" || strings.Contains(w.Body.String(), "secret") || w.Header().Get("X-Secret") != "" {
					t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
				}
				if b.unproven != 1 || b.meter.Sum("bothy.authz.errors") != 1 || b.units.committed != 0 {
					t.Errorf("unproven %d, counted %d, committed %d", b.unproven, b.meter.Sum("bothy.authz.errors"), b.units.committed)
				}
			})
		}
	}
}

func TestARefusalNeedsNoCheck(t *testing.T) {
	b := setup(t, nil)
	b.handle = func(w http.ResponseWriter, r *http.Request) { WriteError(w, r, errs.NotFound()) }
	if w := b.write(); w.Code != 404 || b.unproven != 0 {
		t.Errorf("%d, unproven %d", w.Code, b.unproven)
	}
}

func TestAPanicBecomesAProblemAndItsTextStaysInside(t *testing.T) {
	b := setup(t, nil)
	b.handle = func(http.ResponseWriter, *http.Request) { panic("inner detail") }
	w := b.write()
	if code(t, w) != "internal_error" || strings.Contains(w.Body.String(), "inner detail") || !strings.Contains(b.log.String(), "inner detail") {
		t.Errorf("%s\n%s", w.Body, b.log)
	}
	if b.meter.Sum("bothy.panics") != 1 {
		t.Error("not counted")
	}
}

func TestErrorsBecomeProblems(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		status  int
		headers map[string]string
		body    string
	}{
		{"internal", errors.New("sql: secret"), 500, nil, `"code":"internal_error"`},
		{"unavailable", errs.Unavailable(errors.New("pool")), 503, map[string]string{"Retry-After": "5"}, `"code":"unavailable"`},
		{"deadline", context.DeadlineExceeded, 503, map[string]string{"Retry-After": "5"}, ``},
		{"rounding", errs.New(errs.CodeRateLimited, "x").WithRetryAfter(1500 * time.Millisecond), 429, map[string]string{"Retry-After": "2"}, ``},
		{"in progress", errs.New(errs.CodeRequestInProgress, "x"), 409, map[string]string{"Retry-After": "1"}, ``},
		{"step-up", errs.New(errs.CodeStepUpRequired, "x"), 401, map[string]string{"WWW-Authenticate": `DPoP error="insufficient_user_authentication", algs="ES256"`}, ``},
		{"extensions", errs.Conflict("taken", "x").With("current", 5), 409, nil, `"reason":"taken","current":5}`},
		{"fields", errs.Invalid("/a", "too_long", "m"), 400, nil, `"errors":[{"pointer":"/a","code":"too_long","message":"m"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := setup(t, nil)
			b.handle = func(w http.ResponseWriter, r *http.Request) { WriteError(w, r, c.err) }
			w := b.write()
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			for name, want := range c.headers {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestAuthenticationHandsOverWhatWasPresented(t *testing.T) {
	b := setup(t, nil)
	b.write("DPoP", "proof", "Invocation-Token", "inv")
	want := actor.Credentials{Authorization: "DPoP abc.def.ghi", Proof: "proof", Method: "POST", URL: "https://chat.example.org" + thing, InvocationToken: "inv"}
	if b.auth.seen != want {
		t.Errorf("%+v", b.auth.seen)
	}
}

func TestACredentialStandsInOneHeader(t *testing.T) {
	b := setup(t, nil)
	for _, name := range []string{"Authorization", "Invocation-Token"} {
		if w := b.write(name, "DPoP abc.def.ghi", name, "Bearer other"); code(t, w) != "validation_failed" || b.auth.calls != 0 {
			t.Errorf("%s twice: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestANonceReachesTheClientAsAHeader(t *testing.T) {
	b := setup(t, nil)
	b.auth.err = errs.New(errs.CodeUseDPoPNonce, "again").With("dpop_nonce", "n1")
	w := b.write()
	if w.Header().Get("DPoP-Nonce") != "n1" || w.Header().Get("WWW-Authenticate") != `DPoP error="use_dpop_nonce", algs="ES256"` || strings.Contains(w.Body.String(), "n1") {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

func TestFetchingANonceCostsNoAttempt(t *testing.T) {
	b := setup(t, func(o *Options, op *Operation) {
		op.RateLimitClass, op.ProvenByKey = "tight", true
		o.Nonces = func(proof string) (string, bool) { return "n2", proof == "old" }
	})
	for range 5 {
		w := b.send("POST", thing, "{}", "DPoP", "old", "Content-Type", "application/json", "If-Match", `"1"`)
		if code(t, w) != "use_dpop_nonce" || w.Header().Get("DPoP-Nonce") != "n2" || b.auth.calls != 0 {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	w := b.send("POST", thing, "{}", "DPoP", "young", "Content-Type", "application/json", "If-Match", `"1"`)
	if w.Code != http.StatusCreated {
		t.Errorf("the attempt itself: %d %s", w.Code, w.Body)
	}
}

// A client that only ever gets refusals must not run out of nonces.
func TestEveryAnswerCarriesAFreshNonce(t *testing.T) {
	b := setup(t, func(o *Options, _ *Operation) { o.Nonces = func(string) (string, bool) { return "n2", true } })
	if w := b.write("DPoP", "proof"); w.Code != http.StatusCreated || w.Header().Get("DPoP-Nonce") != "n2" {
		t.Errorf("a success: %d %v", w.Code, w.Header())
	}
	b.auth.err = errs.New(errs.CodeTokenExpired, "no")
	if w := b.write("DPoP", "proof"); w.Code != http.StatusUnauthorized || w.Header().Get("DPoP-Nonce") != "n2" {
		t.Errorf("a refusal: %d %v", w.Code, w.Header())
	}
	if w := b.write(); w.Header().Get("DPoP-Nonce") != "" {
		t.Error("a request without a proof gets a nonce")
	}
}

func TestFailedCredentialsAreThrottledByAddress(t *testing.T) {
	for _, c := range []struct {
		code  errs.Code
		calls int
	}{
		{errs.CodeUnauthenticated, 3}, {errs.CodeInvalidDPoPProof, 3}, {errs.CodeTokenExpired, 6}, {errs.CodeUseDPoPNonce, 6}, {errs.CodeUnavailable, 6},
	} {
		t.Run(string(c.code), func(t *testing.T) {
			b := setup(t, nil)
			b.auth.err = errs.New(c.code, "no")
			var last *httptest.ResponseRecorder
			for range 6 {
				last = b.write()
			}
			if b.auth.calls != c.calls {
				t.Errorf("%d checks, want %d", b.auth.calls, c.calls)
			}
			if c.calls == 3 && (code(t, last) != "rate_limited" || last.Header().Get("Retry-After") != "1") {
				t.Errorf("%d %v", last.Code, last.Header())
			}
		})
	}
}

func TestFailedCredentialsAndLoginsShareABucket(t *testing.T) {
	b := setup(t, func(_ *Options, op *Operation) { op.RateLimitClass = "rl.public_auth" })
	b.auth.err = errs.New(errs.CodeUnauthenticated, "no")
	for range 3 {
		b.write()
	}
	if w := b.send("POST", thing, `{"name":"n"}`, good[2:]...); code(t, w) != "rate_limited" {
		t.Errorf("%d", w.Code)
	}
}

func TestTheRateLimitAnswers429(t *testing.T) {
	b := setup(t, func(_ *Options, op *Operation) { op.RateLimitClass = "tight" })
	b.write()
	w := b.write()
	if code(t, w) != "rate_limited" || w.Header().Get("Retry-After") != "1" || b.meter.Sum("bothy.ratelimit.rejected") != 1 {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestInBandOperationsAreOnlyThrottled(t *testing.T) {
	b := setup(t, nil)
	b.setup = false
	b.handle = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }
	if w := b.send("GET", "/api/v1/gateway", "", "Authorization", "nonsense"); w.Code != 200 || b.auth.calls != 0 {
		t.Errorf("%d, %d checks", w.Code, b.auth.calls)
	}
	if w := b.send("GET", "/api/v1/gateway", ""); w.Code != 429 {
		t.Errorf("%d", w.Code)
	}
}

func TestWritesAndReadsTellTheirPosition(t *testing.T) {
	b := setup(t, nil)
	if got := b.write().Header().Get("Sync-Seq"); got != "42" {
		t.Errorf("write: %q", got)
	}
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		authorize.Note(r.Context(), authorize.Check{Action: "thing.read", Allowed: true})
		w.WriteHeader(http.StatusOK)
	}
	if got := b.send("GET", thing, "").Header().Get("Sync-Seq"); got != "41" {
		t.Errorf("read: %q", got)
	}
	b.handle = func(w http.ResponseWriter, r *http.Request) { WriteError(w, r, errs.NotFound()) }
	if got := b.send("GET", thing, "").Header().Get("Sync-Seq"); got != "" {
		t.Errorf("failure: %q", got)
	}
}

func TestPreflightsAreAnsweredForConfiguredOriginsAlone(t *testing.T) {
	b := setup(t, nil)
	w := b.send("OPTIONS", thing, "", "Origin", "https://other.example", "Access-Control-Request-Method", "POST")
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "https://other.example" || w.Header().Get("Access-Control-Allow-Methods") != "GET, HEAD, POST" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := b.send("OPTIONS", thing, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"); w.Code != 405 || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if w := b.write("Origin", "https://other.example"); w.Header().Get("Access-Control-Allow-Origin") == "" || !strings.Contains(w.Header().Get("Access-Control-Expose-Headers"), "Sync-Seq") {
		t.Errorf("%v", w.Header())
	}
}

func TestBodiesWhereNoneIsTaken(t *testing.T) {
	b := setup(t, nil)
	if w := b.send("GET", thing, "x"); code(t, w) != "malformed_request" {
		t.Errorf("%s", w.Body)
	}
}

func TestAHandlerReadsTheNormalisedBody(t *testing.T) {
	b := setup(t, nil)
	var got string
	inner := b.handle
	b.handle = func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got = string(text)
		version, _ := IfMatch(r.Context())
		if op, ok := OperationFrom(r.Context()); !ok || op.ID != "writeThing" || version != 1 || reqmeta.From(r.Context()).ClientIP.String() != "203.0.113.9" {
			t.Errorf("operation %v, version %d", op, version)
		}
		inner(w, r)
	}
	b.send("POST", thing, "{\"name\":\"e\u0301\"}", good...)
	if got != "{\"name\":\"\u00e9\"}" {
		t.Errorf("%q", got)
	}
}

func TestTheAccessLineHasNoContent(t *testing.T) {
	b := setup(t, nil)
	b.handle = func(w http.ResponseWriter, r *http.Request) { WriteError(w, r, errs.NotFound()) }
	b.send("GET", thing+"?secretquery=1", "", "User-Agent", "secretagent", "Authorization", "DPoP secrettoken")
	line := b.log.String()
	if strings.Contains(line, "secret") || strings.Contains(line, "203.0.113.9") || !strings.Contains(line, `"operation":"getThing"`) || !strings.Contains(line, `"code":"not_found"`) {
		t.Error(line)
	}
	if len(b.observed) != 1 || b.observed[0].Code != errs.CodeNotFound || b.observed[0].Status != 404 {
		t.Errorf("%+v", b.observed)
	}
}

func TestUnknownOperationsDoNotStart(t *testing.T) {
	b := setup(t, nil)
	defer func() {
		if recover() == nil {
			t.Error("registered")
		}
	}()
	b.HandleFunc("GET /api/v1/other", nil)
}

func BenchmarkCreateMessageThroughTheChain(b *testing.B) {
	s := setup(b, func(o *Options, op *Operation) {
		o.Log = slog.New(slog.NewJSONHandler(io.Discard, nil))
		o.Observe = nil
		op.IgnoresIdempotencyKey = true
	})
	s.auth = nil
	body := []byte(`{"name":"hello"}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", thing, bytes.NewReader(body))
		r.RemoteAddr = "203.0.113.9:1234"
		for i := 0; i+1 < len(good); i += 2 {
			r.Header.Set(good[i], good[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 201 {
			b.Fatal(w.Body)
		}
	}
}

// BenchmarkBare is what the other benchmark costs without the chain.
func BenchmarkBare(b *testing.B) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/things/{thing_id}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"2"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	body := []byte(`{"name":"hello"}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", thing, bytes.NewReader(body))
		r.RemoteAddr = "203.0.113.9:1234"
		for i := 0; i+1 < len(good); i += 2 {
			r.Header.Set(good[i], good[i+1])
		}
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}
}
