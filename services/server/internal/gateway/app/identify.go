// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

type identifyData struct {
	Token           string `json:"token"`
	DPoP            string `json:"dpop"`
	ProtocolVersion int    `json:"protocol_version"`
	Client          struct {
		Name     string `json:"name"`
		Version  string `json:"version"`
		Platform string `json:"platform"`
	} `json:"client"`
	Cursor    *int64      `json:"cursor"`
	SyncEpoch ids.ID      `json:"sync_epoch"`
	Focus     *focusState `json:"focus"`
}

type resumeData struct {
	SessionID ids.ID `json:"session_id"`
	Token     string `json:"token"`
	DPoP      string `json:"dpop"`
	Cursor    int64  `json:"cursor"`
	SyncEpoch ids.ID `json:"sync_epoch"`
}

// identify begins a new session on the connection. Nothing of another connection is touched
// before all checks have passed.
func (*opRunner) identify(ctx context.Context, c *conn, f domain.Frame) error {
	var d identifyData
	if c.isIdentified() {
		return domain.Close{Code: domain.CloseIdentified}
	}
	if decode(f, &d) != nil {
		return domain.Close{Code: domain.CloseMalformed, Detail: "identify"}
	}
	if d.ProtocolVersion != protocolVersion {
		return domain.Close{Code: domain.CloseProtocolVersion}
	}
	who, ctx, err := c.authenticate(ctx, f, d.Token, d.DPoP)
	if err != nil || who.Kind == "" {
		return err
	}
	if who.Kind == actor.KindAgent {
		return c.open(ctx, f, who, ids.New(), nil, d.SyncEpoch, nil)
	}
	return c.open(ctx, f, who, ids.New(), d.Cursor, d.SyncEpoch, d.Focus)
}

// resume takes up a session whose connection was lost. What was missed comes from the log.
func (*opRunner) resume(ctx context.Context, c *conn, f domain.Frame) error {
	var d resumeData
	if c.isIdentified() {
		return domain.Close{Code: domain.CloseIdentified}
	}
	if decode(f, &d) != nil {
		return domain.Close{Code: domain.CloseMalformed, Detail: "resume"}
	}
	who, ctx, err := c.authenticate(ctx, f, d.Token, d.DPoP)
	if err != nil || who.Kind == "" {
		return err
	}
	old, ok := c.gateway.sessions.take(d.SessionID, func(s session) bool {
		return s.principal == who.ID && s.device == who.DeviceID && s.login == who.SessionID && s.token == who.TokenID
	})
	if !ok {
		return domain.Close{Code: domain.CloseSessionUnknown}
	}
	return c.open(ctx, f, who, old.id, &d.Cursor, d.SyncEpoch, &old.focus)
}

// authenticate verifies the credential of a new connection. A client that must use a fresh
// nonce is told so and may try once more; then the actor is empty and the error nil.
func (c *conn) authenticate(ctx context.Context, f domain.Frame, token, proof string) (actor.Actor, context.Context, error) {
	g := c.gateway
	ready, err := g.deps.Ready(ctx)
	if err != nil {
		return actor.Actor{}, ctx, domain.Close{Code: domain.CloseNotAvailable}
	}
	if !ready {
		return actor.Actor{}, ctx, domain.Close{Code: domain.CloseNotAvailable, Detail: "setup"}
	}
	who, err := g.deps.Authenticator.Authenticate(ctx, credentials(token, proof, g.deps.Instance.URL))
	if err != nil {
		fault := errs.As(err)
		switch {
		case fault.Code == errs.CodeUseDPoPNonce && c.identifying == 0:
			c.identifying++
			c.sendError(f.ID, f.Op, fault)
			return actor.Actor{}, authorizeNothing(ctx), nil
		case fault.Kind() == errs.KindUnavailable:
			return actor.Actor{}, ctx, domain.Close{Code: domain.CloseNotAvailable}
		default:
			return actor.Actor{}, ctx, domain.Close{Code: domain.CloseAuthentication, Detail: string(fault.Code)}
		}
	}
	ctx = actor.With(ctx, who)
	if ok, _ := g.deps.Limiter.Take("rl.gateway_connect_principal", who.ID.String()); !ok {
		return actor.Actor{}, ctx, domain.Close{Code: domain.CloseRateLimited}
	}
	if err := g.deps.Authorizer.Authorize(ctx, authorize.ActionGatewayConnect, authorize.Self(who.ID)); err != nil {
		return actor.Actor{}, ctx, domain.Close{Code: domain.CloseForbidden, Detail: errs.As(err).Reason}
	}
	return who, ctx, nil
}

// authorizeNothing marks an op as proven that did nothing but refuse.
func authorizeNothing(ctx context.Context) context.Context {
	authorize.Prove(ctx)
	return ctx
}

func credentials(token, proof, url string) actor.Credentials {
	scheme := "Bearer "
	if proof != "" {
		scheme = "DPoP "
	}
	return actor.Credentials{Authorization: scheme + token, Proof: proof, Method: "GET", URL: url}
}

