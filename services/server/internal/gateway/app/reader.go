// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/reqmeta"
)

// protocolVersion is the version of the frames.
const protocolVersion = 1

// TimeFormat is how times are written in frames: UTC with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z"

// opTimeout bounds one op, as the request timeout bounds a request.
const opTimeout = 15 * time.Second

// op is one operation a client can ask for. It answers through the connection; a
// domain.Close as error ends it.
type op struct {
	action authorize.Action
	run    func(ctx context.Context, c *conn, f domain.Frame) error
	// before is set for ops that are allowed before the connection is identified.
	before bool
}

// ops is the closed list of what a client can send.
var ops = map[string]op{
	"identify":     {action: authorize.ActionGatewayConnect, run: (*opRunner)(nil).identify, before: true},
	"resume":       {action: authorize.ActionGatewayConnect, run: (*opRunner)(nil).resume, before: true},
	"heartbeat":    {action: authorize.ActionGatewayConnect, run: (*opRunner)(nil).heartbeat, before: true},
	"reauth":       {action: authorize.ActionGatewayConnect, run: (*opRunner)(nil).reauth},
	"focus":        {action: authorize.ActionGatewayFocus, run: (*opRunner)(nil).focus},
	"typing.start": {action: authorize.ActionTypingStart, run: (*opRunner)(nil).typingStart},
	"typing.stop":  {action: authorize.ActionTypingStart, run: (*opRunner)(nil).typingStop},
	"ack":          {action: authorize.ActionAgentEventsConsume, run: (*opRunner)(nil).ack},
	"run.update":   {action: authorize.ActionRunUpdate, run: (*opRunner)(nil).runUpdate},
}

// opRunner groups the ops; it has no state.
type opRunner struct{}

// Ops lists the ops of a client, for the check that each has its action.
func Ops() map[string]authorize.Action {
	out := map[string]authorize.Action{}
	for name, o := range ops {
		out[name] = o.action
	}
	return out
}

func (c *conn) hello(ctx context.Context) {
	g := c.gateway
	c.send("hello", "", map[string]any{
		"protocol_version": protocolVersion, "server_version": g.deps.Instance.ServerVersion, "instance_id": g.deps.Instance.ID,
		"sync_epoch": g.deps.Instance.SyncEpoch, "heartbeat_interval_ms": g.config.HeartbeatInterval.Milliseconds(),
		"identify_timeout_ms": g.config.IdentifyTimeout.Milliseconds(), "max_frame_bytes": g.config.MaxFrameBytes,
		"dpop_nonce": g.deps.Nonce(ctx), "server_time": g.deps.Clock.Now().Format(timeFormat),
	})
}

// readLoop runs ops strictly one after the other until the connection ends.
func (c *conn) readLoop(ctx context.Context) {
	for {
		text, err := c.transport.Read(ctx)
		if err == nil {
			err = c.handle(ctx, text)
		}
		var end domain.Close
		switch {
		case err == nil:
		case errors.As(err, &end):
			c.closeAfterQueue(end)
			// The peer may go on sending; it is not read any more, and the writer ends soon.
			<-ctx.Done()
			return
		default:
			return
		}
	}
}

func (c *conn) handle(ctx context.Context, text []byte) error {
	f, err := domain.ParseFrame(text, c.gateway.config.MaxDepth)
	if err != nil {
		return domain.Close{Code: domain.CloseMalformed}
	}
	o, known := ops[f.Op]
	if !known {
		return domain.Close{Code: domain.CloseUnknownOp}
	}
	if ended, err := c.limited(f); ended {
		return err
	}
	if !c.isIdentified() && !o.before {
		c.sendError(f.ID, f.Op, errs.New(errs.CodeUnauthenticated, "Identify first."))
		return nil
	}
	return c.perform(ctx, o, f)
}

