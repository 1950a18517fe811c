// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

func inTen(addr netip.Addr) bool { return netip.MustParsePrefix("10.0.0.0/8").Contains(addr) }

func TestForwardedFor(t *testing.T) {
	for _, c := range []struct {
		name    string
		headers []string
		want    string
	}{
		{"none", nil, "10.0.0.1"},
		{"one proxy", []string{"203.0.113.7"}, "203.0.113.7"},
		{"forged entries stand left", []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7"},
		{"two proxies", []string{"203.0.113.7, 10.0.0.2"}, "203.0.113.7"},
		{"several headers are one list", []string{"1.1.1.1", "203.0.113.7,10.0.0.2"}, "203.0.113.7"},
		{"all trusted", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"nonsense ends the walk", []string{"203.0.113.7, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"ports and IPv6", []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{"IPv4 in IPv6", []string{"::ffff:203.0.113.7"}, "203.0.113.7"},
		{"empty entry", []string{"203.0.113.7,"}, "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := forwardedFor(netip.MustParseAddr("10.0.0.1"), c.headers, inTen); got.String() != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestForwardedHeadersCountFromTrustedProxiesAlone(t *testing.T) {
	b := setup(t, nil)
	for peer, want := range map[string]string{"192.0.2.1:1": "203.0.113.7 true", "198.51.100.1:1": "198.51.100.1 false", "127.0.0.1:1": "127.0.0.1 true"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "203.0.113.7")
		addr, trusted := b.clientIP(r)
		if got := addr.String() + " " + strconv.FormatBool(trusted); got != want {
			t.Errorf("%s: %s, want %s", peer, got, want)
		}
	}
}

func TestAClientWithIPv6HasOneBucket(t *testing.T) {
	if ipKey(netip.MustParseAddr("2001:db8::1")) != ipKey(netip.MustParseAddr("2001:db8::ffff:1")) {
		t.Error("two addresses of a network have two buckets")
	}
	if ipKey(netip.MustParseAddr("203.0.113.7")) == ipKey(netip.MustParseAddr("203.0.113.8")) {
		t.Error("two IPv4 addresses share a bucket")
	}
}

func TestParseIfMatch(t *testing.T) {
	for header, want := range map[string]int64{
		`"1"`: 1, `"9223372036854775807"`: 1<<63 - 1, `"9223372036854775808"`: 0, `W/"1"`: 0, `*`: 0, `1`: 0, `"0"`: 0, `"01"`: 0, `"1", "2"`: 0, `""`: 0, `"-1"`: 0,
	} {
		got, ok := ParseIfMatch(header)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%s: %d %v", header, got, ok)
		}
	}
}

func FuzzParseIfMatch(f *testing.F) {
	f.Add(`"1"`)
	f.Add(`"99999999999999999999"`)
	f.Fuzz(func(t *testing.T, header string) {
		if v, ok := ParseIfMatch(header); ok && `"`+strconv.FormatInt(v, 10)+`"` != header {
			t.Errorf("%q became %d", header, v)
		}
	})
}

func FuzzParseAuthorization(f *testing.F) {
	f.Add("DPoP abc.def")
	f.Add("Bearer bothy_pat_x")
	f.Fuzz(func(t *testing.T, header string) {
		scheme, token, ok := ParseAuthorization(header)
		if ok && (!strings.EqualFold(scheme+" "+token, header) || strings.ContainsAny(token, " ,\"\r\n")) {
			t.Errorf("%q became %q %q", header, scheme, token)
		}
	})
}

func FuzzForwardedFor(f *testing.F) {
	f.Add("203.0.113.7, 10.0.0.2", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		peer := netip.MustParseAddr("10.0.0.1")
		got := forwardedFor(peer, []string{a, b}, inTen)
		if !got.IsValid() || got.Zone() != "" || got.Is4In6() {
			t.Errorf("%q, %q: %v", a, b, got)
		}
		// What a client wrote left of an untrusted address never counts.
		if forged := forwardedFor(peer, []string{"1.1.1.1," + a, b}, inTen); !inTen(got) && forged != got {
			t.Errorf("%q, %q: forged entry changed %v to %v", a, b, got, forged)
		}
	})
}
