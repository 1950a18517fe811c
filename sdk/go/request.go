// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// CallOption adds to one call.
type CallOption func(*call)

// IfMatch names the version of the resource the change was made for. Without it the call is refused where the
// contract demands it; with another version than the present one it answers version_conflict.
func IfMatch(version int64) CallOption {
	return func(k *call) { k.header("If-Match", `"`+strconv.FormatInt(version, 10)+`"`) }
}

// InvocationToken makes the call in the name of the person who gave the order, within both persons' rights.
func InvocationToken(token string) CallOption {
	return func(k *call) { k.header("Invocation-Token", token) }
}

// IdempotencyKey replaces the key of a write. A program that stores it with the write can repeat the write after
// a restart.
func IdempotencyKey(key string) CallOption {
	return func(k *call) { k.header("Idempotency-Key", key) }
}

// call is one operation to be sent, perhaps several times.
type call struct {
	method, path string
	query        url.Values
	body         any
	// out is what the answer is decoded into; an io.Writer gets it as it comes.
	out     any
	headers http.Header
	// once forbids to send it again after an answer was lost.
	once bool
}

func (k *call) header(name, value string) {
	if k.headers == nil {
		k.headers = http.Header{}
	}
	k.headers.Set(name, value)
}

const keyHeader = "Idempotency-Key"

// do sends the call until it has a final answer, and decodes that into k.out. It returns the status.
func (c *Client) do(ctx context.Context, k call, options ...CallOption) (int, error) {
	for _, option := range options {
		option(&k)
	}
	var body []byte
	if k.body != nil {
		var err error
		if body, err = json.Marshal(k.body); err != nil {
			return 0, fmt.Errorf("%s %s: write the request: %w", k.method, k.path, err)
		}
	}
	if k.method != http.MethodGet && !k.once && k.headers.Get(keyHeader) == "" {
		k.header(keyHeader, NewID())
	}
	status, err := c.repeat(ctx, &k, body)
	if err != nil {
		return status, fmt.Errorf("%s %s: %w", k.method, k.path, err)
	}
	return status, nil
}

// repeat sends until an answer is final. A credential may ask for one more attempt at once, at most twice: for a
// fresh nonce and for a fresh token.
func (c *Client) repeat(ctx context.Context, k *call, body []byte) (int, error) {
	const renewals = 2
	renewed := 0
	for attempt := 0; ; attempt++ {
		status, again, err := c.attempt(ctx, k, body)
		if err == nil {
			return status, nil
		}
		if again && renewed < renewals {
			renewed++
			attempt--
			continue
		}
		var p *Problem
		lost := !errors.As(err, &p)
		var fatal *finalError
		switch {
		case ctx.Err() != nil:
			return status, ctx.Err()
		case errors.As(err, &fatal), lost && k.once, !lost && !p.temporary(), attempt+1 >= c.retry.attempts():
			return status, err
		}
		atLeast := p.patience()
		if waitErr := c.retry.wait(ctx, attempt, atLeast); waitErr != nil {
			return status, errors.Join(waitErr, err)
		}
	}
}

// finalError is a fault of this side that no repeat heals.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// attempt sends the call once. again asks for one more attempt with a renewed credential.
func (c *Client) attempt(ctx context.Context, k *call, body []byte) (status int, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, k.method, c.origin.String()+apiPath+k.path, bytes.NewReader(body))
	if err != nil {
		return 0, false, &finalError{err}
	}
	req.URL.RawQuery = k.query.Encode()
	for name, values := range k.headers {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json, application/problem+json")
	}
	req.Header.Set("User-Agent", c.agent)
	if c.cred != nil {
		if err := c.cred.Sign(ctx, req, c.publicURL(k.path)); err != nil {
			return 0, false, err
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, false, err
	}
	defer func() {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // lets the connection be used again
		_ = res.Body.Close()
	}()
	if res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusMultipleChoices {
		p := readProblem(res)
		return p.Status, c.cred != nil && c.cred.Answer(res.Header, p), p
	}
	if c.cred != nil {
		c.cred.Answer(res.Header, nil)
	}
	return res.StatusCode, false, decode(res, k.out)
}

func decode(res *http.Response, out any) error {
	const limit = 32 << 20
	if out == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	if w, ok := out.(io.Writer); ok {
		// A part has been written, so another attempt would double it.
		if _, err := io.Copy(w, res.Body); err != nil {
			return &finalError{fmt.Errorf("read the answer: %w", err)}
		}
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, limit))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return &finalError{fmt.Errorf("understand the answer: %w", err)}
	}
	return nil
}

// get and send are the two shapes of nearly every operation.

func get[T any](ctx context.Context, c *Client, path string, query url.Values, options ...CallOption) (*T, error) {
	out := new(T)
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path, query: query, out: out}, options...); err != nil {
		return nil, err
	}
	return out, nil
}

func send[T any](ctx context.Context, c *Client, method, path string, body any, options ...CallOption) (*T, error) {
	out := new(T)
	if _, err := c.do(ctx, call{method: method, path: path, body: body, out: out}, options...); err != nil {
		return nil, err
	}
	return out, nil
}

// patience is how long the server asked to wait.
func (p *Problem) patience() time.Duration {
	if p == nil {
		return 0
	}
	return p.RetryAfter
}

// Page restricts a list.
type Page struct {
	// Limit is the number of entries, at most 200; 0 leaves it to the server.
	Limit int
	// Cursor is the next_cursor of the page before.
	Cursor string
}

func (p Page) query() url.Values {
	q := url.Values{}
	if p.Limit > 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	return q
}

// Discovery is what a client needs before it has a credential.
func (c *Client) Discovery(ctx context.Context) (*api.Discovery, error) {
	return get[api.Discovery](ctx, c, "/discovery", nil)
}

// JWKS are the keys that verify tokens of the instance.
func (c *Client) JWKS(ctx context.Context) (*api.JWKS, error) {
	return get[api.JWKS](ctx, c, "/jwks", nil)
}
