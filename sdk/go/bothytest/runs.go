// SPDX-License-Identifier: Apache-2.0

package bothytest

import (
	"encoding/json"
	"net/http"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

// Thread is the ID of a new thread.
func (*Server) Thread() string { return bothy.NewID() }

// Invoke gives the agent an order in the thread and returns the run.
func (s *Server) Invoke(threadID, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UTC()
	message := bothy.NewID()
	r := &Run{EventID: bothy.NewID(), Text: text}
	r.ID, r.AgentID, r.ThreadID, r.ChannelID, r.State = bothy.NewID(), s.AgentID, threadID, s.ChannelID, api.RunStateQueued
	r.RootRunID, r.TriggeredBy, r.TriggerMessageID, r.QueuedAt = r.ID, s.PersonID, &message, now
	r.TriggerKind, r.DocVersion = api.RunSummaryTriggerKindMessage, 1
	s.runs[r.ID] = r
	s.order = append(s.order, r.ID)
	s.append(entry{agent: true, envelope: api.EventEnvelope{
		EventID: r.EventID, Type: "agent.invocation", OccurredAt: now, Actor: api.EventActor{Kind: api.ActorKindPerson, ID: &s.PersonID}, Personal: true,
		Data: encode(map[string]string{"run_id": r.ID}),
	}})
	return r.ID
}

// Followup gives a further message to the run and returns the follow-up.
func (s *Server) Followup(runID, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, now := bothy.NewID(), time.Now().UTC()
	s.append(entry{agent: true, envelope: api.EventEnvelope{
		EventID: bothy.NewID(), Type: "agent.followup", OccurredAt: now, Actor: api.EventActor{Kind: api.ActorKindPerson, ID: &s.PersonID}, Personal: true,
		Data: encode(map[string]string{"run_id": runID, "followup_id": id, "text": text}),
	}})
	return id
}

// Cancel asks the run to stop.
func (s *Server) Cancel(runID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, now := s.runs[runID], time.Now().UTC()
	r.CancelRequestedAt = &now
	s.append(entry{agent: true, envelope: api.EventEnvelope{
		EventID: bothy.NewID(), Type: "run.cancel_requested", OccurredAt: now, Actor: api.EventActor{Kind: api.ActorKindPerson, ID: &s.PersonID}, Personal: true,
		Data: encode(api.RunCancelRequestedData{RunID: runID, RequestedBy: &s.PersonID, DeadlineAt: now.Add(30 * time.Second)}),
	}})
}

// EndRun ends the run from the server's side, as after a missed deadline.
func (s *Server) EndRun(runID string, state api.RunState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[runID].State = state
	s.notify()
}

// prepare fills an event for an agent at delivery. The caller holds the lock.
func (s *Server) prepare(e api.EventEnvelope) api.EventEnvelope {
	var stored struct {
		RunID      string `json:"run_id"`
		FollowupID string `json:"followup_id"`
		Text       string `json:"text"`
	}
	if json.Unmarshal(e.Data, &stored) != nil || stored.RunID == "" {
		return e
	}
	r := s.runs[stored.RunID]
	token, expires := s.invocationToken(r, e.EventID)
	message := api.InvocationMessage{
		ID: bothy.NewID(), ThreadSeq: 1, Author: api.MessageAuthor{Kind: api.AuthorKindPerson, ID: &s.PersonID}, Content: r.Text,
		Attachments: []any{}, CreatedAt: r.QueuedAt, Trust: api.TrustOrder,
	}
	switch e.Type {
	case "agent.invocation":
		now := time.Now().UTC()
		again := r.DeliveredAt != nil
		if !again {
			r.DeliveredAt = &now
		}
		e.Data = encode(api.AgentInvocationData{
			Run: r.summary(), Message: &message, Thread: api.InvocationThread{ID: r.ThreadID, Kind: api.ThreadKindMain},
			Channel: api.InvocationChannel{ID: r.ChannelID, Kind: api.ChannelKindText}, Session: json.RawMessage("null"),
			Followups: []api.InvocationFollowup{}, Redelivery: again, Token: token, ExpiresAt: expires,
		})
	case "agent.followup":
		message.Content = stored.Text
		e.Data = encode(api.AgentFollowupData{
			RunID: r.ID, FollowupID: &stored.FollowupID, MessageID: message.ID, Message: message, Trust: api.TrustOrder, Token: token, ExpiresAt: expires,
		})
	}
	return e
}

func (r *Run) summary() api.RunSummary {
	var out api.RunSummary
	if err := json.Unmarshal(encode(r.Run), &out); err != nil {
		panic(err)
	}
	return out
}

func (s *Server) invocationToken(r *Run, eventID string) (string, time.Time) {
	now := time.Now()
	expires := now.Add(s.TokenLife)
	claims := map[string]any{
		"iss": s.http.URL, "aud": s.AgentID, "sub": s.PersonID, "iat": now.Unix(), "nbf": now.Unix(), "exp": expires.Unix(), "jti": bothy.NewID(),
		"instance_id": s.InstanceID, "purpose": "invocation", "event_id": eventID, "run_id": r.ID, "thread_id": r.ThreadID, "channel_id": r.ChannelID,
		"root_run_id": r.ID, "chain": []string{}, "billing_mode": "local", "tool_class": "chat", "may": []string{"reply"},
	}
	if s.Claims != nil {
		s.Claims(claims)
	}
	return s.Sign(map[string]any{"alg": "ES256", "typ": "invocation+jwt", "kid": "test"}, claims), expires
}

// run finds the run of a request and checks the invocation token where it is needed.
func (s *Server) run(r *http.Request, needsToken bool) (*Run, *api.Problem) {
	run := s.runs[r.PathValue("run")]
	if run == nil {
		return nil, problem(http.StatusNotFound, api.ErrorCodeNotFound, "")
	}
	if needsToken && r.Header.Get("Invocation-Token") == "" {
		s.broken("%s without an invocation token", r.URL.Path)
		return nil, problem(http.StatusForbidden, api.ErrorCodeForbidden, "invocation_token_required")
	}
	return run, nil
}

func ended(r *Run) bool {
	return r.State == api.RunStateCompleted || r.State == api.RunStateFailed || r.State == api.RunStateCancelled
}

func (s *Server) getRun(r *http.Request, _ []byte) (int, any) {
	run, p := s.run(r, false)
	if p != nil {
		return p.Status, p
	}
	return http.StatusOK, run.Run
}

func (s *Server) runContext(r *http.Request, _ []byte) (int, any) {
	if _, p := s.run(r, true); p != nil {
		return p.Status, p
	}
	return http.StatusOK, api.RunContext{Messages: []api.ContextMessage{}, Participants: []api.ContextParticipant{}, Files: []any{}, Language: "en"}
}

func (s *Server) startRun(r *http.Request, body []byte) (int, any) {
	run, p := s.run(r, true)
	if p != nil {
		return p.Status, p
	}
	var in api.StartRunRequest
	if err := strict(body, &in); err != nil {
		s.broken("startRun: %v", err)
		return http.StatusBadRequest, problem(http.StatusBadRequest, api.ErrorCodeValidationFailed, "")
	}
	switch {
	case ended(run):
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeConflict, "run_ended")
	case run.State != api.RunStateQueued:
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeAlreadyStarted, "")
	case run.CancelRequestedAt != nil:
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeConflict, "cancel_requested")
	}
	run.State = api.RunStateRunning
	run.Starts++
	run.DocVersion++
	run.agentVersion = run.DocVersion
	return http.StatusOK, api.RunStarted{Run: run.Run, Followups: []api.RunFollowup{}}
}

