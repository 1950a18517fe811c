// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

const maxHeaderBytes = 32 << 10

// Resolver finds the addresses of a name; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Client makes the outgoing requests of a process. It is safe for concurrent use.
type Client struct {
	cfg   Config
	names Resolver
	own   func(netip.AddrPort) bool
	roots *x509.CertPool

	mu   sync.Mutex
	busy map[string]int
}

// Option changes a client before it is used.
type Option func(*Client)

// WithResolver replaces the resolver of the system.
func WithResolver(r Resolver) Option { return func(c *Client) { c.names = r } }

// WithListeners names the addresses this process listens on; no request reaches them.
func WithListeners(addresses ...string) Option {
	return func(c *Client) { c.own = ownAddress(addresses) }
}

// New makes the client.
func New(cfg Config, options ...Option) (*Client, error) {
	if err := cfg.CheckEntries(); err != nil {
		return nil, err
	}
	roots, err := cfg.roots()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, names: net.DefaultResolver, roots: roots, busy: map[string]int{}, own: func(netip.AddrPort) bool { return false }}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// Request is one outgoing request.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
	// MaxBytes bounds the body of the answer; a longer one fails with response_too_large.
	MaxBytes int64
	// Timeout is for the whole exchange; zero means egress.timeout, which is also its bound.
	Timeout time.Duration
}

// Response is an answer that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

var errInTransaction = errors.New("egress: a request to another host inside a unit of work")

// Do sends a request and reads the answer. An answer of any status but a redirect is no
// error. It fails with an *Error, and at once inside a unit of work: a foreign host must
// never decide how long a transaction stays open.
func (c *Client) Do(ctx context.Context, r Request) (Response, error) {
	if txn.Current(ctx) != nil {
		return Response{}, errInTransaction
	}
	to, err := c.cfg.target(r.URL)
	if err != nil {
		return Response{}, err
	}
	if !c.take(to.host) {
		return Response{}, &Error{Code: CodeBusy}
	}
	defer c.release(to.host)
	timeout := c.cfg.Timeout
	if r.Timeout > 0 {
		timeout = min(timeout, r.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	addresses, err := c.resolve(ctx, to)
	if err != nil {
		return Response{}, err
	}
	return c.exchange(ctx, r, to, addresses)
}

func (c *Client) exchange(ctx context.Context, r Request, to target, addresses []netip.Addr) (Response, error) {
	request, err := http.NewRequestWithContext(ctx, r.Method, to.url.String(), bytes.NewReader(r.Body))
	if err != nil {
		return Response{}, &Error{Code: CodeURLNotAllowed, Cause: err}
	}
	for name, values := range r.Header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	request.Header.Set("Accept-Encoding", "identity")
	transport := c.transport(to, addresses)
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return Response{}, classify(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.Header.Get("Location") != "" {
		return Response{}, &Error{Code: CodeRedirect}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, r.MaxBytes+1))
	if err != nil {
		return Response{}, classify(ctx, err)
	}
	if int64(len(body)) > r.MaxBytes {
		return Response{}, &Error{Code: CodeResponseTooLarge}
	}
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: body}, nil
}

// transport is for one exchange: it knows the judged addresses and dials nothing else.
func (c *Client) transport(to target, addresses []netip.Addr) *http.Transport {
	return &http.Transport{
		Proxy: nil, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeaderBytes,
		TLSHandshakeTimeout: c.cfg.ConnectTimeout,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots, ServerName: to.host},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dial(ctx, addresses, to.port)
		},
	}
}

// dial tries the judged addresses in their order.
func (c *Client) dial(ctx context.Context, addresses []netip.Addr, port int) (net.Conn, error) {
	dialer := net.Dialer{Timeout: c.cfg.ConnectTimeout}
	var last error
	for _, a := range addresses {
		judged := netip.AddrPortFrom(a, uint16(port))
		conn, err := dialer.DialContext(ctx, "tcp", judged.String())
		if err != nil {
			last = err
			continue
		}
		if peer, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || peer.AddrPort().Addr().Unmap() != a.Unmap() {
			_ = conn.Close()
			return nil, &Error{Code: CodeAddressBlocked}
		}
		return conn, nil
	}
	return nil, fmt.Errorf("dial: %w", last)
}

const maxAddresses = 16

// resolve finds and judges the addresses. One bad address refuses all.
func (c *Client) resolve(ctx context.Context, to target) ([]netip.Addr, error) {
	addresses := []netip.Addr{}
	if a, err := netip.ParseAddr(to.host); err == nil {
		addresses = append(addresses, a)
	} else if addresses, err = c.names.LookupNetIP(ctx, "ip", to.host); err != nil {
		if ctx.Err() != nil {
			return nil, &Error{Code: CodeTimeout, Cause: err}
		}
		return nil, &Error{Code: CodeDNS, Cause: err}
	}
	if len(addresses) == 0 || len(addresses) > maxAddresses {
		return nil, &Error{Code: CodeDNS}
	}
	for i, a := range addresses {
		a = a.Unmap()
		addresses[i] = a
		at := netip.AddrPortFrom(a, uint16(to.port))
		if !mayReach(a, to.private) || c.own(at) {
			return nil, &Error{Code: CodeAddressBlocked}
		}
	}
	return addresses, nil
}

func (c *Client) take(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[host] >= c.cfg.MaxPerHost {
		return false
	}
	c.busy[host]++
	return true
}

func (c *Client) release(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[host]--; c.busy[host] == 0 {
		delete(c.busy, host)
	}
}

// ownAddress recognises the listeners of this process. A listener on every address is met at
// each address of the machine.
func ownAddress(listeners []string) func(netip.AddrPort) bool {
	var own []netip.AddrPort
	for _, text := range listeners {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			continue
		}
		if host == "" {
			host = "::"
		}
		if host == "localhost" {
			host = "127.0.0.1"
		}
		if a, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil {
			own = append(own, a)
		}
	}
	return func(to netip.AddrPort) bool {
		for _, o := range own {
			if o.Port() == to.Port() && (o.Addr() == to.Addr() || o.Addr().IsUnspecified() && ofThisMachine(to.Addr())) {
				return true
			}
		}
		return false
	}
}

func ofThisMachine(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, one := range addresses {
		if p, err := netip.ParsePrefix(one.String()); err == nil && p.Addr().Unmap() == a.Unmap() {
			return true
		}
	}
	return false
}
