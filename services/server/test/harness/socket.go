// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/internal/identity/adapters/identitytest"
)

// Frame is a frame that the server sent.
type Frame struct {
	Op string `json:"op"`
	ID string `json:"id"`
	// D is the decoded payload.
	D any `json:"d"`
}

// Str finds a text in the payload.
func (f Frame) Str(path string) string {
	s, _ := At(f.D, path).(string)
	return s
}

// Int finds a number in the payload.
func (f Frame) Int(path string) int64 {
	n, _ := At(f.D, path).(float64)
	return int64(n)
}

// Event is an event, however it came: live, with a page of missed ones, or unstored.
type Event struct {
	Type string
	// Seq is the position in the log, zero for an unstored one.
	Seq  int64
	Body any
}

// Str finds a text in the envelope.
func (e Event) Str(path string) string {
	s, _ := At(e.Body, path).(string)
	return s
}

// Int finds a number in the envelope.
func (e Event) Int(path string) int64 {
	n, _ := At(e.Body, path).(float64)
	return int64(n)
}

// Socket is a connection to the gateway that keeps everything it receives.
type Socket struct {
	client *Client
	conn   *websocket.Conn
	stop   context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	changed chan struct{}
	frames  []Frame
	events  []Event
	nonce   string
	faults  []string
	ended   error
	serial  int
	beats   int
}

// Dial opens a connection and waits for hello.
func (c *Client) Dial(t testing.TB) *Socket {
	t.Helper()
	s, res, err := c.TryDial(t, ws.Subprotocol, nil)
	if err != nil {
		t.Fatalf("open the gateway: %v (%v)", err, res)
	}
	s.Frame(t, "hello", func(f Frame) bool { return f.Op == "hello" })
	return s
}

