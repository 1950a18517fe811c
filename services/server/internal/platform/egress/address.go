// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"slices"
)

// Addresses that are not the public internet.
var blocked = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8", "100::/64", "2001:db8::/32", "2001::/32",
)

// Addresses that no exception opens: "this network", the metadata services of clouds, groups.
var neverOpen = prefixes("0.0.0.0/8", "169.254.169.254/32", "224.0.0.0/4", "255.255.255.255/32", "::/128", "fd00:ec2::254/128", "ff00::/8")

// Networks whose addresses carry an IPv4 address, with the byte at which it begins.
var embedding = []struct {
	network netip.Prefix
	at      int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// mayReach judges one address. private says that the operator opened private addresses for
// the host. An address that carries another is judged by both.
func mayReach(a netip.Addr, private bool) bool {
	list := blocked
	if private {
		list = neverOpen
	}
	for _, one := range meanings(a) {
		if within(list, one) {
			return false
		}
	}
	return true
}

// meanings are the address itself and the IPv4 address inside it.
func meanings(a netip.Addr) []netip.Addr {
	a = a.WithZone("").Unmap()
	if a.Is4() || a.IsLoopback() || a.IsUnspecified() {
		return []netip.Addr{a}
	}
	raw := a.As16()
	for _, e := range embedding {
		if e.network.Contains(a) {
			return []netip.Addr{a, netip.AddrFrom4([4]byte(raw[e.at : e.at+4]))}
		}
	}
	return []netip.Addr{a}
}