// perform runs one op with its own check log. A success whose action nobody has checked is
// a fault of the server and ends the connection.
func (c *conn) perform(ctx context.Context, o op, f domain.Frame) error {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	correlation := ids.New().String()
	ctx = reqmeta.With(ctx, reqmeta.Meta{CorrelationID: correlation, ClientIP: c.ip})
	ctx, checks := authorize.WithCheckLog(ctx)
	ctx, _ = flush.WithMark(ctx)
	c.mu.Lock()
	who := c.actor
	c.mu.Unlock()
	ctx = actor.With(ctx, who)
	if prepare := c.gateway.deps.Request; prepare != nil {
		ctx = prepare(ctx)
	}

	err := o.run(ctx, c, f)
	observer := c.gateway.deps.Observer
	var end domain.Close
	switch {
	case errors.As(err, &end):
		observer.Op(f.Op, end.Code.Name())
		return end
	case err != nil:
		fault := errs.As(err)
		observer.Op(f.Op, string(fault.Code))
		if fault.Kind() == errs.KindInternal {
			c.gateway.deps.Log.ErrorContext(ctx, "op failed", "component", "gateway", "op", f.Op, "correlation_id", correlation, "error", err)
		}
		c.sendFault(f.ID, f.Op, fault, correlation)
		return nil
	case f.Op != "heartbeat" && !checks.Covers(o.action):
		c.gateway.deps.Log.ErrorContext(ctx, "op without a check", "component", "gateway", "op", f.Op, "reason", "authz_not_checked")
		observer.Op(f.Op, "authz_not_checked")
		return domain.Close{Code: domain.CloseInternal}
	default:
		observer.Op(f.Op, "")
		return nil
	}
}

func (c *conn) isIdentified() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identified
}

// refusals counts frames that were dropped for coming too fast.
type refusals struct {
	since time.Time
	count int
}

// maxRefusals within refusalWindow end a connection.
const (
	maxRefusals   = 20
	refusalWindow = time.Minute
)

// limited takes a token for the frame. Heartbeats have a bound of their own, so a client
// that floods can still show that it lives.
func (c *conn) limited(f domain.Frame) (bool, error) {
	var ok bool
	var after time.Duration
	now := c.gateway.deps.Clock.Now()
	if f.Op == "heartbeat" {
		ok, after = c.beats.take(now), time.Second
	} else {
		ok, after = c.gateway.deps.Limiter.Take("rl.gateway_op", c.limitKey())
	}
	if ok {
		return false, nil
	}
	if now.Sub(c.refused.since) > refusalWindow {
		c.refused = refusals{since: now}
	}
	c.refused.count++
	c.gateway.deps.Observer.Op(f.Op, string(errs.CodeRateLimited))
	if c.refused.count >= maxRefusals {
		return true, domain.Close{Code: domain.CloseRateLimited}
	}
	c.sendError(f.ID, f.Op, errs.New(errs.CodeRateLimited, "Too many frames. Wait before the next.").WithRetryAfter(after))
	return true, nil
}

// beats allows one heartbeat per second, and a few at once for a client that has just come
// back from sleep.
type beats struct {
	tokens float64
	at     time.Time
}

const maxBeats = 5

func (b *beats) take(now time.Time) bool {
	if b.at.IsZero() {
		b.tokens = maxBeats
	}
	b.tokens = min(maxBeats, b.tokens+now.Sub(b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// limitKey tells connections apart; a pointer would be reused. Before identify it is not the address either: the people
// of an office share one, and all of them come back at once after a restart. How many connections may be opened from an
// address is bounded elsewhere.
func (c *conn) limitKey() string {
	if c.isIdentified() {
		return c.session.String()
	}
	return c.newcomer.String()
}

func (c *conn) sendError(id, opName string, fault *errs.Error) {
	c.sendFault(id, opName, fault, ids.New().String())
}

func (c *conn) sendFault(id, opName string, fault *errs.Error, correlation string) {
	d := map[string]any{"op": opName, "code": fault.Code, "message": fault.Message, "correlation_id": correlation}
	if fault.Reason != "" {
		d["reason"] = fault.Reason
	}
	if fault.RetryAfter > 0 {
		d["retry_after_ms"] = fault.RetryAfter.Milliseconds()
	}
	if len(fault.Fields) > 0 {
		d["errors"] = fault.Fields
	}
	if nonce, ok := fault.Extensions["dpop_nonce"]; ok {
		d["dpop_nonce"] = nonce
	}
	c.send("error", id, d)
}

// decode reads the data of an op strictly.
func decode(f domain.Frame, v any) error {
	raw := f.D
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := domain.DecodeStrict(raw, v); err != nil {
		return errs.Invalid("/d", "invalid", "The data does not have the form of this op: "+err.Error())
	}
	return nil
}
