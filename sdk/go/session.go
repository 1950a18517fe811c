// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// ErrSignedOut means that the session ended for good: only a new login helps.
var ErrSignedOut = errors.New("signed out")

// PendingError means that a device of the person, or an owner, has to admit this device. Compare the code there,
// then complete the login again with CompletePending.
type PendingError struct {
	api.DevicePending
}

// Error implements error.
func (e *PendingError) Error() string {
	return "this device waits for approval; code " + e.VerificationCode
}

// SessionState is what a program stores to go on with a session after a restart, beside the key of the device.
type SessionState struct {
	SessionID    string `json:"session_id"`
	DeviceID     string `json:"device_id"`
	PrincipalID  string `json:"principal_id"`
	RefreshToken string `json:"refresh_token"`
}

// Session is the login of a person on one device. It is a Credential: it refreshes its access token by itself, and
// many calls at once share one refresh.
type Session struct {
	client *Client // signs with proofs alone
	proofs *prover
	save   func(SessionState) error

	mu      sync.Mutex
	state   SessionState
	access  string
	renewAt time.Time
	ended   bool
}

// LoginWithCode redeems an enrollment code and sets the person's password.
func (c *Client) LoginWithCode(ctx context.Context, key *Key, device api.DeviceInfo, code, password string) (*Session, error) {
	return c.login(ctx, key, api.BeginLoginRequest{Driver: api.BeginLoginRequestDriverEnrollment, Code: &code, Device: device},
		api.CompleteLoginRequest{Credential: &api.NewCredential{Kind: api.NewCredentialKindPassword, Password: &password}})
}

// LoginWithPassword logs a person in by handle or verified e-mail. It returns a *PendingError when the device has
// to be admitted first.
func (c *Client) LoginWithPassword(ctx context.Context, key *Key, device api.DeviceInfo, login, password string) (*Session, error) {
	return c.login(ctx, key, api.BeginLoginRequest{Driver: api.BeginLoginRequestDriverLocal, Device: device},
		api.CompleteLoginRequest{Login: &login, Password: &password})
}

func (c *Client) login(ctx context.Context, key *Key, begin api.BeginLoginRequest, complete api.CompleteLoginRequest) (*Session, error) {
	proofs := &prover{key: key}
	anonymous := c.As(proofs)
	var flow api.LoginFlow
	if _, err := anonymous.do(ctx, call{method: http.MethodPost, path: "/auth/login", body: begin, out: &flow, once: true}); err != nil {
		return nil, fmt.Errorf("begin the login: %w", err)
	}
	return anonymous.completeLogin(ctx, proofs, flow.FlowID, complete)
}

// CompletePending asks whether a device that waits has been admitted. It returns a *PendingError as long as not.
func (c *Client) CompletePending(ctx context.Context, key *Key, pending *PendingError) (*Session, error) {
	proofs := &prover{key: key}
	return c.As(proofs).completeLogin(ctx, proofs, pending.FlowID, api.CompleteLoginRequest{})
}

func (c *Client) completeLogin(ctx context.Context, proofs *prover, flowID string, complete api.CompleteLoginRequest) (*Session, error) {
	var answer struct {
		api.LoginResult
		pendingMembers
	}
	status, err := c.do(ctx, call{method: http.MethodPost, path: "/auth/login/" + flowID + "/complete", body: complete, out: &answer, once: true})
	if err != nil {
		return nil, fmt.Errorf("complete the login: %w", err)
	}
	if status == http.StatusAccepted {
		return nil, &PendingError{api.DevicePending{
			DeviceID: answer.DeviceID, ExpiresAt: answer.ExpiresAt, FlowID: answer.FlowID, IntervalMs: answer.IntervalMs,
			Status: api.DevicePendingStatus(answer.Status), VerificationCode: answer.VerificationCode,
		}}
	}
	s := &Session{client: c, proofs: proofs}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.take(&answer.LoginResult)
}

// pendingMembers are those of DevicePending that LoginResult has not.
type pendingMembers struct {
	DeviceID         string    `json:"device_id"`
	ExpiresAt        time.Time `json:"expires_at"`
	FlowID           string    `json:"flow_id"`
	IntervalMs       int64     `json:"interval_ms"`
	VerificationCode string    `json:"verification_code"`
}

// ResumeSession goes on with a stored session. save hears every new state before it is used; a program that keeps
// the session must store it there, because a refresh token works once. It may be nil.
func (c *Client) ResumeSession(key *Key, state SessionState, save func(SessionState) error) *Session {
	proofs := &prover{key: key}
	return &Session{client: c.As(proofs), proofs: proofs, save: save, state: state}
}

