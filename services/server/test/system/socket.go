// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Event is a durable event as a socket received it.
type Event struct {
	Seq  int64           `json:"seq"`
	ID   string          `json:"event_id"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
	// At is when the frame had arrived.
	At time.Time `json:"-"`
	// CaughtUp says that it came in a page of missed events.
	CaughtUp bool `json:"-"`
}

// Position is where a connection goes on.
type Position struct {
	Epoch   string
	Cursor  int64
	Session string
}

// Socket is one connection to the gateway after its ready.
type Socket struct {
	// Start is where delivery began.
	Start Position

	conn     *websocket.Conn
	interval time.Duration

	mu       sync.Mutex
	position Position
}

// SocketOptions say how to connect.
type SocketOptions struct {
	// From resumes behind a position; nil begins now.
	From *Position
	// Identify takes part anew at From instead of resuming the session.
	Identify bool
	// Compress offers deflate, as browsers do.
	Compress bool
}

// CloseError is the end of a connection that the server closed.
type CloseError struct {
	Code   int
	Reason string
}

// Error implements error.
func (e *CloseError) Error() string { return fmt.Sprintf("closed with %d %s", e.Code, e.Reason) }

// CloseCode is the code of a *CloseError, and 0 for any other end.
func CloseCode(err error) int {
	var e *CloseError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

const frameLimit = 32 << 20

type frame struct {
	Op string          `json:"op"`
	D  json.RawMessage `json:"d"`
}

// Dial connects and identifies or resumes. Nothing is read after the answer until Read is called.
func Dial(ctx context.Context, c *Client, o SocketOptions) (*Socket, error) {
	mode := websocket.CompressionDisabled
	if o.Compress {
		mode = websocket.CompressionNoContextTakeover
	}
	conn, _, err := websocket.Dial(ctx, c.Address+"/api/v1/gateway", &websocket.DialOptions{ //nolint:bodyclose // The library closes it.
		Subprotocols: []string{"bothy.v1"}, CompressionMode: mode, HTTPClient: c.http,
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(frameLimit)
	s := &Socket{conn: conn}
	if err := s.greet(ctx, c.Token, o); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return s, nil
}

func (s *Socket) greet(ctx context.Context, token string, o SocketOptions) error {
	var hello struct {
		Epoch    string `json:"sync_epoch"`
		Interval int64  `json:"heartbeat_interval_ms"`
	}
	if err := s.expect(ctx, "hello", &hello); err != nil {
		return err
	}
	s.interval = time.Duration(hello.Interval) * time.Millisecond
	d := map[string]any{"token": token}
	op, answer := "identify", "ready"
	if o.From != nil {
		d["cursor"], d["sync_epoch"] = o.From.Cursor, o.From.Epoch
	}
	if o.From != nil && o.From.Session != "" && !o.Identify {
		op, answer = "resume", "resumed"
		d["session_id"] = o.From.Session
	} else {
		d["protocol_version"] = 1
		d["client"] = map[string]any{"name": "load", "version": "1", "platform": "linux"}
	}
	if err := s.Write(ctx, op, d); err != nil {
		return err
	}
	var ready struct {
		Session string `json:"session_id"`
		Epoch   string `json:"sync_epoch"`
		Cursor  int64  `json:"cursor"`
	}
	if err := s.expect(ctx, answer, &ready); err != nil {
		return err
	}
	s.Start = Position{Epoch: ready.Epoch, Cursor: ready.Cursor, Session: ready.Session}
	s.position = s.Start
	return nil
}

func (s *Socket) expect(ctx context.Context, op string, into any) error {
	_, text, err := s.conn.Read(ctx)
	if err != nil {
		return closed(err)
	}
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if f.Op != op {
		return fmt.Errorf("expected %s, got %s", op, text)
	}
	return json.Unmarshal(f.D, into)
}

// Write sends a frame.
func (s *Socket) Write(ctx context.Context, op string, d any) error {
	text, err := json.Marshal(map[string]any{"op": op, "d": d})
	if err != nil {
		return err
	}
	return s.conn.Write(ctx, websocket.MessageText, text)
}

func closed(err error) error {
	var e websocket.CloseError
	if errors.As(err, &e) {
		return &CloseError{Code: int(e.Code), Reason: e.Reason}
	}
	return err
}

// Read hands every event to a function until the connection ends, and sends heartbeats meanwhile.
func (s *Socket) Read(ctx context.Context, handle func(Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		s.beat(ctx)
	}()
	defer func() { cancel(); <-beats }()
	for {
		_, text, err := s.conn.Read(ctx)
		if err != nil {
			return closed(err)
		}
		if err := s.take(text, time.Now(), handle); err != nil {
			return err
		}
	}
}

func (s *Socket) take(text []byte, at time.Time, handle func(Event)) error {
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	switch f.Op {
	case "dispatch":
		var e Event
		if err := json.Unmarshal(f.D, &e); err != nil {
			return err
		}
		e.At = at
		s.advance(e.Seq)
		handle(e)
	case "catchup.page":
		var page struct {
			Events  []Event `json:"events"`
			Through int64   `json:"through_seq"`
		}
		if err := json.Unmarshal(f.D, &page); err != nil {
			return err
		}
		for _, e := range page.Events {
			e.At, e.CaughtUp = at, true
			s.advance(e.Seq)
			handle(e)
		}
		s.advance(page.Through)
	case "catchup.complete":
		var done struct {
			Cursor int64 `json:"cursor"`
		}
		if err := json.Unmarshal(f.D, &done); err != nil {
			return err
		}
		s.advance(done.Cursor)
	}
	return nil
}

func (s *Socket) advance(seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.position.Cursor = max(s.position.Cursor, seq)
}

// Position is where another connection would go on.
func (s *Socket) Position() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position
}

func (s *Socket) beat(ctx context.Context) {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.Write(ctx, "heartbeat", map[string]any{"cursor": s.Position().Cursor}) != nil {
				return
			}
		}
	}
}

// ReadRaw hands over whole frames with the time of their arrival, for measurements in which decoding would count.
func (s *Socket) ReadRaw(ctx context.Context, handle func(text []byte, at time.Time)) error {
	for {
		_, text, err := s.conn.Read(ctx)
		if err != nil {
			return closed(err)
		}
		handle(text, time.Now())
	}
}

// Close ends the connection at once.
func (s *Socket) Close() { _ = s.conn.CloseNow() }

// Follow keeps connected until the context ends: whatever happens to the server, it comes back and goes on behind the
// last event that it handled.
func Follow(ctx context.Context, c *Client, from *Position, ready func(Position), handle func(Event)) {
	const pause = 50 * time.Millisecond
	identify := false
	for ctx.Err() == nil {
		s, err := Dial(ctx, c, SocketOptions{From: from, Identify: identify})
		if err != nil {
			// A session that another life of the server kept is unknown to the new one.
			const sessionUnknown, serverRestart = 4006, 4013
			code := CloseCode(err)
			identify = identify || code == sessionUnknown || code == serverRestart
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		identify = false
		if ready != nil {
			ready(s.Start)
		}
		_ = s.Read(ctx, handle)
		p := s.Position()
		from = &p
		s.Close()
	}
}
