// SPDX-License-Identifier: Apache-2.0

// Package bothytest has a small instance in memory that speaks the protocol to programs under test: the REST
// operations an agent and a person's client need, and the gateway. It is strict where a real instance is strict, so a
// request it takes is well-formed, and it can misbehave as networks do: lose answers, cut connections, deliver events
// twice, and ask for patience.
//
// It is not an instance: rights, texts and limits are not checked.
package bothytest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

// Server is an instance in memory with one agent and any number of connections of people.
type Server struct {
	// URL is its address.
	URL string
	// Token is the API token of the agent, AgentID the agent, PersonID who gives the orders.
	Token, AgentID, PersonID, InstanceID, ChannelID string
	// TokenLife is how long invocation tokens are valid.
	TokenLife time.Duration
	// HeartbeatInterval is what hello says.
	HeartbeatInterval time.Duration
	// Claims changes the claims of invocation tokens before they are signed. It may be nil.
	Claims func(map[string]any)

	tb   testing.TB
	http *httptest.Server
	key  *ecdsa.PrivateKey

	mu         sync.Mutex
	epoch      string
	log        []entry
	runs       map[string]*Run
	order      []string
	keys       map[string]stored
	faults     []Fault
	acked      int64
	holder     *socket
	sockets    map[*socket]bool
	heartbeats []api.Heartbeat
	problems   []string
	nonces     map[string]bool
	proofs     map[string]bool
	refresh    string
	access     string
	muted      bool
	focus      []string
	changed    chan struct{}
}

// Run is a run as the instance knows it.
type Run struct {
	api.Run
	EventID, Text string
	// Starts counts the starts that won, Finishes the ends that were taken.
	Starts, Finishes, Updates int
	Consumed                  []string
	Answer                    string
	agentVersion              int64
}

type entry struct {
	envelope api.EventEnvelope
	agent    bool
}

// stored is the answer to a write, by its Idempotency-Key.
type stored struct {
	hash   [32]byte
	status int
	body   []byte
}

// Fault makes requests misbehave. It is used up after Times requests that match.
type Fault struct {
	// Method and Path select requests; Path is the end of the path below /api/v1, such as "/updates".
	Method, Path string
	Times        int
	// Status is answered instead of anything else, with the code and RetryAfter in seconds.
	Status     int
	Code       api.ErrorCode
	RetryAfter int
	// LoseAnswer does what was asked for and then cuts the connection.
	LoseAnswer bool
}

// Start starts a server that ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{
		Token: "bothy_agent_test", AgentID: bothy.NewID(), PersonID: bothy.NewID(), InstanceID: bothy.NewID(), ChannelID: bothy.NewID(),
		TokenLife: 15 * time.Minute, HeartbeatInterval: 30 * time.Second, tb: tb, key: key, epoch: bothy.NewID(), runs: map[string]*Run{},
		keys: map[string]stored{}, sockets: map[*socket]bool{}, nonces: map[string]bool{}, proofs: map[string]bool{}, changed: make(chan struct{}),
	}
	s.http = httptest.NewServer(s.routes())
	s.URL = s.http.URL
	tb.Cleanup(func() {
		s.DropConnections()
		s.http.CloseClientConnections()
		s.http.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range s.problems {
			tb.Errorf("the client broke the protocol: %s", p)
		}
	})
	return s
}

// broken notes that the client broke the protocol; the test fails at its end. The caller holds the lock.
func (s *Server) broken(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

// Inject adds a fault.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Mute makes the server deaf: every request is cut off before it does anything. With DropConnections it plays the
// death of a client whose process is still there.
func (s *Server) Mute(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.muted = deaf
}

// notify wakes those who wait for a change. The caller holds the lock.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait waits until the condition holds, which is looked at after each change, and fails the test after a while.
func (s *Server) Wait(what string, condition func() bool) {
	s.tb.Helper()
	const patience = 20 * time.Second
	deadline := time.After(patience)
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.tb.Fatalf("waited in vain for: %s", what)
		}
	}
}

// State is a copy of the run.
func (s *Server) State(runID string) Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[runID]
	if r == nil {
		return Run{}
	}
	out := *r
	out.Consumed = append([]string(nil), r.Consumed...)
	return out
}

// WaitState waits until the run is in one of the states and returns it.
func (s *Server) WaitState(runID string, states ...api.RunState) Run {
	s.tb.Helper()
	s.Wait(fmt.Sprintf("run %s in %v (is %s)", runID, states, s.State(runID).State), func() bool {
		now := s.State(runID).State
		for _, state := range states {
			if now == state {
				return true
			}
		}
		return false
	})
	return s.State(runID)
}

// Acked is up to where the agent has acknowledged.
func (s *Server) Acked() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// Heartbeats are the reports the agent sent.
func (s *Server) Heartbeats() []api.Heartbeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]api.Heartbeat(nil), s.heartbeats...)
}

