// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// heartbeat shows that the client lives. It is answered before the report of an agent is
// looked at, so that a fault in the report never costs the connection.
func (*opRunner) heartbeat(ctx context.Context, c *conn, f domain.Frame) error {
	var d struct {
		Cursor *int64          `json:"cursor"`
		Agent  json.RawMessage `json:"agent"`
	}
	if err := decode(f, &d); err != nil {
		return err
	}
	cfg := c.gateway.config
	through := int64(0)
	if c.isIdentified() {
		through = c.sentThrough()
	}
	c.mu.Lock()
	c.lastBeat = c.gateway.deps.Clock.Now()
	who := c.actor
	c.mu.Unlock()
	c.send("heartbeat_ack", f.ID, map[string]any{
		"server_time": c.gateway.deps.Clock.Now().Format(timeFormat), "interval_ms": cfg.HeartbeatInterval.Milliseconds(),
		"cursor": through, "credentials_expire_at": timeOrNil(who.CredentialExpiresAt),
	})
	if len(d.Agent) == 0 {
		return nil
	}
	if who.Kind != actor.KindAgent {
		return errs.Invalid("/d/agent", "not_allowed", "Only an agent reports its state.")
	}
	return c.gateway.deps.Presence.Heartbeat(ctx, who.ID, d.Agent)
}

// reauth replaces the credential of the connection by a newer one of the same login.
func (*opRunner) reauth(ctx context.Context, c *conn, f domain.Frame) error {
	var d struct {
		Token string `json:"token"`
		DPoP  string `json:"dpop"`
	}
	if err := decode(f, &d); err != nil {
		return err
	}
	g := c.gateway
	who, err := g.deps.Authenticator.Authenticate(ctx, credentials(d.Token, d.DPoP, g.deps.Instance.URL))
	if err != nil {
		fault := errs.As(err)
		if fault.Code == errs.CodeUseDPoPNonce || fault.Kind() == errs.KindUnavailable {
			return fault
		}
		return domain.Close{Code: domain.CloseCredentialsEnded, Detail: string(fault.Code)}
	}
	if who.ID != c.principal || who.SessionID != c.login || who.DeviceID != c.deviceOf(who) || who.TokenID != c.token {
		return domain.Close{Code: domain.CloseCredentialsEnded, Detail: "another_principal"}
	}
	if err := g.deps.Authorizer.Authorize(actor.With(ctx, who), authorize.ActionGatewayConnect, authorize.Self(who.ID)); err != nil {
		return domain.Close{Code: domain.CloseCredentialsEnded, Detail: errs.As(err).Reason}
	}
	c.mu.Lock()
	c.actor, c.reauthAsked, c.checkedAt = who, false, g.deps.Clock.Now()
	c.mu.Unlock()
	c.signal()
	return nil
}

// deviceOf is the device a credential must belong to; agents are bound by their own ID.
func (c *conn) deviceOf(who actor.Actor) ids.ID {
	if who.Kind == actor.KindAgent {
		return who.DeviceID
	}
	return c.device
}

// focus tells what the client looks at: it decides which signals it gets.
func (*opRunner) focus(ctx context.Context, c *conn, f domain.Frame) error {
	var d focusState
	if err := decode(f, &d); err != nil {
		return err
	}
	if len(d.ThreadIDs) > maxFocus {
		return errs.Invalid("/d/thread_ids", "too_many", fmt.Sprintf("At most %d threads.", maxFocus))
	}
	return c.setFocus(ctx, d)
}

