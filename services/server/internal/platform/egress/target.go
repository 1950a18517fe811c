// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const maxURLBytes = 2048

// target is a URL that passed the rules of form.
type target struct {
	url     *url.URL
	host    string
	port    int
	private bool
}

// Check tells whether a request to the URL would be tried, without resolving its host. It
// fails with code url_not_allowed.
func (c *Client) Check(address string) error {
	_, err := c.cfg.target(address)
	return err
}

func (c Config) target(address string) (target, error) {
	refused := &Error{Code: CodeURLNotAllowed}
	u, err := url.Parse(address)
	if err != nil || len(address) > maxURLBytes || u.User != nil || u.Opaque != "" || u.Scheme != "https" && u.Scheme != "http" {
		return target{}, refused
	}
	host, err := normalHost(u.Hostname())
	if err != nil {
		return target{}, refused
	}
	port := defaultPort
	if u.Scheme == "http" {
		port = 80
	}
	if text := u.Port(); text != "" {
		if port, err = strconv.Atoi(text); err != nil {
			return target{}, refused
		}
	}
	entry, listed := c.entry(host)
	if !c.portAllowed(entry, port) || c.Restrict && !listed || u.Scheme == "http" && !entry.AllowPrivate {
		return target{}, refused
	}
	clean := *u
	clean.Fragment, clean.RawFragment = "", ""
	return target{url: &clean, host: host, port: port, private: entry.AllowPrivate}, nil
}

// portAllowed holds for 443 and for what the entry of the host names. An entry that names
// ports means exactly those.
func (c Config) portAllowed(e Entry, port int) bool {
	if len(e.Ports) == 0 {
		return port == defaultPort
	}
	for _, allowed := range e.Ports {
		if allowed == port {
			return true
		}
	}
	return false
}

var (
	hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	// topName matches a last label that an old resolver reads as a number: "127.1",
	// "0x7f000001", "2130706433".
	topName = regexp.MustCompile(`(^|\.)(0x[0-9a-f]*|[0-9]+)$`)
)

// normalHost gives the host in lower case. Names outside ASCII must come in their encoded
// form, which is what clients and providers write anyway.
func normalHost(host string) (string, error) {
	host = strings.ToLower(host)
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" || a.String() != host {
			return "", &Error{Code: CodeURLNotAllowed}
		}
		return host, nil
	}
	if len(host) > 253 || !hostName.MatchString(host) || topName.MatchString(host) {
		return "", &Error{Code: CodeURLNotAllowed}
	}
	return host, nil
}
