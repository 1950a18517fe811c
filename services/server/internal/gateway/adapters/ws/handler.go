// SPDX-License-Identifier: Apache-2.0

package ws

import (
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/OWNER/bothy/services/server/internal/gateway/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
)

// subprotocol is what a client must offer.
const subprotocol = "bothy.v1"

// Config is how connections are upgraded.
type Config struct {
	// Compression deflates frames of 4 KiB and more, without state between frames, so an
	// idle connection keeps no window in memory.
	Compression bool `key:"gateway.compression" default:"true" doc:"Frames of 4 KiB and more are compressed."`
	// MaxFrameBytes is the largest inbound frame.
	MaxFrameBytes int
	// Origins are the origins a browser may connect from, with the public one.
	Origins []string
}

// Handler upgrades requests and hands the connections to the gateway. Authentication comes
// with the first frame, so nothing in the request but its origin is looked at.
type Handler struct {
	config  Config
	gateway *app.Gateway
}

// NewHandler makes the handler of GET /api/v1/gateway. The chain in front of it has bounded
// how often an address may come.
func NewHandler(config Config, gateway *app.Gateway) *Handler {
	return &Handler{config: config, gateway: gateway}
}

// compressFrom is the size from which deflating pays. Every connection deflates its own frame:
// 50 ordinary messages a second to a hundred of them used 0.29 cores with it and 0.17 without.
const compressFrom = 4096

// ServeHTTP implements http.Handler. It returns when the connection has ended.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ip := reqmeta.From(r.Context()).ClientIP
	if err := h.refuse(r); err != nil {
		httpserver.WriteError(w, r, err)
		return
	}
	switch h.gateway.Admit(ip) {
	case app.RefusedNone:
	case app.RefusedUnidentified:
		httpserver.WriteError(w, r, errs.New(errs.CodeRateLimited, "Too many connections of this address wait to identify themselves."))
		return
	case app.RefusedFull, app.RefusedDraining:
		httpserver.WriteError(w, r, errs.Unavailable(nil))
		return
	}
	mode := websocket.CompressionDisabled
	if h.config.Compression {
		mode = websocket.CompressionNoContextTakeover
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, CompressionMode: mode, CompressionThreshold: compressFrom,
		// The origin has been checked above against exact values.
		InsecureSkipVerify: true,
	})
	if err != nil {
		h.gateway.Forget(ip)
		return
	}
	conn.SetReadLimit(-1)
	t := &transport{conn: conn, maxFrame: int64(h.config.MaxFrameBytes)}
	defer func() { _ = conn.CloseNow() }()
	h.gateway.Serve(r.Context(), t, ip)
}

// refuse names what keeps a request from being upgraded.
func (h *Handler) refuse(r *http.Request) error {
	if !offers(r.Header, subprotocol) {
		return errs.Invalid("header:Sec-WebSocket-Protocol", "required", "Upgrade to a WebSocket with the subprotocol bothy.v1.")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(h.config.Origins, origin) {
		return errs.Forbidden("origin")
	}
	return nil
}

func offers(header http.Header, protocol string) bool {
	for _, line := range header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(line, ",") {
			if strings.TrimSpace(name) == protocol {
				return true
			}
		}
	}
	return false
}
