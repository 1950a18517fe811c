// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"net/netip"
	"strings"
	"time"
)

// Config has the keys of the listeners, of the chain and of the pages.
type Config struct {
	ListenAddr         string         `key:"server.listen_addr" default:"127.0.0.1:8080" type:"address" doc:"Where the API, the gateway and the web client are served."`
	InternalListenAddr string         `key:"server.internal_listen_addr" default:"127.0.0.1:8081" type:"address" doc:"Where health is served; never published."`
	PublicURL          string         `key:"server.public_url" type:"origin" doc:"Address under which clients reach the instance; proofs of possession are made for it."`
	TrustedProxies     []netip.Prefix `key:"server.trusted_proxies" doc:"Networks whose X-Forwarded-For and traceparent count. Others could choose their own address."`
	TLSCertificateFile string         `key:"server.tls.certificate_file" type:"path" doc:"Certificate chain when the server itself speaks TLS."`
	TLSKeyRef          string         `key:"server.tls.key_ref" type:"ref" doc:"Private key of that certificate."`

	MaintenanceMode       string        `key:"server.maintenance_mode" default:"off" enum:"off,read_only" doc:"read_only refuses writes, for a move or a restore."`
	MaintenanceRetryAfter time.Duration `key:"server.maintenance_retry_after" default:"60s" min:"1s" max:"1h" doc:"When clients ask again during maintenance."`

	ReadHeaderTimeout time.Duration `key:"http.read_header_timeout" default:"5s" min:"1s" max:"60s" doc:"Time for the header of a request; slow ones would hold connections."`
	RequestTimeout    time.Duration `key:"http.request_timeout" default:"15s" min:"1s" max:"5m" doc:"Time for an ordinary request."`
	TransferTimeout   time.Duration `key:"http.transfer_timeout" default:"10m" min:"10s" max:"2h" doc:"Time for an upload or a download."`
	IdleTimeout       time.Duration `key:"http.idle_timeout" default:"120s" min:"5s" max:"10m" doc:"How long an unused connection stays open."`
	MaxHeaderBytes    int64         `key:"http.max_header_bytes" default:"65536" type:"bytes" min:"8KiB" max:"1MiB" doc:"Size of the header of a request."`
	MaxJSONBodyBytes  int64         `key:"http.max_json_body_bytes" default:"1048576" type:"bytes" min:"64KiB" max:"16MiB" doc:"Size of a JSON body."`
	MaxJSONDepth      int           `key:"http.max_json_depth" default:"32" min:"8" max:"128" doc:"Nesting of a JSON body."`

	UnavailableRetryAfter time.Duration `key:"http.unavailable_retry_after" default:"5s" min:"1s" max:"5m" doc:"When clients ask again while something is away; whole seconds."`
	CORSAllowedOrigins    []string      `key:"api.cors_allowed_origins" type:"origin" doc:"Origins of other web pages that may call the API."`

	AssetsDir     string `key:"console.assets_dir" type:"path" doc:"Folder with another build of the web client; empty serves the embedded one."`
	CSPReportOnly bool   `key:"web.csp_report_only" default:"false" doc:"Send the content security policy of the pages as a report only."`
	ClientMetrics bool   `key:"web.client_metrics" default:"true" doc:"Let clients report how fast they are."`
	InstallHint   bool   `key:"web.install_hint" default:"true" doc:"Let the client offer to be installed."`
}

// CheckTLSPair is the cross-check tls_pair.
func (c Config) CheckTLSPair() error {
	switch {
	case (c.TLSCertificateFile == "") != (c.TLSKeyRef == ""):
		return errors.New("certificate and key belong together; set both or none")
	case c.TLSCertificateFile != "" && !strings.HasPrefix(c.PublicURL, "https://"):
		return errors.New("server.public_url must be https when the server itself speaks TLS")
	default:
		return nil
	}
}

// CheckWholeSeconds holds that the header Retry-After can say what is configured.
func (c Config) CheckWholeSeconds() error {
	if c.UnavailableRetryAfter%time.Second != 0 {
		return errors.New("must be whole seconds")
	}
	return nil
}

// ReadOnly reports whether maintenance mode is on.
func (c Config) ReadOnly() bool { return c.MaintenanceMode == "read_only" }