// TryDial opens a connection as told; the answer to a refused upgrade comes back.
func (c *Client) TryDial(t testing.TB, subprotocol string, header http.Header) (*Socket, *Response, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var protocols []string
	if subprotocol != "" {
		protocols = []string{subprotocol}
	}
	address := "ws" + strings.TrimPrefix(c.Server.URL, "http") + "/api/v1/gateway"
	conn, res, err := websocket.Dial( //nolint:bodyclose // The body of a refusal is closed by refusal, an upgrade has none.
		ctx, address, &websocket.DialOptions{Subprotocols: protocols, HTTPHeader: header, CompressionMode: websocket.CompressionNoContextTakeover})
	if err != nil {
		cancel()
		return nil, refusal(t, res), err
	}
	conn.SetReadLimit(-1)
	s := &Socket{client: c, conn: conn, stop: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	go s.read(ctx)
	t.Cleanup(func() {
		s.Close()
		for _, f := range s.takeFaults() {
			t.Error(f)
		}
	})
	return s, nil, nil
}

func refusal(t testing.TB, res *http.Response) *Response {
	t.Helper()
	if res == nil {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	const most = 1024
	body := make([]byte, most)
	n, _ := res.Body.Read(body)
	r := &Response{Operation: "openGateway", Status: res.StatusCode, Header: res.Header, Body: body[:n]}
	if err := r.check(); err != nil {
		t.Errorf("openGateway answered %d against the contract: %v\n%s", r.Status, err, r.short())
	}
	return r
}

func (s *Socket) read(ctx context.Context) {
	defer close(s.done)
	for {
		_, raw, err := s.conn.Read(ctx)
		if err != nil {
			s.note(func() { s.ended = err })
			return
		}
		s.take(raw)
	}
}

// take holds a frame against the contract and keeps it.
func (s *Socket) take(raw []byte) {
	var f struct {
		ws.Frame
	}
	err := json.Unmarshal(raw, &f)
	if err == nil {
		_, err = f.DecodeServer()
	}
	if err != nil {
		s.note(func() {
			s.faults = append(s.faults, fmt.Sprintf("frame against the contract: %v\n%.2000s", describe(err), raw))
		})
		return
	}
	kept := Frame{Op: f.Op, ID: f.ID}
	_ = json.Unmarshal(f.D, &kept.D)
	s.note(func() {
		if err := checkTimes(kept.D); err != nil {
			s.faults = append(s.faults, fmt.Sprintf("frame %s %s against the contract: %v", kept.Op, kept.Str("type"), err))
		}
		s.frames = append(s.frames, kept)
		if nonce := kept.Str("dpop_nonce"); nonce != "" {
			s.nonce = nonce
		}
		switch kept.Op {
		case ws.OpDispatch, ws.OpEphemeral:
			s.event(kept.D, f.D)
		case ws.OpCatchupPage:
			s.page(kept.D)
		}
	})
}

func (s *Socket) page(d any) {
	list, _ := At(d, "events").([]any)
	for _, e := range list {
		raw, _ := json.Marshal(e)
		s.event(e, raw)
	}
}

func (s *Socket) event(d any, raw json.RawMessage) {
	e := Event{Type: Frame{D: d}.Str("type"), Seq: Frame{D: d}.Int("seq"), Body: d}
	if err := CheckEvent(raw); err != nil {
		s.faults = append(s.faults, fmt.Sprintf("event %s against the contract: %v\n%.3000s", e.Type, err, raw))
	}
	if e.Seq > 0 {
		for _, earlier := range slices.Backward(s.events) {
			if earlier.Seq > e.Seq {
				s.faults = append(s.faults, fmt.Sprintf("event %d came after %d", e.Seq, earlier.Seq))
			}
			if earlier.Seq > 0 {
				break
			}
		}
	}
	s.events = append(s.events, e)
}

// CheckEvent holds an envelope and its data against the contract.
func CheckEvent(raw json.RawMessage) error {
	var e struct {
		Type     string          `json:"type"`
		Data     json.RawMessage `json:"data"`
		Redacted bool            `json:"redacted"`
		Seq      int64           `json:"seq"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	envelope := "EventEnvelope"
	if e.Seq == 0 {
		envelope = "EphemeralEnvelope"
	}
	if err := contract.Value(envelope, raw); err != nil {
		return describe(err)
	}
	if e.Redacted {
		return nil
	}
	return describe(ws.CheckEvent(e.Type, e.Data))
}

// note changes the socket and wakes who waits.
func (s *Socket) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Socket) takeFaults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := s.faults
	s.faults = nil
	return faults
}

// until waits for a condition over what was received.
func (s *Socket) until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		met, changed, ended := condition(), s.changed, s.ended
		s.mu.Unlock()
		if met {
			return
		}
		if ended != nil {
			t.Fatalf("the connection ended before %s: %v", what, ended)
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("still waiting after %s: %s\nreceived: %s", Patience, what, s.summary())
		}
	}
}

func (s *Socket) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, f := range s.frames {
		fmt.Fprintf(&b, "%s", f.Op)
		switch f.Op {
		case ws.OpDispatch, ws.OpEphemeral:
			fmt.Fprintf(&b, "(%s %d)", f.Str("type"), f.Int("seq"))
		case ws.OpError:
			fmt.Fprintf(&b, "(%s %s)", f.Str("op"), f.Str("code"))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// Frame waits for the first frame that fits, of all that came.
func (s *Socket) Frame(t testing.TB, what string, fits func(Frame) bool) Frame {
	t.Helper()
	var found Frame
	s.until(t, what, func() bool {
		i := slices.IndexFunc(s.frames, fits)
		if i >= 0 {
			found = s.frames[i]
		}
		return i >= 0
	})
	return found
}

// Event waits for the first event that fits, of all that came.
func (s *Socket) Event(t testing.TB, eventType string, fits func(Event) bool) Event {
	t.Helper()
	var found Event
	s.until(t, "the event "+eventType, func() bool {
		i := slices.IndexFunc(s.events, func(e Event) bool { return e.Type == eventType && (fits == nil || fits(e)) })
		if i >= 0 {
			found = s.events[i]
		}
		return i >= 0
	})
	return found
}

// Events are all events that came so far.
func (s *Socket) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Send writes a frame and gives the ID it was sent under.
func (s *Socket) Send(t testing.TB, op string, d any) string {
	t.Helper()
	s.mu.Lock()
	s.serial++
	id := fmt.Sprintf("f%d", s.serial)
	s.mu.Unlock()
	raw, err := ws.EncodeFrame(op, id, d)
	Must(t, err)
	s.SendRaw(t, string(raw))
	return id
}

// SendRaw writes a text as it is.
func (s *Socket) SendRaw(t testing.TB, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		t.Fatalf("write a frame: %v", err)
	}
}

// Answer waits for the frame that carries the ID.
func (s *Socket) Answer(t testing.TB, id string) Frame {
	t.Helper()
	return s.Frame(t, "the answer to "+id, func(f Frame) bool { return f.ID == id })
}

// Do sends a frame whose success is silent and waits until it has taken effect. It gives the
// error frame, if there was one.
func (s *Socket) Do(t testing.TB, op string, d any) (Frame, bool) {
	t.Helper()
	id := s.Send(t, op, d)
	// Frames are taken in their order, so the refusal of a hollow one shows that the one before
	// is done.
	s.Answer(t, s.Send(t, "typing.stop", Body{}))
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.frames, func(f Frame) bool { return f.ID == id && f.Op == ws.OpError })
	if i < 0 {
		return Frame{}, true
	}
	return s.frames[i], false
}

// Reach waits until everything up to the position has been sent.
func (s *Socket) Reach(t testing.TB, seq int64) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		ack := s.Beat(t)
		if ack.Int("cursor") >= seq {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the connection is at %d and does not reach %d", ack.Int("cursor"), seq)
		}
		time.Sleep(time.Millisecond)
	}
}

// Beat sends a heartbeat and gives its answer. The server takes one a second and a few at once;
// when they are used up, a second passes on its clock.
func (s *Socket) Beat(t testing.TB) Frame {
	t.Helper()
	const free = 4
	s.mu.Lock()
	s.beats++
	many := s.beats > free
	s.mu.Unlock()
	if many {
		s.client.Server.Clock.Advance(time.Second)
	}
	return s.Answer(t, s.Send(t, "heartbeat", Body{}))
}

// Credentials are the members token and dpop of a frame that presents a credential.
func (s *Socket) Credentials(t testing.TB) Body {
	t.Helper()
	c := s.client
	if c.Bearer != "" {
		return Body{"token": c.Bearer}
	}
	s.mu.Lock()
	nonce := s.nonce
	s.mu.Unlock()
	access := c.Access()
	return Body{"token": access, "dpop": c.DeviceKey.Proof(t, identitytest.Claims{
		Method: "GET", URL: c.Server.URL + "/api/v1/gateway", Nonce: nonce, AccessToken: access, IssuedAt: c.Server.Clock.Now(),
	})}
}

// identification is the payload of identify; more is added or replaced.
func (s *Socket) identification(t testing.TB, more Body) Body {
	t.Helper()
	d := s.Credentials(t)
	d["protocol_version"] = 1
	d["client"] = Body{"name": "test", "version": "1.0.0", "platform": "linux"}
	for k, v := range more {
		d[k] = v
	}
	return d
}

// Identify begins a session and gives the answer.
func (s *Socket) Identify(t testing.TB, more Body) Frame {
	t.Helper()
	f := s.Answer(t, s.Send(t, "identify", s.identification(t, more)))
	if f.Op != ws.OpReady {
		t.Fatalf("identify was answered with %s: %v", f.Op, f.D)
	}
	return f
}

// Connect dials and identifies at the head of the log.
func (c *Client) Connect(t testing.TB) *Socket {
	t.Helper()
	s := c.Dial(t)
	s.Identify(t, nil)
	return s
}

// Close ends the connection.
func (s *Socket) Close() {
	_ = s.conn.Close(websocket.StatusNormalClosure, "")
	s.stop()
	<-s.done
}

// Drop loses the connection without a farewell.
func (s *Socket) Drop() {
	_ = s.conn.CloseNow()
	s.stop()
	<-s.done
}

// Closed waits for the end of the connection and gives the close code.
func (s *Socket) Closed(t testing.TB) int {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(Patience):
		t.Fatalf("the connection does not end\nreceived: %s", s.summary())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var closed websocket.CloseError
	if !errors.As(s.ended, &closed) {
		t.Fatalf("the connection ended without a code: %v", s.ended)
	}
	return int(closed.Code)
}

// Ended reports whether the connection has ended.
func (s *Socket) Ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
