// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for address, want := range map[string]struct{ open, private bool }{
		"8.8.8.8": {true, true}, "1.1.1.1": {true, true}, "2606:4700::1111": {true, true}, "172.32.0.1": {true, true}, "192.0.1.1": {true, true},
		"10.0.0.1": {false, true}, "100.64.0.1": {false, true}, "127.0.0.1": {false, true}, "127.255.255.254": {false, true},
		"172.16.0.1": {false, true}, "172.31.255.255": {false, true}, "192.168.1.1": {false, true}, "192.0.0.8": {false, true},
		"192.0.2.1": {false, true}, "192.88.99.1": {false, true}, "198.18.0.1": {false, true}, "198.19.255.255": {false, true},
		"198.51.100.1": {false, true}, "203.0.113.1": {false, true}, "240.0.0.1": {false, true}, "169.254.1.1": {false, true},
		"::1": {false, true}, "fc00::1": {false, true}, "fdff::1": {false, true}, "fe80::1": {false, true}, "fec0::1": {false, true},
		"100::1": {false, true}, "2001:db8::1": {false, true}, "2001:0:1::1": {false, true},
		"0.0.0.0": {false, false}, "0.1.2.3": {false, false}, "169.254.169.254": {false, false}, "224.0.0.1": {false, false},
		"239.255.255.255": {false, false}, "255.255.255.255": {false, false}, "::": {false, false}, "ff02::1": {false, false}, "fd00:ec2::254": {false, false},
		"::ffff:127.0.0.1": {false, true}, "::ffff:8.8.8.8": {true, true}, "::ffff:169.254.169.254": {false, false},
		"64:ff9b::8.8.8.8": {true, true}, "64:ff9b::127.0.0.1": {false, true}, "64:ff9b::169.254.169.254": {false, false},
		"64:ff9b:1::10.0.0.1": {false, true}, "2002:7f00:1::": {false, true}, "2002:808:808::": {true, true}, "2002:a9fe:a9fe::1": {false, false},
		"::10.0.0.1": {false, true}, "::8.8.8.8": {true, true}, "::a9fe:a9fe": {false, false},
	} {
		a := netip.MustParseAddr(address)
		if got := mayReach(a, false); got != want.open {
			t.Errorf("%s without an exception: %v", address, got)
		}
		if got := mayReach(a, true); got != want.private {
			t.Errorf("%s with private addresses open: %v", address, got)
		}
	}
}

func TestFormOfTargets(t *testing.T) {
	c := Default()
	c.AllowedHosts = []Entry{
		{Host: "idp.corp", Ports: []int{8443}, AllowPrivate: true}, {Host: "*.inner.example", AllowPrivate: true},
		{Host: "127.0.0.1", Ports: []int{9000}, AllowPrivate: true},
	}
	allowed := []string{
		"https://id.example.org", "https://ID.Example.org/path?x=y#z", "https://id.example.org:443/", "https://idp.corp:8443/a",
		"http://idp.corp:8443/a", "https://a.b.inner.example/", "http://127.0.0.1:9000/token", "https://8.8.8.8/", "https://[2606:4700::1111]/", "https://xn--bcher-kva.example/",
	}
	refused := []string{
		"", "id.example.org", "ftp://id.example.org", "http://id.example.org", "https://id.example.org:8443", "https://user@id.example.org",
		"https://user:pass@id.example.org", "https://id.example.org./", "https://127.1/", "https://0x7f000001/", "https://2130706433/", "https://0177.0.0.1/",
		"https://a.0x1/", "https://idp.corp/", "https://inner.example:8443/", "https://bücher.example/", "https://a_b.example/", "https://[fe80::1%25eth0]/",
		"https:///x", "https:id.example.org", "javascript:alert(1)", "https://id.example.org/" + strings.Repeat("x", maxURLBytes), "https://[::ffff:127.0.0.1%25x]/", "https://-a.example/",
	}
	for _, u := range allowed {
		if _, err := c.target(u); err != nil {
			t.Errorf("%s is refused", u)
		}
	}
	for _, u := range refused {
		if _, err := c.target(u); CodeOf(err) != CodeURLNotAllowed {
			t.Errorf("%s is not refused: %v", u, err)
		}
	}
	c.Restrict = true
	if _, err := c.target("https://id.example.org"); CodeOf(err) != CodeURLNotAllowed {
		t.Error("with restrict, a host without an entry is reached")
	}
	if _, err := c.target("https://idp.corp:8443"); err != nil {
		t.Error("with restrict, a listed host is not reached")
	}
}