// setFocus checks every thread before anything changes, and shows the running work of the
// threads that are new, which closes the gap between loading and listening.
func (c *conn) setFocus(ctx context.Context, d focusState) error {
	g := c.gateway
	if len(d.ThreadIDs) == 0 {
		// Looking at nothing needs no right to anything; the check is of the own account.
		if err := g.deps.Authorizer.Authorize(ctx, authorize.ActionGatewayFocus, authorize.Self(c.principal)); err != nil {
			return err
		}
	}
	for _, id := range d.ThreadIDs {
		t, err := g.deps.Threads.Info(ctx, id)
		if err != nil {
			return err
		}
		if err := g.deps.Authorizer.Authorize(ctx, authorize.ActionGatewayFocus, authorize.Thread(t.ID, t.ChannelID)); err != nil {
			return err
		}
	}
	had := map[ids.ID]bool{}
	for _, id := range c.focus.ThreadIDs {
		had[id] = true
	}
	c.focus = d
	g.hub.focus(c, d.ThreadIDs)
	for _, id := range d.ThreadIDs {
		if !had[id] {
			if err := g.sendThreadRuns(ctx, c, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// typingStart shows the others in a thread that somebody writes. Signals that come faster
// than half their lifetime add nothing and are dropped.
func (*opRunner) typingStart(ctx context.Context, c *conn, f domain.Frame) error {
	return c.showTyping(ctx, f, c.gateway.config.TypingTTL)
}

func (*opRunner) typingStop(ctx context.Context, c *conn, f domain.Frame) error {
	return c.showTyping(ctx, f, 0)
}

func (c *conn) showTyping(ctx context.Context, f domain.Frame, ttl time.Duration) error {
	var d struct {
		ThreadID ids.ID `json:"thread_id"`
	}
	if err := decode(f, &d); err != nil {
		return err
	}
	g := c.gateway
	if ok, _ := g.deps.Limiter.Take("rl.typing", c.principal.String()); !ok {
		authorize.Prove(ctx)
		return nil
	}
	t, err := g.deps.Threads.Info(ctx, d.ThreadID)
	if err != nil {
		return err
	}
	if err := g.deps.Authorizer.Authorize(ctx, authorize.ActionTypingStart, authorize.Thread(t.ID, t.ChannelID)); err != nil {
		return err
	}
	now := g.deps.Clock.Now()
	if ttl > 0 && now.Before(c.typing[t.ID].Add(ttl/2)) {
		return nil
	}
	c.noteTyping(t.ID, now, ttl)
	g.Publish(ctx, eventlog.Ephemeral{
		Type: "typing.started", Place: eventlog.Place{SpaceID: t.SpaceID, ChannelID: t.ChannelID, ThreadID: t.ID},
		Actor: eventlog.Actor{ID: c.principal, Kind: string(actor.From(ctx).Kind)}, OccurredAt: now, ExceptPrincipalID: c.principal,
		Payload: map[string]any{"thread_id": t.ID, "principal_id": c.principal, "expires_at": now.Add(ttl).Format(timeFormat)},
	})
	return nil
}

// noteTyping remembers when a signal was sent, for few threads: nobody types in many.
func (c *conn) noteTyping(thread ids.ID, now time.Time, ttl time.Duration) {
	const most = 16
	if ttl == 0 {
		delete(c.typing, thread)
		return
	}
	if len(c.typing) >= most {
		clear(c.typing)
	}
	c.typing[thread] = now
}

// ack notes how far an agent is safe.
func (*opRunner) ack(ctx context.Context, c *conn, f domain.Frame) error {
	var d struct {
		Seq int64 `json:"seq"`
	}
	if err := decode(f, &d); err != nil {
		return err
	}
	if err := c.gateway.deps.Authorizer.Authorize(ctx, authorize.ActionAgentEventsConsume, authorize.Self(c.principal)); err != nil {
		return err
	}
	if c.consumer == nil {
		return errs.Forbidden("subject_kind_not_allowed")
	}
	return c.consumer.acknowledge(d.Seq)
}

// runUpdate stores progress of a run.
func (*opRunner) runUpdate(ctx context.Context, c *conn, f domain.Frame) error {
	answer, err := c.gateway.deps.RunUpdates.Update(ctx, f.D)
	if err != nil {
		return err
	}
	c.push(frame{bytes: encodeFrame("run.update", f.ID, answer), durable: true})
	return nil
}
