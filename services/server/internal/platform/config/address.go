// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

type address struct {
	host string
	port int
}

func splitAddress(text string) (address, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, errors.New("no host:port")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return address{}, errors.New("no port")
	}
	return address{normalHost(host), n}, nil
}

// normalHost makes equal hosts equal: an IPv4 address in its IPv6 form becomes IPv4, zones
// go, and every way to say "all addresses" becomes the empty string.
func normalHost(host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	addr = addr.WithZone("").Unmap()
	if addr.IsUnspecified() {
		return ""
	}
	return addr.String()
}

// ListenersDiffer is the cross-check listeners_differ: two listeners share no port, other
// than 0, on the same host or behind a wildcard.
func ListenersDiffer(a, b string) error {
	x, errX := splitAddress(a)
	y, errY := splitAddress(b)
	if errX != nil || errY != nil {
		return errors.New("both must be host:port")
	}
	if x.port == y.port && x.port != 0 && (x.host == y.host || x.host == "" || y.host == "") {
		return errors.New("the listeners must not share a port")
	}
	return nil
}

// PublicURLSecure is the cross-check public_url_secure: https, unless the host is this
// machine. The empty value passes; whether it may be empty is another question.
func PublicURLSecure(origin string) error {
	u, err := url.Parse(origin)
	if origin == "" || err == nil && u.Scheme == "https" {
		return nil
	}
	if err == nil {
		if addr, addrErr := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || addrErr == nil && addr.IsLoopback() {
			return nil
		}
	}
	return errors.New("must be https unless the host is localhost or a loopback address")
}