// Focused are the threads a person said last to show.
func (s *Server) Focused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.focus...)
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	const base = "/api/v1"
	open := func(pattern string, h func(*http.Request, []byte) (int, any)) {
		mux.HandleFunc(pattern, s.endpoint(h))
	}
	guarded := func(pattern string, h func(*http.Request, []byte) (int, any)) {
		mux.HandleFunc(pattern, s.endpoint(func(r *http.Request, body []byte) (int, any) {
			if p := s.authenticate(r); p != nil {
				return p.Status, p
			}
			return h(r, body)
		}))
	}
	open("GET "+base+"/discovery", s.discovery)
	open("GET "+base+"/jwks", s.jwks)
	open("POST "+base+"/auth/login", s.beginLogin)
	open("POST "+base+"/auth/login/{flow}/complete", s.completeLogin)
	open("POST "+base+"/auth/token", s.refreshToken)
	guarded("GET "+base+"/me", s.self)
	guarded("POST "+base+"/threads/{thread}/messages", s.createMessage)
	guarded("GET "+base+"/sync/snapshot", s.snapshot)
	guarded("GET "+base+"/sync/events", s.events)
	guarded("GET "+base+"/runs/{run}", s.getRun)
	guarded("GET "+base+"/runs/{run}/context", s.runContext)
	guarded("POST "+base+"/runs/{run}/start", s.startRun)
	guarded("POST "+base+"/runs/{run}/token", s.renewToken)
	guarded("POST "+base+"/runs/{run}/updates", s.updateRun)
	guarded("POST "+base+"/runs/{run}/finish", s.finishRun)
	mux.HandleFunc("GET "+base+"/gateway", s.gateway)
	return mux
}

// endpoint adds faults and the memory of Idempotency-Keys to an operation.
func (s *Server) endpoint(h func(*http.Request, []byte) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.muted {
			s.mu.Unlock()
			cut(w)
			return
		}
		fault := s.fault(r)
		var status int
		var answer []byte
		switch {
		case fault != nil && fault.Status != 0:
			status, answer = fault.Status, encode(problem(fault.Status, fault.Code, ""))
			if fault.RetryAfter > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(fault.RetryAfter))
			}
		default:
			status, answer = s.once(r, body, h)
		}
		for name := range s.nonces { // a client takes the newest nonce of any answer
			w.Header().Set("DPoP-Nonce", name)
			break
		}
		s.notify()
		s.mu.Unlock()
		if fault != nil && fault.LoseAnswer {
			cut(w)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}
}

func (s *Server) fault(r *http.Request) *Fault {
	for i := range s.faults {
		f := &s.faults[i]
		if f.Times > 0 && f.Method == r.Method && len(r.URL.Path) >= len(f.Path) && r.URL.Path[len(r.URL.Path)-len(f.Path):] == f.Path {
			f.Times--
			return f
		}
	}
	return nil
}

// once answers a repeated write with the first answer, as the contract has it.
func (s *Server) once(r *http.Request, body []byte, h func(*http.Request, []byte) (int, any)) (int, []byte) {
	key := r.Header.Get("Idempotency-Key")
	if r.Method == http.MethodGet || key == "" {
		status, answer := h(r, body)
		return status, encode(answer)
	}
	name, hash := r.Method+" "+r.URL.Path+" "+key, sha256.Sum256(body)
	if known, ok := s.keys[name]; ok {
		if known.hash != hash {
			s.broken("key %s used for another body at %s", key, r.URL.Path)
			return http.StatusUnprocessableEntity, encode(problem(http.StatusUnprocessableEntity, api.ErrorCodeIdempotencyKeyReuse, ""))
		}
		return known.status, known.body
	}
	status, answer := h(r, body)
	text := encode(answer)
	if status < http.StatusMultipleChoices {
		s.keys[name] = stored{hash, status, text}
	}
	return status, text
}

func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// strict decodes a body and refuses members that the contract does not have.
func strict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func problem(status int, code api.ErrorCode, reason string) *api.Problem {
	p := &api.Problem{Type: "https://bothy.invalid/problems/" + string(code), Title: "Fault for a test.", Status: status, Code: code, CorrelationID: bothy.NewID()}
	if reason != "" {
		p.Reason = &reason
	}
	return p
}

func (s *Server) discovery(*http.Request, []byte) (int, any) {
	base := s.http.URL + "/api/v1"
	return http.StatusOK, api.Discovery{
		InstanceID: s.InstanceID, APIBase: base, GatewayURL: "ws" + base[len("http"):] + "/gateway", JWKSURL: base + "/jwks",
		Name: "Test", ProductName: "Bothy", ServerVersion: "1.0.0", APIVersion: "1", SetupComplete: true,
	}
}

func (s *Server) jwks(*http.Request, []byte) (int, any) {
	point, err := s.key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	y := b64(point[33:])
	return http.StatusOK, api.JWKS{Keys: []api.JWK{{Kty: "EC", Crv: "P-256", Alg: "ES256", Use: "sig", Kid: "test", X: b64(point[1:33]), Y: &y}}}
}

func (s *Server) self(r *http.Request, _ []byte) (int, any) {
	self := api.Self{ID: s.AgentID, Kind: api.PrincipalKindAgent, Handle: "scout", DisplayName: "Scout", Status: api.PrincipalStatusActive}
	if r.Header.Get("DPoP") != "" {
		self = api.Self{ID: s.PersonID, Kind: api.PrincipalKindPerson, Handle: "ana", DisplayName: "Ana", Status: api.PrincipalStatusActive}
	}
	return http.StatusOK, self
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Sign signs claims as the instance would, with the header.
func (s *Server) Sign(header, claims map[string]any) string {
	signed := b64(encode(header)) + "." + b64(encode(claims))
	digest := sha256.Sum256([]byte(signed))
	r, t, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	if err != nil {
		panic(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	t.FillBytes(signature[32:])
	return signed + "." + b64(signature)
}
