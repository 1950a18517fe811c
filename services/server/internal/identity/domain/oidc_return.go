// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"net/netip"
	"net/url"
	"strings"
)

// ReturnTo is where a browser goes after the provider.
type ReturnTo string

const (
	returnMax = 1024
	// nativeReturn is the address that the native clients register with their system.
	nativeReturn = "bothy://auth"
)

// ParseReturnTo accepts a path of the own origin, the address of the native clients, and a
// loopback address with a port, which a command-line client listens on. Anything else would
// hand the result to strangers.
func ParseReturnTo(text string) (ReturnTo, Fault) {
	if text == "" || len(text) > returnMax || strings.ContainsAny(text, "\\\t\r\n ") {
		return "", FaultFormat
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.User != nil || u.Opaque != "":
		return "", FaultFormat
	case text == nativeReturn:
		return ReturnTo(text), FaultNone
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//"):
		return ReturnTo(text), FaultNone
	case u.Scheme == "http" && u.Port() != "" && u.RawQuery == "" && u.Fragment == "":
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
			return ReturnTo(text), FaultNone
		}
	}
	return "", FaultFormat
}

// Own reports whether the browser stays on the own origin, so that a cookie of the beginning
// reaches the end.
func (r ReturnTo) Own() bool { return strings.HasPrefix(string(r), "/") }

// With adds members to the query. The web client keeps its place behind the "#", so there
// they go behind it too and never reach a server or its log.
func (r ReturnTo) With(members url.Values) string {
	text := string(r)
	separator := "?"
	if _, fragment, inFragment := strings.Cut(text, "#"); inFragment && strings.Contains(fragment, "?") || !inFragment && strings.Contains(text, "?") {
		separator = "&"
	}
	return text + separator + members.Encode()
}