// State is what to store of the session.
func (s *Session) State() SessionState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// OnChange sets who stores new states of the session.
func (s *Session) OnChange(save func(SessionState) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.save = save
}

// take keeps the tokens of an answer. The caller holds the lock.
func (s *Session) take(result *api.LoginResult) error {
	const share = 0.8
	s.access = result.AccessToken
	s.renewAt = time.Now().Add(time.Duration(float64(result.ExpiresInMs)*share) * time.Millisecond)
	s.state.RefreshToken = result.RefreshToken
	if result.Session.ID != "" {
		s.state.SessionID = result.Session.ID
	}
	if result.Device.ID != "" {
		s.state.DeviceID = result.Device.ID
	}
	if result.Principal != nil {
		s.state.PrincipalID = result.Principal.ID
	}
	if s.save == nil {
		return nil
	}
	if err := s.save(s.state); err != nil {
		return fmt.Errorf("store the session: %w", err)
	}
	return nil
}

// token is a valid access token. The lock is held over a refresh on purpose: calls that come meanwhile share it.
func (s *Session) token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return "", &finalError{ErrSignedOut}
	}
	if s.access != "" && time.Now().Before(s.renewAt) {
		return s.access, nil
	}
	if err := s.refresh(ctx); err != nil {
		return "", err
	}
	return s.access, nil
}

func (s *Session) refresh(ctx context.Context) error {
	var result api.LoginResult
	_, err := s.client.do(ctx, call{
		method: http.MethodPost, path: "/auth/token", out: &result,
		body: api.RefreshRequest{RefreshToken: s.state.RefreshToken},
	})
	var p *Problem
	switch {
	case err == nil:
		return s.take(&result)
	case errors.As(err, &p) && p.Code == api.ErrorCodeUnauthenticated:
		s.ended = true
		return &finalError{fmt.Errorf("%w: %w", ErrSignedOut, err)}
	}
	return &finalError{fmt.Errorf("refresh the session: %w", err)}
}

// Refresh exchanges the tokens now.
func (s *Session) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return ErrSignedOut
	}
	return s.refresh(ctx)
}

// Sign implements Credential.
func (s *Session) Sign(ctx context.Context, req *http.Request, publicURL string) error {
	token, err := s.token(ctx)
	if err != nil {
		return err
	}
	proof, err := s.proofs.key.proof(req.Method, publicURL, s.proofs.current(), token, time.Now())
	if err != nil {
		return &finalError{err}
	}
	req.Header.Set("Authorization", "DPoP "+token)
	req.Header.Set("DPoP", proof)
	return nil
}

// Answer implements Credential.
func (s *Session) Answer(header http.Header, p *Problem) bool {
	if s.proofs.Answer(header, p) {
		return true
	}
	if p == nil || p.Code != api.ErrorCodeTokenExpired {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewAt = time.Time{}
	return !s.ended
}

// Identify implements Credential.
func (s *Session) Identify(ctx context.Context, publicURL, nonce string, renew bool) (token, proof string, err error) {
	if renew {
		if err := s.Refresh(ctx); err != nil {
			return "", "", err
		}
	}
	if token, err = s.token(ctx); err != nil {
		return "", "", err
	}
	proof, err = s.proofs.key.proof(http.MethodGet, publicURL, nonce, token, time.Now())
	return token, proof, err
}

// StepUpWithPassword proves once more who the person is. Until the time it returns the session may do what answers
// step_up_required; access tokens from before end at once.
func (s *Session) StepUpWithPassword(ctx context.Context, password string) (until time.Time, err error) {
	signed := s.client.As(s)
	var flow api.StepUpFlow
	begin := api.BeginStepUpRequest{Method: api.NewCredentialKindPassword}
	if _, err := signed.do(ctx, call{method: http.MethodPost, path: "/auth/step-up", body: begin, out: &flow, once: true}); err != nil {
		return until, fmt.Errorf("begin the step-up: %w", err)
	}
	var result api.StepUpResult
	complete := api.CompleteStepUpRequest{Password: &password}
	if _, err := signed.do(ctx, call{method: http.MethodPost, path: "/auth/step-up/" + flow.FlowID + "/complete", body: complete, out: &result, once: true}); err != nil {
		return until, fmt.Errorf("complete the step-up: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return result.StepUpUntil, s.take(&api.LoginResult{
		AccessToken: result.AccessToken, ExpiresInMs: result.ExpiresInMs, RefreshToken: s.state.RefreshToken,
	})
}

// Logout ends the session on the server.
func (s *Session) Logout(ctx context.Context) error {
	_, err := s.client.As(s).do(ctx, call{method: http.MethodPost, path: "/auth/logout"})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return err
}