func TestEntriesAreChecked(t *testing.T) {
	for _, e := range []Entry{{Host: ""}, {Host: "Upper.example"}, {Host: "*"}, {Host: "a b"}, {Host: "a.example", Ports: []int{0}}, {Host: "a.example", Ports: []int{70000}}} {
		if (Config{AllowedHosts: []Entry{e}}).CheckEntries() == nil {
			t.Errorf("%+v is accepted", e)
		}
		if _, err := New(Config{AllowedHosts: []Entry{e}}); err == nil {
			t.Errorf("a client is made with %+v", e)
		}
	}
	if _, err := New(Config{CAFile: filepath.Join(t.TempDir(), "absent")}); err == nil {
		t.Error("an absent file of authorities is accepted")
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Config{CAFile: empty}); err == nil {
		t.Error("a file without a certificate is accepted")
	}
}

// answers is a resolver that gives one list after the other.
type answers struct {
	lists [][]string
	err   error
	asked int
}

// LookupNetIP implements Resolver.
func (a *answers) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	if a.err != nil {
		return nil, a.err
	}
	list := a.lists[min(a.asked, len(a.lists)-1)]
	a.asked++
	out := make([]netip.Addr, len(list))
	for i, text := range list {
		out[i] = netip.MustParseAddr(text)
	}
	return out, nil
}

func serve(t *testing.T, handler http.HandlerFunc) (address string, port int) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return s.URL, port
}

