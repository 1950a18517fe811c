// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

const (
	protocolVersion = 1
	subprotocol     = "bothy.v1"
	// readLimit bounds one frame of the server: a page of missed events is the largest.
	readLimit = 32 << 20
	// queueLength bounds the frames that wait for the program; then the server's own queue fills.
	queueLength = 1024
)

// frame is one message in either direction.
type frame struct {
	Op string          `json:"op"`
	ID string          `json:"id,omitempty"`
	D  json.RawMessage `json:"d,omitempty"`
}

// connection is one WebSocket, from the dial to its end.
type connection struct {
	link  *Link
	ws    *websocket.Conn
	hello api.Hello
	focus *api.FocusTarget // what identify said
	beat  chan struct{}    // asks for a heartbeat now
	acked chan struct{}    // an answer to a heartbeat came

	mu         sync.Mutex
	retryAfter time.Duration
}

// connect runs one connection to its end.
func (l *Link) connect(ctx context.Context, how reaction) ending {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ws, end := l.dial(ctx)
	if ws == nil {
		return end
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(readLimit)
	c := &connection{link: l, ws: ws, beat: make(chan struct{}, 1), acked: make(chan struct{}, 1)}
	ready, err := c.open(ctx, how)
	if err != nil {
		return c.ended(err, 0)
	}
	began := time.Now()
	l.mu.Lock()
	l.current = c
	focus := l.focus
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.current = nil
		l.mu.Unlock()
	}()
	if focus != nil && focus != c.focus {
		if err := c.write(ctx, "focus", "", focus); err != nil {
			return c.ended(err, time.Since(began))
		}
	}
	if l.cfg.Connected != nil {
		l.cfg.Connected(ready)
	}
	err = c.serve(ctx, cancel)
	return c.ended(err, time.Since(began))
}

func (l *Link) dial(ctx context.Context) (*websocket.Conn, ending) {
	ws, res, err := websocket.Dial(ctx, l.cfg.Client.GatewayURL(), &websocket.DialOptions{ //nolint:bodyclose // The library closes it.
		HTTPClient: l.cfg.Client.HTTPClient(), Subprotocols: []string{subprotocol},
	})
	if err == nil {
		return ws, ending{}
	}
	end := ending{err: fmt.Errorf("open the gateway: %w", err)}
	if res != nil {
		if seconds, convErr := strconv.Atoi(res.Header.Get("Retry-After")); convErr == nil && seconds > 0 {
			end.retryAfter = min(time.Duration(seconds)*time.Second, time.Hour)
		}
		if res.StatusCode == http.StatusNotFound {
			end.err = fmt.Errorf("open the gateway: no gateway at this address: %w", err)
		}
	}
	return nil, end
}

// open takes hello, identifies or resumes, and takes the answer.
func (c *connection) open(ctx context.Context, how reaction) (Connection, error) {
	const patience = 3
	deadline, cancel := context.WithTimeout(ctx, patience*c.link.cfg.Timing.Answer)
	defer cancel()
	f, err := c.read(deadline)
	if err != nil {
		return Connection{}, err
	}
	if f.Op != "hello" || json.Unmarshal(f.D, &c.hello) != nil || c.hello.ProtocolVersion != protocolVersion {
		return Connection{}, fmt.Errorf("first frame %q, protocol version %d: %w", f.Op, c.hello.ProtocolVersion, ErrProtocol)
	}
	if err := c.checkInstance(); err != nil {
		return Connection{}, err
	}
	nonce, renew := c.hello.DpopNonce, how.renew
	for attempt := 0; ; attempt++ {
		if err := c.introduce(deadline, how, nonce, renew); err != nil {
			return Connection{}, err
		}
		if f, err = c.read(deadline); err != nil {
			return Connection{}, err
		}
		if f.Op != "error" {
			return c.opened(ctx, f)
		}
		var fault api.ErrorFrame
		if err := json.Unmarshal(f.D, &fault); err != nil {
			return Connection{}, fmt.Errorf("error frame: %w", ErrProtocol)
		}
		c.note(fault)
		if fault.Code != api.ErrorCodeUseDpopNonce || fault.DpopNonce == nil || attempt > 0 {
			// The close frame that follows decides what to do.
			_, err := c.read(deadline)
			return Connection{}, err
		}
		nonce, renew = *fault.DpopNonce, false
	}
}

