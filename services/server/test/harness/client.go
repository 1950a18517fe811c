// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/OWNER/bothy/services/server/api/routes"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
)

// Parts of a call besides the identifiers in its path, which are given as strings in their order.
type (
	// Body is sent as JSON.
	Body map[string]any
	// Raw is sent as it is.
	Raw string
	// Query are parameters of the query.
	Query map[string]string
	// Header are headers.
	Header map[string]string
	// IfMatch names the version a change is made from.
	IfMatch int64
	// Key is the idempotency key.
	Key string
	// Invocation is the token that came with the order to an agent.
	Invocation string
)

// Client is somebody who speaks with the server: a signed-in device, the holder of an API
// token, or nobody. It is safe for concurrent use.
type Client struct {
	Server *Server
	// ID and Handle are those of the principal.
	ID, Handle string
	// Password is that of a person.
	Password string
	// Session and Device are those of a login.
	Session, Device string
	// Bearer is the secret of an API token, instead of a login.
	Bearer string
	// DeviceKey signs the proofs of a login.
	DeviceKey *identitytest.Key

	mu              sync.Mutex
	access, refresh string
	nonce           string
}

// Anonymous is a client without credentials.
func (s *Server) Anonymous() *Client { return &Client{Server: s} }

// Access is the present access token of a login.
func (c *Client) Access() string { return c.get(&c.access) }

// Refresh is the present refresh token of a login.
func (c *Client) Refresh() string { return c.get(&c.refresh) }

// Hold gives the client tokens of somebody else, as a thief has them: without the key.
func (c *Client) Hold(access, refresh string) {
	c.set(&c.access, access)
	c.set(&c.refresh, refresh)
}

func (c *Client) get(field *string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *field
}

func (c *Client) set(field *string, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*field = value
}

// call is a request before it is signed.
type call struct {
	operation string
	method    string
	path      string
	query     url.Values
	header    http.Header
	body      []byte
}

// Call sends a request to an operation of the contract and holds the answer against it.
func (c *Client) Call(t testing.TB, operation string, parts ...any) *Response {
	t.Helper()
	return c.send(t, build(t, operation, parts))
}

func build(t testing.TB, operation string, parts []any) call {
	t.Helper()
	op := routes.ByID(operation)
	if op == nil {
		t.Fatalf("harness: no operation %q", operation)
	}
	q := call{operation: operation, method: op.Method, query: url.Values{}, header: http.Header{}}
	var values []string
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			values = append(values, p)
		case Body:
			raw, err := json.Marshal(p)
			Must(t, err)
			q.body = raw
		case Raw:
			q.body = []byte(p)
		case Query:
			for k, v := range p {
				q.query.Set(k, v)
			}
		case Header:
			for k, v := range p {
				q.header.Set(k, v)
			}
		case IfMatch:
			q.header.Set("If-Match", strconv.Quote(strconv.FormatInt(int64(p), 10)))
		case Key:
			q.header.Set("Idempotency-Key", string(p))
		case Invocation:
			q.header.Set("Invocation-Token", string(p))
		default:
			t.Fatalf("harness: a call has no part of type %T", part)
		}
	}
	q.path = fill(t, op.Path, values)
	if q.body != nil && q.header.Get("Content-Type") == "" {
		q.header.Set("Content-Type", "application/json")
	}
	return q
}

func fill(t testing.TB, path string, values []string) string {
	t.Helper()
	names := parameters(path)
	if len(names) != len(values) {
		t.Fatalf("harness: %s takes %d identifiers, got %v", path, len(names), values)
	}
	for i, name := range names {
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(values[i]), 1)
	}
	return routes.BasePath + path
}

// send signs and sends. A proof whose nonce is missing or old is made once more with the one
// that the server hands out, as every client does.
func (c *Client) send(t testing.TB, q call) *Response {
	t.Helper()
	r := c.once(t, q)
	if r.Code() == "use_dpop_nonce" && q.header.Get("DPoP") == "" {
		r = c.once(t, q)
	}
	return r
}

func (c *Client) once(t testing.TB, q call) *Response {
	t.Helper()
	address := c.Server.URL + q.path
	target := address
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(context.Background(), q.method, target, bytes.NewReader(q.body))
	Must(t, err)
	maps.Copy(req.Header, c.credentials(t, q, address))
	maps.Copy(req.Header, q.header)
	res, err := c.Server.http.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", q.operation, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: read the answer: %v", q.operation, err)
	}
	if nonce := res.Header.Get("DPoP-Nonce"); nonce != "" {
		c.set(&c.nonce, nonce)
	}
	r := &Response{Operation: q.operation, Status: res.StatusCode, Header: res.Header, Body: body}
	if err := r.check(); err != nil {
		t.Errorf("%s answered %d against the contract: %v\n%s", q.operation, r.Status, err, r.short())
	}
	return r
}

