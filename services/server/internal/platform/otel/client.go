// SPDX-License-Identifier: Apache-2.0

package otel

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
)

// headers are what the collector knows this process by. They are looked up at every request, so
// that rotated credentials count from the next one on.
type headers struct {
	next    http.RoundTripper
	current atomic.Pointer[map[string]string]
}

// RoundTrip implements http.RoundTripper.
func (h *headers) RoundTrip(r *http.Request) (*http.Response, error) {
	if current := h.current.Load(); current != nil && len(*current) > 0 {
		r = r.Clone(r.Context())
		for name, value := range *current {
			r.Header.Set(name, value)
		}
	}
	return h.next.RoundTrip(r)
}

// newClient makes the client that all signals share. It follows no redirection: the headers are
// for the collector alone.
func newClient(tlsConfig *tls.Config) (*http.Client, *headers) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		transport = &http.Transport{}
	}
	transport = transport.Clone()
	if tlsConfig != nil {
		transport.TLSClientConfig = tlsConfig
	}
	h := &headers{next: transport}
	return &http.Client{
		Transport: h, Timeout: exportTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, h
}

// UseHeaders sets what is sent along from the next request on, one "Name: value" per line. A text
// of another form changes nothing.
func (t *Telemetry) UseHeaders(text string) error {
	parsed, err := parseHeaders(text)
	if err != nil || t == nil || t.headers == nil {
		return err
	}
	t.headers.current.Store(&parsed)
	return nil
}

func parseHeaders(text string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, errors.New("telemetry.otlp_headers_ref: each line must be \"Name: value\"")
		}
		out[name] = strings.TrimSpace(value)
	}
	return out, nil
}