func (c *connection) checkInstance() error {
	l := c.link
	for _, want := range []string{l.cfg.InstanceID, l.position.InstanceID} {
		if want != "" && want != c.hello.InstanceID {
			return fmt.Errorf("instance %s instead of %s: %w", c.hello.InstanceID, want, ErrForeign)
		}
	}
	return nil
}

// introduce sends identify or resume.
func (c *connection) introduce(ctx context.Context, how reaction, nonce string, renew bool) error {
	l := c.link
	token, proof, err := l.cfg.Client.Credential().Identify(ctx, l.cfg.Client.PublicGatewayURL(), nonce, renew)
	if err != nil {
		return fmt.Errorf("prove who this is: %w", err)
	}
	l.mu.Lock()
	session, focus := l.session, l.focus
	l.mu.Unlock()
	known := l.position.SyncEpoch != ""
	if how.resume && session != "" && known {
		return c.write(ctx, "resume", "open", api.Resume{
			SessionID: session, Token: token, Dpop: optional(proof), Cursor: l.position.Cursor, SyncEpoch: l.position.SyncEpoch,
		})
	}
	c.focus = focus
	identify := api.Identify{
		Token: token, Dpop: optional(proof), ProtocolVersion: protocolVersion, Focus: focus,
		Client: api.IdentifyClient{Name: l.cfg.Program.Name, Version: l.cfg.Program.Version, Platform: platform()},
	}
	if known && !l.cfg.Consumer {
		identify.Cursor, identify.SyncEpoch = &l.position.Cursor, &l.position.SyncEpoch
	}
	return c.write(ctx, "identify", "open", identify)
}

// opened takes ready or resumed and brings the position in line.
func (c *connection) opened(ctx context.Context, f frame) (Connection, error) {
	l := c.link
	var ready api.Ready
	if (f.Op != "ready" && f.Op != "resumed") || json.Unmarshal(f.D, &ready) != nil {
		return Connection{}, fmt.Errorf("frame %q instead of ready: %w", f.Op, ErrProtocol)
	}
	out := Connection{
		SessionID: ready.SessionID, InstanceID: c.hello.InstanceID, SyncEpoch: ready.SyncEpoch, ServerVersion: c.hello.ServerVersion,
		HeadSeq: ready.HeadSeq, Cursor: ready.Cursor, Resumed: f.Op == "resumed", HeartbeatInterval: c.interval(),
	}
	p := l.position
	p.InstanceID = c.hello.InstanceID
	if !out.Resumed {
		out.Principal = &ready.Principal
		if p.PrincipalID != "" && p.PrincipalID != ready.Principal.ID {
			return Connection{}, fmt.Errorf("principal %s instead of %s: %w", ready.Principal.ID, p.PrincipalID, ErrForeign)
		}
		p.PrincipalID = ready.Principal.ID
	}
	if p.SyncEpoch != ready.SyncEpoch {
		p.SyncEpoch, p.Cursor = ready.SyncEpoch, ready.Cursor
	}
	if err := l.store(ctx, p); err != nil {
		return Connection{}, err
	}
	l.mu.Lock()
	l.session = ready.SessionID
	l.mu.Unlock()
	return out, nil
}

func (c *connection) interval() time.Duration {
	const least = 10 * time.Millisecond
	return max(time.Duration(c.hello.HeartbeatIntervalMs)*time.Millisecond, least)
}

