// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// apiPath is where the API lies below the address of an instance.
const apiPath = "/api/v1"

// Client calls one instance. It holds no connection of its own, has no background work, and may be used by many
// goroutines at once.
type Client struct {
	origin *url.URL
	public *url.URL
	http   *http.Client
	cred   Credential
	retry  Retry
	agent  string
}

// Option changes a Client while it is made.
type Option func(*Client) error

// New makes a client for the instance at the address, such as "https://chat.example.org".
func New(address string, options ...Option) (*Client, error) {
	origin, err := parseOrigin(address)
	if err != nil {
		return nil, err
	}
	const attempt = 60 * time.Second
	c := &Client{origin: origin, public: origin, http: &http.Client{Timeout: attempt}, agent: "bothy-sdk-go"}
	for _, option := range options {
		if err := option(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func parseOrigin(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil {
		return nil, fmt.Errorf("address of the instance: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("address of the instance: %q is not like https://chat.example.org", address)
	}
	return u, nil
}

// WithCredential sets what the calls are made with.
func WithCredential(cred Credential) Option {
	return func(c *Client) error {
		c.cred = cred
		return nil
	}
}

// WithHTTPClient replaces the HTTP client, for example to set a proxy or a private certificate authority. Its
// timeout counts per attempt.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) error {
		if h == nil {
			return errors.New("no HTTP client")
		}
		c.http = h
		return nil
	}
}

// WithPublicAddress names the public address of the instance when the client reaches it by another one, such as
// past a proxy. Proofs of a device are made for the public address.
func WithPublicAddress(address string) Option {
	return func(c *Client) error {
		public, err := parseOrigin(address)
		if err != nil {
			return err
		}
		c.public = public
		return nil
	}
}

// WithRetry replaces the way failed calls are repeated.
func WithRetry(r Retry) Option {
	return func(c *Client) error {
		c.retry = r
		return nil
	}
}

// WithUserAgent names the program, as "name/version".
func WithUserAgent(name string) Option {
	return func(c *Client) error {
		c.agent = name
		return nil
	}
}

// As is the same client with another credential.
func (c *Client) As(cred Credential) *Client {
	other := *c
	other.cred = cred
	return &other
}

// Retrying is the same client with another way to repeat failed calls.
func (c *Client) Retrying(r Retry) *Client {
	other := *c
	other.retry = r
	return &other
}

// Credential is what the calls are made with, or nil.
func (c *Client) Credential() Credential { return c.cred }

// HTTPClient is the HTTP client of the calls. The gateway dials with it, too.
func (c *Client) HTTPClient() *http.Client { return c.http }

// Origin is the address of the instance, without a trailing slash.
func (c *Client) Origin() string { return c.origin.String() }

// GatewayURL is the address of the WebSocket.
func (c *Client) GatewayURL() string { return c.origin.String() + apiPath + "/gateway" }

// publicURL is the address for which a proof of the request is made: without query and fragment.
func (c *Client) publicURL(path string) string { return c.public.String() + apiPath + path }

// PublicGatewayURL is the address for which a proof for the gateway is made.
func (c *Client) PublicGatewayURL() string { return c.publicURL("/gateway") }

// Retry says how a call is repeated whose answer was lost, or that the server could not take at the moment. The
// zero value is the policy of the contract: up to eight attempts, each after a wait drawn evenly from
// [0, min(60 s, 1 s * 2^n)], never shorter than the server's Retry-After.
type Retry struct {
	// Attempts counts the first one, too.
	Attempts int
	// Base and Max bound the wait.
	Base, Max time.Duration
	// Sleep waits; tests replace it. It ends early with the error of the context.
	Sleep func(context.Context, time.Duration) error
}

func (r Retry) attempts() int {
	const standard = 8
	if r.Attempts > 0 {
		return r.Attempts
	}
	return standard
}

func (r Retry) wait(ctx context.Context, attempt int, atLeast time.Duration) error {
	d := max(Backoff(attempt, r.Base, r.Max), atLeast)
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	return Sleep(ctx, d)
}

// Backoff is a wait drawn evenly from [0, min(limit, base * 2^n)], so that many clients that failed at once do not
// come back at once. Zero stands for one second and one minute.
func Backoff(n int, base, limit time.Duration) time.Duration {
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = time.Minute
	}
	span := limit
	const shiftLimit = 16
	if n < shiftLimit {
		span = min(limit, base<<n)
	}
	return mathrand.N(span + 1)
}

// Sleep waits, or returns the error of the context when that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// NewID is a random UUID, as the contract wants for client_msg_id and Idempotency-Key.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
