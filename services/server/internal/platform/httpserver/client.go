// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientIP tells who sent a request: the peer, or what trusted proxies say of it. The
// second result says whether the peer itself is to be believed (a trusted proxy, or this
// machine), which decides whether its trace is continued.
func (c *Chain) clientIP(r *http.Request) (addr netip.Addr, trusted bool) {
	peer, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return netip.Addr{}, false
	}
	if !c.isProxy(peer) {
		return peer, peer.IsLoopback()
	}
	return forwardedFor(peer, r.Header.Values("X-Forwarded-For"), c.isProxy), true
}

func (c *Chain) isProxy(addr netip.Addr) bool {
	for _, p := range c.options.Config.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// forwardedFor walks the chain of proxies from the nearest to the client and stops at the
// first address that no trusted proxy has. What stands left of it was written by somebody
// unknown. An entry that is no address ends the walk as well.
func forwardedFor(peer netip.Addr, headers []string, isProxy func(netip.Addr) bool) netip.Addr {
	client := peer
	for i := len(headers) - 1; i >= 0; i-- {
		rest := headers[i]
		for rest != "" {
			entry := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				entry, rest = rest[comma+1:], rest[:comma]
			} else {
				rest = ""
			}
			addr, ok := parseAddr(strings.TrimSpace(entry))
			if !ok {
				return client
			}
			client = addr
			if !isProxy(addr) {
				return client
			}
		}
	}
	return client
}

// parseAddr reads an address with or without a port. IPv4 in IPv6 form becomes IPv4, and a
// zone, which means nothing to another machine, goes.
func parseAddr(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.WithZone("").Unmap(), true
}

// ipKey is the key of a bucket per client address. A client with IPv6 commands a whole /64,
// so that is what counts.
func ipKey(addr netip.Addr) string {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			addr = p.Addr()
		}
	}
	return "ip:" + addr.String()
}

// ParseAuthorization splits the header Authorization into its scheme in lower case and the
// token. ok is false unless it is exactly one scheme and one token of allowed characters.
func ParseAuthorization(header string) (scheme, token string, ok bool) {
	scheme, token, found := strings.Cut(header, " ")
	if !found || scheme == "" || token == "" || len(header) > 16<<10 {
		return "", "", false
	}
	for _, c := range []byte(scheme) {
		if !isAlpha(c) && c != '-' {
			return "", "", false
		}
	}
	for _, c := range []byte(token) {
		if !isAlpha(c) && (c < '0' || c > '9') && strings.IndexByte("-._~+/=", c) < 0 {
			return "", "", false
		}
	}
	return strings.ToLower(scheme), token, true
}

func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