// signsIn are the operations that take the proof of a key alone.
var signsIn = map[string]bool{"beginLogin": true, "completeLogin": true, "refreshToken": true, "beginPairing": true, "pollPairing": true}

func (c *Client) credentials(t testing.TB, q call, address string) http.Header {
	t.Helper()
	h := http.Header{}
	if c.Bearer != "" {
		h.Set("Authorization", "Bearer "+c.Bearer)
	}
	if c.DeviceKey == nil {
		return h
	}
	access := c.Access()
	if signsIn[q.operation] {
		access = ""
	}
	claims := identitytest.Claims{Method: q.method, URL: address, Nonce: c.get(&c.nonce), AccessToken: access, IssuedAt: c.Server.Clock.Now()}
	h.Set("DPoP", c.DeviceKey.Proof(t, claims))
	if access != "" {
		h.Set("Authorization", "DPoP "+access)
	}
	return h
}

// Response is an answer.
type Response struct {
	Operation string
	Status    int
	Header    http.Header
	Body      []byte

	parsed any
}

// OK fails the test unless the answer is a success.
func (r *Response) OK(t testing.TB) *Response {
	t.Helper()
	if r.Status >= http.StatusBadRequest {
		t.Fatalf("%s answered %d: %s", r.Operation, r.Status, r.short())
	}
	return r
}

// Is fails the test unless the answer has the status.
func (r *Response) Is(t testing.TB, status int) *Response {
	t.Helper()
	if r.Status != status {
		t.Fatalf("%s answered %d instead of %d: %s", r.Operation, r.Status, status, r.short())
	}
	return r
}

// Refused fails the test unless the answer is a problem with the code and, if given, the reason.
func (r *Response) Refused(t testing.TB, code string, reason ...string) *Response {
	t.Helper()
	if r.Code() != code || len(reason) > 0 && r.Str("reason") != reason[0] {
		t.Fatalf("%s answered %d instead of %s %v: %s", r.Operation, r.Status, code, reason, r.short())
	}
	return r
}

// Code is the code of a problem, empty for a success.
func (r *Response) Code() string {
	if r.Status < http.StatusBadRequest {
		return ""
	}
	return r.Str("code")
}

// Version is that of the header ETag.
func (r *Response) Version(t testing.TB) IfMatch {
	t.Helper()
	text, err := strconv.Unquote(r.Header.Get("ETag"))
	if err != nil {
		t.Fatalf("%s: no version in ETag %q", r.Operation, r.Header.Get("ETag"))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	Must(t, err)
	return IfMatch(n)
}

// Seq is the position of the log that the answer reflects, zero without one.
func (r *Response) Seq() int64 {
	n, _ := strconv.ParseInt(r.Header.Get("Sync-Seq"), 10, 64)
	return n
}

// At finds a member by a path with dots, for example "items.0.id"; nil when there is none.
func (r *Response) At(path string) any {
	if r.parsed == nil {
		_ = json.Unmarshal(r.Body, &r.parsed)
	}
	return At(r.parsed, path)
}

// Str is At for a text, empty for anything else.
func (r *Response) Str(path string) string {
	s, _ := r.At(path).(string)
	return s
}

// Int is At for a number, zero for anything else.
func (r *Response) Int(path string) int64 {
	n, _ := r.At(path).(float64)
	return int64(n)
}

// List is At for a list, nil for anything else.
func (r *Response) List(path string) []any {
	l, _ := r.At(path).([]any)
	return l
}

// At finds a member of a decoded JSON value by a path with dots.
func At(v any, path string) any {
	if path == "" {
		return v
	}
	for _, name := range strings.Split(path, ".") {
		switch inner := v.(type) {
		case map[string]any:
			v = inner[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(inner) {
				return nil
			}
			v = inner[i]
		default:
			return nil
		}
	}
	return v
}

func (r *Response) short() string {
	const most = 1500
	if len(r.Body) > most {
		return fmt.Sprintf("%s... (%d bytes)", r.Body[:most], len(r.Body))
	}
	return string(r.Body)
}
