// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/OWNER/bothy/services/server/internal/wire"
)

// Statements notes every statement that a server sends to the database, as it stands on the
// wire: what travels in pipelines and batches is seen like everything else.
type Statements struct {
	mu   sync.Mutex
	list []string
}

// WithStatements notes what a server asks the database.
func WithStatements(s *Statements) Option {
	return WithConfig(func(c *wire.Config) { c.PG.Tracer = s })
}

// During gives the statements with a text that were sent while fn ran.
func (s *Statements) During(text string, fn func()) []string {
	s.mu.Lock()
	s.list = nil
	s.mu.Unlock()
	fn()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, q := range s.list {
		if strings.Contains(q, text) {
			out = append(out, q)
		}
	}
	return out
}

// TraceQueryStart implements pgx.QueryTracer.
func (*Statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*Statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceConnectStart implements pgx.ConnectTracer: it listens in on the connection.
func (s *Statements) TraceConnectStart(ctx context.Context, data pgx.TraceConnectStartData) context.Context {
	dial := data.ConnConfig.DialFunc
	data.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &tapped{Conn: conn, to: s, prepared: map[string]string{}}, nil
	}
	return ctx
}

// TraceConnectEnd implements pgx.ConnectTracer.
func (*Statements) TraceConnectEnd(context.Context, pgx.TraceConnectEndData) {}

// tapped is a connection whose outgoing messages are read along.
type tapped struct {
	net.Conn
	to *Statements
	// begun is set once the first message, which has no type, has gone.
	begun    bool
	rest     []byte
	prepared map[string]string
	bound    string
}

// Write implements net.Conn.
func (c *tapped) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	for {
		head := 5
		if !c.begun {
			head = 4
		}
		if len(c.rest) < head {
			break
		}
		size := int(binary.BigEndian.Uint32(c.rest[head-4:head])) + head - 4
		if len(c.rest) < size {
			break
		}
		if c.begun {
			c.message(c.rest[0], c.rest[head:size])
		}
		c.begun, c.rest = true, c.rest[size:]
	}
	return c.Conn.Write(b)
}

func (c *tapped) message(kind byte, body []byte) {
	first, rest, _ := bytes.Cut(body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch kind {
	case 'Q':
		c.note(string(first))
	case 'P':
		c.prepared[string(first)] = string(second)
	case 'B':
		c.bound = string(second)
	case 'E':
		c.note(c.prepared[c.bound])
	}
}

func (c *tapped) note(sql string) {
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.list = append(c.to.list, sql)
}
