// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/agents"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/runs/domain"
)

const purpose = "invocation"

// claims are what an invocation token says. Adapters verify all of it before they work.
type claims struct {
	Issuer     string   `json:"iss"`
	Audience   ids.ID   `json:"aud"`
	Subject    ids.ID   `json:"sub"`
	IssuedAt   int64    `json:"iat"`
	NotBefore  int64    `json:"nbf"`
	ExpiresAt  int64    `json:"exp"`
	ID         ids.ID   `json:"jti"`
	InstanceID ids.ID   `json:"instance_id"`
	Purpose    string   `json:"purpose"`
	EventID    ids.ID   `json:"event_id"`
	RunID      ids.ID   `json:"run_id"`
	ThreadID   ids.ID   `json:"thread_id"`
	ChannelID  ids.ID   `json:"channel_id"`
	RootRunID  ids.ID   `json:"root_run_id"`
	Chain      []ids.ID `json:"chain"`
	Billing    string   `json:"billing_mode"`
	ToolClass  string   `json:"tool_class"`
	CostLimit  *string  `json:"run_cost_limit"`
	May        []string `json:"may"`
}

// sign makes the token for one delivery. event is zero for a renewal, which carries the run
// in its place.
func (s *Service) sign(ctx context.Context, r domain.Run, a agents.Agent, event ids.ID) (Token, error) {
	installation, err := s.installation(ctx)
	if err != nil {
		return Token{}, err
	}
	if event.IsZero() {
		event = r.ID
	}
	now := s.d.Clock.Now()
	expires := now.Add(s.config.TokenTTL).Truncate(time.Second)
	payload, err := json.Marshal(claims{
		Issuer: s.config.PublicURL, Audience: a.ID, Subject: r.TriggeredBy, IssuedAt: now.Unix(), NotBefore: now.Unix(), ExpiresAt: expires.Unix(),
		ID: ids.NewAt(now), InstanceID: installation, Purpose: purpose, EventID: event, RunID: r.ID, ThreadID: r.ThreadID, ChannelID: r.ChannelID,
		RootRunID: r.RootRunID, Chain: append([]ids.ID{}, r.Chain...), Billing: a.BillingMode, ToolClass: a.ToolClass, May: []string{"reply"},
	})
	if err != nil {
		return Token{}, fmt.Errorf("encode the claims: %w", err)
	}
	compact, err := s.d.Keys.Sign(ctx, instance.PurposeInvocation, payload)
	if err != nil {
		return Token{}, fmt.Errorf("sign the invocation token: %w", err)
	}
	return Token{Compact: compact, ExpiresAt: expires}, nil
}

func (s *Service) installation(ctx context.Context) (ids.ID, error) {
	if known := s.instanceID.Load(); known != nil {
		return *known, nil
	}
	info, err := s.d.Instance.Info(ctx)
	if err != nil {
		return ids.ID{}, fmt.Errorf("read the installation: %w", err)
	}
	s.instanceID.Store(&info.ID)
	return info.ID, nil
}

// VerifyInvocation implements identity.ActingForSource. It reads the run, because a token of
// a run that has ended is worth nothing whatever its time says.
func (s *Service) VerifyInvocation(ctx context.Context, agent ids.ID, token string) (actor.ActingFor, error) {
	payload, err := s.d.Keys.Verify(ctx, instance.PurposeInvocation, token)
	if err != nil {
		return actor.ActingFor{}, err
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return actor.ActingFor{}, errs.New(errs.CodeUnauthenticated, "The invocation token cannot be read.").WithCause(err)
	}
	installation, err := s.installation(ctx)
	if err != nil {
		return actor.ActingFor{}, err
	}
	now := s.d.Clock.Now()
	expires := time.Unix(c.ExpiresAt, 0).UTC()
	switch {
	case c.Purpose != purpose, c.Audience != agent, c.InstanceID != installation, c.RunID.IsZero():
		return actor.ActingFor{}, errs.New(errs.CodeUnauthenticated, "The invocation token is not for this caller.")
	case !now.Before(expires):
		return actor.ActingFor{}, errs.New(errs.CodeTokenExpired, "The invocation token has expired; renew it.")
	}
	r, err := s.d.Runs.ByID(ctx, c.RunID)
	switch {
	case errs.Is(err, errs.CodeNotFound):
		return actor.ActingFor{}, errs.Forbidden("invocation_token_invalid")
	case err != nil:
		return actor.ActingFor{}, fmt.Errorf("read the run of the token: %w", err)
	case r.AgentID != agent, !r.State.Active() && !s.answered(r, now) && !r.AcceptsLate(s.config.LateFinishWindow, now):
		return actor.ActingFor{}, errs.Forbidden("invocation_token_invalid")
	}
	return actor.ActingFor{
		PrincipalID: r.TriggeredBy, RunID: r.ID, ThreadID: r.ThreadID, ChannelID: r.ChannelID, ExpiresAt: expires, Ended: !r.State.Active(),
	}, nil
}

// answered reports whether the run has just ended with an answer: the agent whose request was
// answered but whose answer was lost may ask again for as long as a late answer is taken.
func (s *Service) answered(r domain.Run, now time.Time) bool {
	return !r.OutputMessageID.IsZero() && r.EndedAt != nil && !now.After(r.EndedAt.Add(s.config.LateFinishWindow))
}
