// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// healthcheck asks an endpoint of the internal listener. It reads no configuration, so that a
// broken one does not look like a broken server.
func healthcheck(ctx context.Context, c *call) int {
	set := c.flags()
	address := set.String("url", "", "`address` of the endpoint, http on loopback")
	timeout := set.Duration("timeout", 5*time.Second, "limit of the whole request")
	if code, ok := c.parse(set); !ok {
		return code
	}
	if err := loopbackURL(*address); err != nil {
		return c.fail(exitUsage, err)
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, *address, nil)
	if err != nil {
		return c.fail(exitUsage, errors.New("--url is malformed"))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return c.fail(exitFailed, errors.New(class(err)))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return c.fail(exitFailed, fmt.Errorf("status %d", response.StatusCode))
	}
	return exitOK
}

// loopbackURL refuses everything but plain http to this machine: the command must not be of
// use for asking elsewhere.
func loopbackURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.User != nil {
		return errors.New("--url must be http:// with a loopback host")
	}
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return errors.New("--url must be http:// with a loopback host")
	}
	return nil
}

// class names what went wrong without the details of the network stack.
func class(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &op) && op.Op == "dial":
		return "connection refused"
	default:
		return "connection failed"
	}
}
