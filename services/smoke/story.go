// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/OWNER/bothy/sdk/go/api"
)

// story is what the steps share.
type story struct {
	in         *instance
	code       string
	owner, bob *person
	space      *api.Space
	channel    *api.Channel
	thread     string
	grant      *api.GrantCreated
	agent      *api.AgentCreated
	adapter    *process
	message    *api.MessageWritten
}

func (s *story) steps() []step {
	return []step{
		{"the database is made and brought up to date", s.migrate, true},
		{"the first owner gets an enrollment code", s.bootstrap, true},
		{"the server starts", s.in.serve, true},
		{"the owner redeems the code and follows the gateway", s.enrolOwner, true},
		{"a code works once", s.codeIsUsed, false},
		{"a second person joins with a code", s.enrolBob, true},
		{"the owner makes a space and a channel", s.makeChannel, true},
		{"a grant reaches the other while connected", s.giveAccess, true},
		{"a group opens a space to its members, and only to them", s.group, false},
		{"a grant with an end says when", s.expiringGrant, false},
		{"a person proves once more who she is", s.stepUp, false},
		{"a message reaches the other over the gateway", s.talk, true},
		{"a repeated message is one message", s.repeat, false},
		{"the other has it unread, and reads it", s.readStates, false},
		{"an edit reaches the other", s.edit, false},
		{"a change of an old version is refused", s.staleEdit, false},
		{"a deletion reaches the other", s.remove, false},
		{"a side thread is started", s.sideThread, false},
		{"a session is refreshed", s.refresh, false},
		{"a wrong password is refused", s.wrongPassword, false},
		{"an agent is made and answers in the channel", s.makeAgent, true},
		{"a personal agent works for its holder alone", s.personal, false},
		{"the adapter is set up and checks", s.setUpAdapter, true},
		{"the adapter starts and the agent is online", s.startAdapter, true},
		{"a mention starts a run that is watched live and answers", s.mention, false},
		{"a message that mentions nobody starts nothing", s.quiet, false},
		{"a run that fails says so", s.fail, false},
		{"a follow-up reaches the run at work", s.followUp, false},
		{"a sleeping run is cancelled", s.cancel, false},
		{"a killed adapter leaves no run without an end", s.killAdapter, false},
		{"the server restarts and everybody goes on", s.restart, false},
		{"the agent goes on after the restart", s.mentionAgain, false},
		{"the audit log verifies on the server and away from it", s.audit, false},
		{"a right that is taken away ends access while connected", s.takeAway, false},
		{"a revoked token ends the adapter", s.revoke, false},
		{"a session that is ended closes its connection", s.endSession, false},
		{"the server stops in order", s.stop, false},
	}
}

// close ends whatever is left.
func (s *story) close() {
	for _, p := range []*person{s.owner, s.bob} {
		if p != nil && p.stop != nil {
			p.stop()
		}
	}
	s.adapter.kill()
	if s.in.server != nil {
		const patience = 20 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := s.in.server.stop(ctx); err != nil {
			s.in.server.kill()
		}
	}
}