// open makes the connection a receiver and answers ready or resumed.
func (c *conn) open(ctx context.Context, f domain.Frame, who actor.Actor, sessionID ids.ID, cursor *int64, epoch ids.ID, focus *focusState) error {
	g := c.gateway
	if cursor != nil {
		if err := c.checkCursor(ctx, epoch, *cursor); err != nil {
			fault := errs.As(err)
			if fault.Code != errs.CodeResyncRequired {
				return domain.Close{Code: domain.CloseInternal}
			}
			c.sendError(f.ID, f.Op, fault)
			return domain.Close{Code: domain.CloseCursor, Detail: fault.Reason}
		}
	}
	if who.DeviceID.IsZero() && who.Kind != actor.KindAgent && g.hub.count(who.ID) >= g.config.MaxPerPrincipal {
		return domain.Close{Code: domain.CloseRateLimited, Detail: "connections"}
	}
	handle, name, err := g.deps.Principals.Name(ctx, who.ID)
	if err != nil {
		return fmt.Errorf("name the principal: %w", err)
	}
	if err := g.deps.Delivery.Fill(ctx, who.ID); err != nil {
		return fmt.Errorf("fill the rights of the principal: %w", err)
	}
	if err := c.bind(ctx, who, sessionID); err != nil {
		g.deps.Delivery.Release(who.ID)
		return err
	}
	head := c.register(who, cursor)
	answer := c.readyAnswer(who, head, cursor)
	if f.Op == "resume" {
		answer["focus"] = focus.answer()
		c.send("resumed", f.ID, answer)
	} else {
		answer["principal"] = map[string]any{"id": who.ID, "kind": who.Kind, "handle": handle, "display_name": name}
		c.send("ready", f.ID, answer)
	}
	c.settle(who)
	if focus != nil && len(focus.ThreadIDs) > 0 {
		// A focus that may not be had any more is dropped; the client sets a new one.
		_ = c.setFocus(ctx, *focus)
	}
	return nil
}

// checkCursor waits a moment for a position that another process has shown the client.
func (c *conn) checkCursor(ctx context.Context, epoch ids.ID, cursor int64) error {
	const patience, step = 2 * time.Second, 20 * time.Millisecond
	g := c.gateway
	for waited := time.Duration(0); cursor > g.hub.position() && waited < patience; waited += step {
		err := g.deps.CatchUp.Check(ctx, epoch, cursor, cursor)
		if err != nil || !pause(ctx, g.deps.Clock, step) {
			break
		}
	}
	return g.deps.CatchUp.Check(ctx, epoch, cursor, g.hub.position())
}

// bind ties the connection to its device, or an agent to its place in the log.
func (c *conn) bind(ctx context.Context, who actor.Actor, sessionID ids.ID) error {
	c.principal, c.device, c.login, c.token, c.session = who.ID, who.DeviceID, who.SessionID, who.TokenID, sessionID
	if who.Kind != actor.KindAgent {
		return nil
	}
	c.device = who.ID
	acked, err := c.gateway.deps.Consumers.TakeOver(ctx, who.ID, sessionID, c.gateway.hub.position())
	if err != nil {
		return fmt.Errorf("take over the place of the agent: %w", err)
	}
	c.consumer = newConsumer(c, acked)
	return nil
}

// register begins the reception. Until the answer is in the queue and, with a cursor, what
// was missed has been sent, live events wait.
func (c *conn) register(who actor.Actor, cursor *int64) int64 {
	g := c.gateway
	now := g.deps.Clock.Now()
	if c.consumer == nil {
		c.mu.Lock()
		c.catchUp = &catchUpState{silent: cursor == nil, since: now}
		c.mu.Unlock()
	}
	head, older := g.hub.register(c)
	if older != nil {
		code := domain.CloseDeviceElsewhere
		if who.Kind == actor.KindAgent {
			code = domain.CloseConsumerTaken
		}
		older.closeWith(domain.Close{Code: code})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actor, c.lastBeat, c.checkedAt = who, now, now
	if c.catchUp != nil {
		c.catchUp.cursor, c.catchUp.target = head, head
		if cursor != nil {
			c.catchUp.cursor = *cursor
		}
	}
	return head
}

// settle opens the connection for everything else, once its answer is in the queue.
func (c *conn) settle(who actor.Actor) {
	c.mu.Lock()
	c.identified = true
	c.mu.Unlock()
	c.gateway.settled(c.ip)
	c.signal()
	if c.consumer != nil {
		c.consumer.start(who)
	}
}

func (c *conn) readyAnswer(who actor.Actor, head int64, cursor *int64) map[string]any {
	cfg := c.gateway.config
	start := head
	var catchUp any
	switch {
	case c.consumer != nil:
		start = c.consumer.position()
	case cursor != nil:
		start = *cursor
		if *cursor < head {
			catchUp = map[string]int64{"from_seq": *cursor + 1, "to_seq": head}
		}
	}
	device := who.DeviceID
	return map[string]any{
		"session_id": c.session, "device_id": idOrNil(device), "sync_epoch": c.gateway.deps.Instance.SyncEpoch, "head_seq": head,
		"cursor": start, "catchup": catchUp, "permission_version": c.permissionVersion(), "credentials_expire_at": timeOrNil(who.CredentialExpiresAt),
		"resume_window_ms": cfg.ResumeWindow.Milliseconds(),
		"limits":           map[string]any{"focus_threads": maxFocus, "op_rate": cfg.OpsPerMinute, "op_burst": cfg.OpsBurst},
	}
}

// permissionVersion is that of the rights the connection begins with.
func (c *conn) permissionVersion() int64 {
	scope, _ := c.gateway.deps.Delivery.Visible(c.principal)
	return scope.PermissionVersion
}

func timeOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(timeFormat)
}
