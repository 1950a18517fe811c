// SPDX-License-Identifier: Apache-2.0

// Package ws carries the gateway over WebSocket (RFC 6455).
package ws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
)

// frameTimeout is how long a frame may take from its first byte to its last. A peer that
// trickles bytes holds a connection no longer than this.
const frameTimeout = 10 * time.Second

// transport implements app.Transport on one WebSocket.
type transport struct {
	conn     *websocket.Conn
	maxFrame int64
}

// Read implements app.Transport.
func (t *transport) Read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kind, r, err := t.conn.Reader(ctx)
	if err != nil {
		return nil, fmt.Errorf("await a frame: %w", err)
	}
	late := time.AfterFunc(frameTimeout, cancel)
	defer late.Stop()
	if kind != websocket.MessageText {
		return nil, domain.Close{Code: domain.CloseMalformed, Detail: "binary"}
	}
	// The limit counts what comes out of the decompression, not what went in.
	text, err := io.ReadAll(io.LimitReader(r, t.maxFrame+1))
	if err != nil {
		return nil, fmt.Errorf("read a frame: %w", err)
	}
	if int64(len(text)) > t.maxFrame {
		return nil, domain.Close{Code: domain.CloseFrameTooLarge}
	}
	return text, nil
}

// Write implements app.Transport.
func (t *transport) Write(ctx context.Context, frame []byte) error {
	err := t.conn.Write(ctx, websocket.MessageText, frame)
	if err != nil && ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// Close implements app.Transport. It does not wait for the peer to agree: one that does not
// read would hold the connection, and the code is in its buffers or lost either way.
func (t *transport) Close(code int, reason string) {
	_ = t.conn.Close(websocket.StatusCode(code), reason)
}