// serve reads frames into a queue and works it off, beside a goroutine for heartbeats.
func (c *connection) serve(ctx context.Context, cancel context.CancelFunc) error {
	queue := make(chan frame, queueLength)
	closed, unanswered := make(chan error, 1), make(chan error, 1)
	var group sync.WaitGroup
	group.Go(func() { closed <- c.receive(ctx, queue) })
	group.Go(func() {
		if err := c.heartbeats(ctx); err != nil {
			unanswered <- err
		}
	})
	defer group.Wait()
	defer cancel()
	for {
		select {
		case f := <-queue:
			if err := c.take(ctx, f); err != nil {
				return lastWords(err, closed)
			}
		case err := <-unanswered:
			return lastWords(err, closed)
		case err := <-closed:
			return c.drain(ctx, queue, err)
		}
	}
}

// errSend means that a frame could not be sent, because the connection is ending.
var errSend = errors.New("not sent")

// lastWords prefers the close code of the server to the failed write that came of it.
func lastWords(err error, closed <-chan error) error {
	const patience = time.Second
	if !errors.Is(err, errSend) {
		return err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case end := <-closed:
		return end
	case <-timer.C:
		return err
	}
}

// drain handles what had arrived before the end, so that it need not come again.
func (c *connection) drain(ctx context.Context, queue <-chan frame, end error) error {
	for {
		select {
		case f := <-queue:
			if err := c.take(ctx, f); err != nil {
				var fault *storeError
				if errors.As(err, &fault) {
					return err
				}
				return end
			}
		default:
			return end
		}
	}
}

