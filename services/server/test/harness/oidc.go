// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
)

// Provider is an OpenID provider that runs as a process of its own.
type Provider struct {
	// Issuer is its address.
	Issuer string
	// Secret is what its client proves itself with.
	Secret string
	http   *http.Client
	clock  *Clock
}

// Misbehave is what a provider does differently from a good one, as its program describes it.
type Misbehave map[string]any

// StartProvider builds the program, runs it until the test ends, and gives its address. An
// empty secret makes its client a public one.
func StartProvider(t testing.TB, secret string) *Provider {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "oidcprovider")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/OWNER/bothy/services/server/test/oidcprovider")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("harness: build the provider: %v\n%s", err, out)
	}
	process := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "-listen", "127.0.0.1:0", "-secret", secret)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	Must(t, err)
	Must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("harness: the provider does not start: %v", err)
	}
	return &Provider{
		Issuer: strings.TrimSpace(line), Secret: secret,
		http: &http.Client{Timeout: Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Port is the port it listens on.
func (p *Provider) Port(t testing.TB) string {
	t.Helper()
	u, err := url.Parse(p.Issuer)
	Must(t, err)
	return u.Port()
}

// Follow makes the provider's clock go with that of the server.
func (p *Provider) Follow(clock *Clock) { p.clock = clock }

// Behave replaces its behaviour; nil makes it good again.
func (p *Provider) Behave(t testing.TB, does Misbehave) {
	t.Helper()
	all := Misbehave{}
	if p.clock != nil {
		all["offset_ms"] = time.Until(p.clock.Now()).Milliseconds()
	}
	for k, v := range does {
		all[k] = v
	}
	raw, err := json.Marshal(all)
	Must(t, err)
	p.post(t, "/control", raw)
}

// Rotate replaces its keys.
func (p *Provider) Rotate(t testing.TB) {
	t.Helper()
	p.post(t, "/control/rotate", nil)
}

func (p *Provider) post(t testing.TB, path string, body []byte) {
	t.Helper()
	r := p.do(t, http.MethodPost, p.Issuer+path, body)
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("harness: provider: %s answers %d", path, r.StatusCode)
	}
}

func (p *Provider) do(t testing.TB, method, address string, body []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	Must(t, err)
	r, err := p.http.Do(request)
	Must(t, err)
	return r
}

// Fetched counts the requests to one of its endpoints: discovery, keys, token or userinfo.
func (p *Provider) Fetched(t testing.TB, endpoint string) int {
	t.Helper()
	r := p.do(t, http.MethodGet, p.Issuer+"/control/fetched", nil)
	defer func() { _ = r.Body.Close() }()
	counts := map[string]int{}
	Must(t, json.NewDecoder(r.Body).Decode(&counts))
	return counts[endpoint]
}

// SignIn is a person at the provider with the address that the server sent her browser to.
// It gives the query with which the provider sends the browser back.
func (p *Provider) SignIn(t testing.TB, address, person string) Query {
	t.Helper()
	r := p.do(t, http.MethodGet, address+"&person="+url.QueryEscape(person), nil)
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusSeeOther {
		t.Fatalf("harness: the provider answers %d to %s", r.StatusCode, address)
	}
	back, err := url.Parse(r.Header.Get("Location"))
	Must(t, err)
	q := Query{}
	for name := range back.Query() {
		q[name] = back.Query().Get(name)
	}
	return q
}

// ReachProviders lets a server reach providers on this machine.
func ReachProviders(t testing.TB, providers ...*Provider) Option {
	t.Helper()
	ports := make([]string, len(providers))
	for i, p := range providers {
		ports[i] = p.Port(t)
	}
	return WithKeys(map[string]string{
		"egress.allowed_hosts": fmt.Sprintf(`[{"host":"127.0.0.1","ports":[%s],"allow_private":true}]`, strings.Join(ports, ",")),
	})
}

// WithSecret puts a secret into the folder of secrets of a server.
func WithSecret(t testing.TB, name, value string) Option {
	t.Helper()
	return func(s *Server) {
		Must(t, os.WriteFile(filepath.Join(s.keys["secrets.dir"], name), []byte(value), 0o600))
	}
}

// Visit is a login by a provider under way, seen by its browser.
type Visit struct {
	Client *Client
	// Flow is the login, Address where the browser goes, Cookie what it keeps.
	Flow, Address, Cookie string
}

// Begin begins a login by a provider with a new device. more adds members to the request.
func (s *Server) Begin(t testing.TB, provider string, more Body) *Visit {
	t.Helper()
	c := &Client{Server: s, DeviceKey: identitytest.NewKey(t)}
	return c.begin(t, "beginLogin", Body{"driver": "oidc", "provider_id": provider, "device": device}, more)
}

// BeginLink begins to link an identity with the person.
func (c *Client) BeginLink(t testing.TB, provider string) *Visit {
	t.Helper()
	return c.begin(t, "beginIdentityLink", Body{"provider_id": provider, "return_to": "/#/settings"}, nil)
}

func (c *Client) begin(t testing.TB, operation string, body, more Body) *Visit {
	t.Helper()
	maps.Copy(body, more)
	r := c.Call(t, operation, body).Is(t, http.StatusCreated)
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	return &Visit{Client: c, Flow: r.Str("flow_id"), Address: r.Str("authorization_url"), Cookie: cookie}
}

// Back is the browser coming from the provider; it gives the query with which it goes on.
func (v *Visit) Back(t testing.TB, q Query) url.Values {
	t.Helper()
	header := Header{}
	if v.Cookie != "" {
		header["Cookie"] = v.Cookie
	}
	r := v.Client.Server.Anonymous().Call(t, "oidcCallback", q, header).Is(t, http.StatusSeeOther)
	_, query, _ := strings.Cut(r.Header.Get("Location"), "?")
	members, err := url.ParseQuery(query)
	Must(t, err)
	return members
}

// Finish hands the result to the login.
func (v *Visit) Finish(t testing.TB, result string) *Response {
	t.Helper()
	r := v.Client.Call(t, "completeLogin", v.Flow, Body{"result_code": result})
	if r.Status == http.StatusOK {
		v.Client.Adopt(r)
	}
	return r
}