func client(t *testing.T, cfg Config, options ...Option) *Client {
	t.Helper()
	c, err := New(cfg, options...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func open(port int, hosts ...string) Config {
	cfg := Default()
	for _, h := range hosts {
		cfg.AllowedHosts = append(cfg.AllowedHosts, Entry{Host: h, Ports: []int{port}, AllowPrivate: true})
	}
	return cfg
}

func TestAnswersAreJudgedAsAWhole(t *testing.T) {
	address, port := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host)) })
	named := strings.Replace(address, "127.0.0.1", "idp.corp", 1)
	get := func(cfg Config, lists ...[]string) (Response, error) {
		return client(t, cfg, WithResolver(&answers{lists: lists})).Do(t.Context(), Request{Method: "GET", URL: named, MaxBytes: 1 << 10})
	}
	r, err := get(open(port, "idp.corp"), []string{"127.0.0.1"}, []string{"169.254.169.254"})
	if err != nil || string(r.Body) != "idp.corp:"+strconv.Itoa(port) {
		t.Errorf("the name is resolved more than once, or the host is lost: %q, %v", r.Body, err)
	}
	if _, err := get(open(port, "idp.corp"), []string{"127.0.0.1", "169.254.169.254"}); CodeOf(err) != CodeAddressBlocked {
		t.Errorf("a mixed answer: %v", err)
	}
	if _, err := get(open(port, "idp.corp"), []string{}); CodeOf(err) != CodeDNS {
		t.Errorf("no address: %v", err)
	}
	secure := client(t, Default(), WithResolver(&answers{lists: [][]string{{"8.8.8.8", "10.0.0.1"}}}))
	if _, err := secure.Do(t.Context(), Request{Method: "GET", URL: "https://id.example.org"}); CodeOf(err) != CodeAddressBlocked {
		t.Errorf("a private address among public ones: %v", err)
	}
	lost := client(t, Default(), WithResolver(&answers{err: errors.New("no such host")}))
	if _, err := lost.Do(t.Context(), Request{Method: "GET", URL: "https://id.example.org"}); CodeOf(err) != CodeDNS {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	hang := make(chan struct{})
	address, port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write(make([]byte, 2000))
		case "/away":
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		case "/hang":
			<-hang
		case "/headers":
			w.Header().Set("X-Long", strings.Repeat("x", 64<<10))
		default:
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(r.Header.Get("X-Given") + r.Header.Get("Accept-Encoding")))
		}
	})
	defer close(hang)
	c := client(t, open(port, "127.0.0.1"))
	get := func(path string) (Response, error) {
		return c.Do(t.Context(), Request{
			Method: "GET", URL: address + path, MaxBytes: 1000, Timeout: 200 * time.Millisecond, Header: http.Header{"X-Given": {"yes "}},
		})
	}
	if r, err := get("/"); err != nil || r.Status != http.StatusTeapot || string(r.Body) != "yesidentity" {
		t.Errorf("%+v, %v", r, err)
	}
	for path, want := range map[string]Code{"/long": CodeResponseTooLarge, "/away": CodeRedirect, "/hang": CodeTimeout, "/headers": CodeConnect} {
		if _, err := get(path); CodeOf(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestBusyHostsAreNotAskedMore(t *testing.T) {
	arrived, hang := make(chan struct{}), make(chan struct{})
	address, port := serve(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-hang })
	cfg := open(port, "127.0.0.1")
	cfg.MaxPerHost = 1
	c := client(t, cfg)
	first := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), Request{Method: "GET", URL: address})
		first <- err
	}()
	<-arrived
	if _, err := c.Do(t.Context(), Request{Method: "GET", URL: address}); CodeOf(err) != CodeBusy {
		t.Errorf("a second request: %v", err)
	}
	close(hang)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if len(c.busy) != 0 {
		t.Errorf("the count is not given back: %v", c.busy)
	}
}

func TestTransportFaultsHaveCodes(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	port := s.Listener.Addr().(*net.TCPAddr).Port
	if _, err := client(t, open(port, "127.0.0.1")).Do(t.Context(), Request{Method: "GET", URL: s.URL}); CodeOf(err) != CodeTLS {
		t.Errorf("an unknown authority: %v", err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	if _, err := client(t, open(gone, "127.0.0.1")).Do(t.Context(), Request{Method: "GET", URL: "http://" + l.Addr().String()}); CodeOf(err) != CodeConnect {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestOwnListenersAreNotReached(t *testing.T) {
	address, port := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, listener := range []string{"127.0.0.1:" + strconv.Itoa(port), "0.0.0.0:" + strconv.Itoa(port), ":" + strconv.Itoa(port), "localhost:" + strconv.Itoa(port)} {
		c := client(t, open(port, "127.0.0.1"), WithListeners(listener, "no address"))
		if _, err := c.Do(t.Context(), Request{Method: "GET", URL: address}); CodeOf(err) != CodeAddressBlocked {
			t.Errorf("listening on %s: %v", listener, err)
		}
	}
}

func TestNothingLeavesInsideAUnit(t *testing.T) {
	c := client(t, Default())
	if _, err := c.Do(txn.WithUnit(t.Context(), openUnit{}), Request{Method: "GET", URL: "https://id.example.org"}); !errors.Is(err, errInTransaction) {
		t.Errorf("%v", err)
	}
}

type openUnit struct{ txn.Unit }

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"https://id.example.org/a?b=c", "http://127.1", "https://[::1]:443/", "https://a.example:0443"} {
		f.Add(seed)
	}
	c := Default()
	f.Fuzz(func(t *testing.T, address string) {
		to, err := c.target(address)
		if err != nil {
			return
		}
		if to.url.Scheme != "https" || to.port != 443 || to.url.User != nil || to.private || len(address) > maxURLBytes {
			t.Errorf("%q is let through as %+v", address, to)
		}
	})
}