func (c *connection) receive(ctx context.Context, queue chan<- frame) error {
	for {
		f, err := c.read(ctx)
		if err != nil {
			return err
		}
		if f.Op == "heartbeat_ack" {
			select {
			case c.acked <- struct{}{}:
			default:
			}
		}
		select {
		case queue <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take handles one frame of the server. Unknown ops are skipped: a newer server may have more of them.
func (c *connection) take(ctx context.Context, f frame) error {
	l := c.link
	switch f.Op {
	case "dispatch":
		var e api.EventEnvelope
		if err := json.Unmarshal(f.D, &e); err != nil {
			return fmt.Errorf("dispatch: %w: %w", ErrProtocol, err)
		}
		return c.durable(ctx, e)
	case "catchup.page":
		var page api.CatchupPage
		if err := json.Unmarshal(f.D, &page); err != nil {
			return fmt.Errorf("catchup.page: %w: %w", ErrProtocol, err)
		}
		for _, e := range page.Events {
			if err := c.durable(ctx, e); err != nil {
				return err
			}
		}
		return l.advance(ctx, page.ThroughSeq)
	case "catchup.complete", "heartbeat_ack":
		var at struct {
			Cursor int64 `json:"cursor"`
		}
		if err := json.Unmarshal(f.D, &at); err != nil {
			return fmt.Errorf("%s: %w: %w", f.Op, ErrProtocol, err)
		}
		return l.advance(ctx, at.Cursor)
	case "ephemeral":
		var e api.EphemeralEnvelope
		if err := json.Unmarshal(f.D, &e); err != nil {
			return fmt.Errorf("ephemeral: %w: %w", ErrProtocol, err)
		}
		if l.cfg.Ephemeral != nil {
			l.cfg.Ephemeral(ctx, ephemeralEvent(e))
		}
	case "reauth_required":
		return c.reauthenticate(ctx, f)
	case "error":
		return c.failure(ctx, f)
	}
	return nil
}

// durable handles an event and tells the server that it is safe. A repeated event is acknowledged again, because
// the earlier word may have been lost.
func (c *connection) durable(ctx context.Context, e api.EventEnvelope) error {
	if err := c.link.handle(ctx, durableEvent(e)); err != nil {
		return err
	}
	if !c.link.cfg.Consumer {
		return nil
	}
	return c.write(ctx, "ack", "", api.Ack{Seq: e.Seq})
}

func (c *connection) reauthenticate(ctx context.Context, f frame) error {
	var d api.ReauthRequired
	if err := json.Unmarshal(f.D, &d); err != nil {
		return fmt.Errorf("reauth_required: %w: %w", ErrProtocol, err)
	}
	client := c.link.cfg.Client
	_, isToken := client.Credential().(bothy.APIToken)
	token, proof, err := client.Credential().Identify(ctx, client.PublicGatewayURL(), d.DpopNonce, !isToken)
	if err != nil {
		return fmt.Errorf("prove anew who this is: %w", err)
	}
	return c.write(ctx, "reauth", "", api.Reauth{Token: token, Dpop: optional(proof)})
}

func (c *connection) failure(ctx context.Context, f frame) error {
	var fault api.ErrorFrame
	if err := json.Unmarshal(f.D, &fault); err != nil {
		return fmt.Errorf("error: %w: %w", ErrProtocol, err)
	}
	c.note(fault)
	c.link.cfg.Log.WarnContext(ctx, "the gateway refused a frame", "op", fault.Op, "code", fault.Code, "message", fault.Message, "errors", fault.Errors)
	if c.link.cfg.Failed != nil {
		c.link.cfg.Failed(fault)
	}
	return nil
}

// note keeps how long the server asked to wait, for the close frame that may follow.
func (c *connection) note(fault api.ErrorFrame) {
	if fault.RetryAfterMs == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retryAfter = min(time.Duration(*fault.RetryAfterMs)*time.Millisecond, time.Hour)
}

// errNoAnswer means that a heartbeat was not answered in time.
var errNoAnswer = errors.New("heartbeat without an answer")

// heartbeats shows that this side lives, and notices when the other does not. An adapter reports at once, so that
// its agent is shown as present; others begin at a random part of the interval.
func (c *connection) heartbeats(ctx context.Context) error {
	first := mathrand.N(c.interval() + 1)
	if c.link.cfg.Heartbeat != nil {
		first = 0
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-c.beat:
			// Many changes in a row share a heartbeat.
			if bothy.Sleep(ctx, min(gather, c.interval())) != nil {
				return nil
			}
		}
		select {
		case <-c.beat:
		default:
		}
		if err := c.heartbeat(ctx); err != nil {
			return err
		}
		timer.Reset(c.interval())
	}
}

// gather is how long a change of the report waits for further ones.
const gather = time.Second

func (c *connection) heartbeat(ctx context.Context) error {
	select {
	case <-c.acked: // of an earlier heartbeat that was answered late
	default:
	}
	var d api.HeartbeatFrame
	if c.link.cfg.Heartbeat != nil {
		d.Agent = c.link.cfg.Heartbeat()
	}
	if err := c.write(ctx, "heartbeat", "", d); err != nil {
		return err
	}
	timer := time.NewTimer(c.link.cfg.Timing.Answer)
	defer timer.Stop()
	select {
	case <-c.acked:
		return nil
	case <-ctx.Done():
		return nil
	case <-timer.C:
		return errNoAnswer
	}
}

func (c *connection) beatSoon() {
	select {
	case c.beat <- struct{}{}:
	default:
	}
}

func (c *connection) read(ctx context.Context) (frame, error) {
	kind, text, err := c.ws.Read(ctx)
	if err != nil {
		return frame{}, err
	}
	var f frame
	if kind != websocket.MessageText || json.Unmarshal(text, &f) != nil || f.Op == "" {
		return frame{}, fmt.Errorf("no frame: %w", ErrProtocol)
	}
	return f, nil
}

func (c *connection) write(ctx context.Context, op, id string, d any) error {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("frame %s: %w", op, err)
	}
	text, err := json.Marshal(frame{Op: op, ID: id, D: body})
	if err != nil {
		return fmt.Errorf("frame %s: %w", op, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.link.cfg.Timing.Answer)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("send %s: %w: %w", op, errSend, err)
	}
	return nil
}

// ended describes the end of the connection.
func (c *connection) ended(err error, live time.Duration) ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := ending{err: err, live: live, retryAfter: c.retryAfter}
	var closed websocket.CloseError
	const private = 4000
	switch {
	case errors.As(err, &closed) && closed.Code >= private:
		end.code, end.reason = CloseCode(closed.Code), closed.Reason
	case errors.Is(err, errNoAnswer):
		end.code, end.reason = CodeHeartbeatMissed, "no answer"
	}
	return end
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