func (s *Server) renewToken(r *http.Request, _ []byte) (int, any) {
	run, p := s.run(r, false)
	switch {
	case p != nil:
		return p.Status, p
	case ended(run):
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeConflict, "run_ended")
	}
	token, expires := s.invocationToken(run, run.EventID)
	return http.StatusOK, api.RunToken{Token: token, ExpiresAt: expires}
}

func (s *Server) updateRun(r *http.Request, body []byte) (int, any) {
	run, p := s.run(r, true)
	if p != nil {
		return p.Status, p
	}
	var in api.UpdateRunRequest
	if err := strict(body, &in); err != nil {
		s.broken("updateRun: %v", err)
		return http.StatusBadRequest, problem(http.StatusBadRequest, api.ErrorCodeValidationFailed, "")
	}
	switch {
	case ended(run):
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeConflict, "run_ended")
	case run.State == api.RunStateQueued:
		s.broken("update of a run that was not started")
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeConflict, "not_started")
	}
	result := func() api.RunUpdateResult {
		return api.RunUpdateResult{DocVersion: run.DocVersion, State: run.State, OutputLength: run.OutputLength, CancelRequested: run.CancelRequestedAt != nil}
	}
	if in.BaseVersion < run.agentVersion || in.BaseVersion > run.DocVersion {
		return http.StatusPreconditionFailed, conflict(result())
	}
	text := []rune(run.Output.Text)
	for _, a := range in.Append {
		switch n := []rune(a.Text); {
		case a.Target != "output":
		case int(a.Offset) == len(text):
			text = append(text, n...)
		case int(a.Offset)+len(n) <= len(text) && string(text[a.Offset:int(a.Offset)+len(n)]) == a.Text:
		default:
			return http.StatusPreconditionFailed, conflict(result())
		}
	}
	run.Output.Text, run.Output.Length, run.OutputLength = string(text), len(text), len(text)
	if in.Patch != nil && in.Patch.StatusLine != nil {
		run.StatusLine = *in.Patch.StatusLine
	}
	run.Consumed = append(run.Consumed, in.Consumed...)
	run.DocVersion++
	run.agentVersion = run.DocVersion
	run.Updates++
	return http.StatusOK, result()
}

func conflict(now api.RunUpdateResult) *api.Problem {
	p := problem(http.StatusPreconditionFailed, api.ErrorCodeVersionConflict, "")
	p.Current = map[string]any{"doc_version": now.DocVersion, "state": now.State, "output_length": now.OutputLength}
	return p
}

func (s *Server) finishRun(r *http.Request, body []byte) (int, any) {
	var in api.FinishRunRequest
	if err := strict(body, &in); err != nil {
		s.broken("finishRun: %v", err)
		return http.StatusBadRequest, problem(http.StatusBadRequest, api.ErrorCodeValidationFailed, "")
	}
	run, p := s.run(r, in.State == api.FinishRunRequestStateCompleted || in.Output != nil || in.Patch != nil)
	switch {
	case p != nil:
		return p.Status, p
	case ended(run):
		return http.StatusConflict, problem(http.StatusConflict, api.ErrorCodeConflict, "run_ended")
	case run.State == api.RunStateQueued && in.State == api.FinishRunRequestStateCompleted:
		s.broken("completed without a start")
	}
	run.State = api.RunState(in.State)
	run.Finishes++
	if in.EndReason != nil {
		reason := string(*in.EndReason)
		run.EndReason = &reason
	}
	if in.Error != nil {
		run.ErrorCode, run.ErrorMessage = &in.Error.Code, in.Error.Message
	}
	if in.State == api.FinishRunRequestStateCompleted {
		run.Answer = run.Output.Text
	}
	run.DocVersion++
	return http.StatusOK, run.Run
}
