// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Config has the keys of outgoing requests.
type Config struct {
	Timeout        time.Duration `key:"egress.timeout" default:"15s" min:"1s" max:"2m" doc:"How long a request to another host may take as a whole."`
	ConnectTimeout time.Duration `key:"egress.connect_timeout" default:"5s" min:"1s" max:"30s" doc:"How long the connection to another host, and then its TLS handshake, may take."`
	AllowedHosts   []Entry       `key:"egress.allowed_hosts" doc:"Hosts with exceptions: {host, ports, allow_private}. Without an entry a host is reached over https on port 443 at public addresses."`
	Restrict       bool          `key:"egress.restrict" default:"false" doc:"Reach nothing but the hosts of egress.allowed_hosts."`
	CAFile         string        `key:"egress.ca_file" type:"path" doc:"PEM file with further authorities to trust besides those of the system."`
	MaxPerHost     int           `key:"egress.max_per_host" default:"4" min:"1" max:"64" doc:"Requests to one host at the same time at most."`
}

// Default is the configuration without any source.
func Default() Config {
	return Config{Timeout: 15 * time.Second, ConnectTimeout: 5 * time.Second, MaxPerHost: 4}
}

// Entry is an exception for one host.
type Entry struct {
	// Host is exact, or "*.suffix" for every host below the suffix.
	Host string `json:"host"`
	// Ports are those that may be used; empty means 443.
	Ports []int `json:"ports,omitempty"`
	// AllowPrivate opens private addresses and plain http.
	AllowPrivate bool `json:"allow_private,omitempty"`
}

const defaultPort = 443

// CheckEntries checks the form of the entries.
func (c Config) CheckEntries() error {
	for i, e := range c.AllowedHosts {
		host := strings.TrimPrefix(e.Host, "*.")
		normal, err := normalHost(host)
		if err != nil || normal != host {
			return fmt.Errorf("egress.allowed_hosts: entry %d: host must be a name in lower case or an address", i+1)
		}
		for _, port := range e.Ports {
			if port < 1 || port > 65535 {
				return fmt.Errorf("egress.allowed_hosts: entry %d: a port lies between 1 and 65535", i+1)
			}
		}
	}
	return nil
}

// entry is the first exception for the host, if there is one.
func (c Config) entry(host string) (Entry, bool) {
	for _, e := range c.AllowedHosts {
		suffix, wild := strings.CutPrefix(e.Host, "*")
		if e.Host == host || wild && strings.HasSuffix(host, suffix) && len(host) > len(suffix) {
			return e, true
		}
	}
	return Entry{}, false
}

var errNoCertificates = errors.New("egress.ca_file: the file holds no certificate")

// roots are the authorities of the system and those of the file.
func (c Config) roots() (*x509.CertPool, error) {
	if c.CAFile == "" {
		return nil, nil //nolint:nilnil // A nil pool means the system's.
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the authorities of the system: %w", err)
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("egress.ca_file: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errNoCertificates
	}
	return pool, nil
}
