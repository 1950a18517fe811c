// SPDX-License-Identifier: Apache-2.0

package bothy

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/OWNER/bothy/sdk/go/api"
)

// People, tokens, sessions.

// Self is the caller.
func (c *Client) Self(ctx context.Context) (*api.Self, error) {
	return get[api.Self](ctx, c, "/me", nil)
}

// CreateUser adds a person. With IssueCode the answer holds the enrollment code, shown once.
func (c *Client) CreateUser(ctx context.Context, in api.CreateUserRequest, options ...CallOption) (*api.UserCreated, error) {
	return send[api.UserCreated](ctx, c, http.MethodPost, "/users", in, options...)
}

// ListUsers lists people, for owners.
func (c *Client) ListUsers(ctx context.Context, page Page) (*api.UserListItemList, error) {
	return get[api.UserListItemList](ctx, c, "/users", page.query())
}

// IssueEnrollmentCode makes a new code for a person; earlier ones stop working.
func (c *Client) IssueEnrollmentCode(ctx context.Context, userID string, options ...CallOption) (*api.Enrollment, error) {
	return send[api.Enrollment](ctx, c, http.MethodPost, "/users/"+url.PathEscape(userID)+"/enrollment-code", nil, options...)
}

// Principal is one person, agent or app.
func (c *Client) Principal(ctx context.Context, id string) (*api.DirectoryEntry, error) {
	return get[api.DirectoryEntry](ctx, c, "/principals/"+url.PathEscape(id), nil)
}

// ListSessions lists the caller's sessions.
func (c *Client) ListSessions(ctx context.Context, page Page) (*api.SessionList, error) {
	return get[api.SessionList](ctx, c, "/me/sessions", page.query())
}

// RevokeSession ends a session and closes its connections.
func (c *Client) RevokeSession(ctx context.Context, sessionID string, options ...CallOption) error {
	return c.remove(ctx, "/sessions/"+url.PathEscape(sessionID), nil, options...)
}

// ListTokens lists the tokens of the principal, or the caller's own when principalID is empty.
func (c *Client) ListTokens(ctx context.Context, principalID string, page Page) (*api.TokenList, error) {
	q := page.query()
	if principalID != "" {
		q.Set("principal_id", principalID)
	}
	return get[api.TokenList](ctx, c, "/tokens", q)
}

// CreateToken makes an API token. Its secret is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, in api.CreateTokenRequest, options ...CallOption) (*api.TokenCreated, error) {
	return send[api.TokenCreated](ctx, c, http.MethodPost, "/tokens", in, options...)
}

// RevokeToken ends a token and closes its connections.
func (c *Client) RevokeToken(ctx context.Context, tokenID string, options ...CallOption) error {
	return c.remove(ctx, "/tokens/"+url.PathEscape(tokenID), nil, options...)
}

// Spaces, channels, threads, rights.

// CreateSpace makes a space.
func (c *Client) CreateSpace(ctx context.Context, in api.CreateSpaceRequest, options ...CallOption) (*api.Space, error) {
	return send[api.Space](ctx, c, http.MethodPost, "/spaces", in, options...)
}

// ListSpaces lists the spaces the caller can read.
func (c *Client) ListSpaces(ctx context.Context, page Page) (*api.SpaceList, error) {
	return get[api.SpaceList](ctx, c, "/spaces", page.query())
}

// CreateChannel makes a channel in a space.
func (c *Client) CreateChannel(ctx context.Context, spaceID string, in api.CreateChannelRequest, options ...CallOption) (*api.Channel, error) {
	return send[api.Channel](ctx, c, http.MethodPost, "/spaces/"+url.PathEscape(spaceID)+"/channels", in, options...)
}

// Channel is one channel.
func (c *Client) Channel(ctx context.Context, channelID string) (*api.Channel, error) {
	return get[api.Channel](ctx, c, channelPath(channelID), nil)
}

// ListChannels lists channels, of one space unless spaceID is empty.
func (c *Client) ListChannels(ctx context.Context, spaceID string, page Page) (*api.ChannelList, error) {
	q := page.query()
	if spaceID != "" {
		q.Set("space_id", spaceID)
	}
	return get[api.ChannelList](ctx, c, "/channels", q)
}

// ChannelBehavior says how agents act in a channel.
func (c *Client) ChannelBehavior(ctx context.Context, channelID string) (*api.ChannelBehavior, error) {
	return get[api.ChannelBehavior](ctx, c, channelPath(channelID)+"/behavior", nil)
}

// UpdateChannelBehavior changes how agents act in a channel. Needs IfMatch with the version of the behavior.
func (c *Client) UpdateChannelBehavior(ctx context.Context, channelID string, in api.UpdateChannelBehaviorRequest, options ...CallOption) (*api.ChannelBehavior, error) {
	return send[api.ChannelBehavior](ctx, c, http.MethodPatch, channelPath(channelID)+"/behavior", in, options...)
}

// SetChannelOperator says which agent answers in a channel. Needs IfMatch with the version of the channel.
func (c *Client) SetChannelOperator(ctx context.Context, channelID string, in api.SetChannelOperatorRequest, options ...CallOption) (*api.Channel, error) {
	return send[api.Channel](ctx, c, http.MethodPut, channelPath(channelID)+"/operator", in, options...)
}

// Thread is one thread.
func (c *Client) Thread(ctx context.Context, threadID string) (*api.Thread, error) {
	return get[api.Thread](ctx, c, threadPath(threadID), nil)
}

// ListThreads lists the threads of a channel.
func (c *Client) ListThreads(ctx context.Context, channelID string, page Page) (*api.ThreadList, error) {
	return get[api.ThreadList](ctx, c, channelPath(channelID)+"/threads", page.query())
}

// CreateThread starts a forum post or, with ParentMessageID, a side thread of a message. The message gets a
// client_msg_id when it has none; with the same one the call can be repeated at any time.
func (c *Client) CreateThread(ctx context.Context, channelID string, in api.CreateThreadRequest, options ...CallOption) (*api.ThreadCreated, error) {
	if in.Message.ClientMsgID == "" {
		in.Message.ClientMsgID = NewID()
	}
	return send[api.ThreadCreated](ctx, c, http.MethodPost, channelPath(channelID)+"/threads", in, options...)
}

// CreateGrant gives a right.
func (c *Client) CreateGrant(ctx context.Context, in api.CreateGrantRequest, options ...CallOption) (*api.GrantCreated, error) {
	return send[api.GrantCreated](ctx, c, http.MethodPost, "/grants", in, options...)
}

// RevokeGrant takes a right away.
func (c *Client) RevokeGrant(ctx context.Context, grantID string, options ...CallOption) error {
	return c.remove(ctx, "/grants/"+url.PathEscape(grantID), nil, options...)
}

// Grants lists the grants on a target.
func (c *Client) Grants(ctx context.Context, target api.TargetInput, page Page) (*api.GrantList, error) {
	q := page.query()
	name := string(target.Kind)
	if target.ID != nil {
		name += ":" + *target.ID
	}
	q.Set("target", name)
	return get[api.GrantList](ctx, c, "/grants", q)
}

// CreateGroup makes a group of people who get rights together.
func (c *Client) CreateGroup(ctx context.Context, in api.CreateGroupRequest, options ...CallOption) (*api.Group, error) {
	return send[api.Group](ctx, c, http.MethodPost, "/groups", in, options...)
}

// PutGroupMember makes somebody a member, or changes role and end of a membership.
func (c *Client) PutGroupMember(ctx context.Context, groupID, principalID string, in api.PutGroupMemberRequest, options ...CallOption) (*api.GroupMember, error) {
	return send[api.GroupMember](ctx, c, http.MethodPut, groupPath(groupID)+"/members/"+url.PathEscape(principalID), in, options...)
}

// RemoveGroupMember ends a membership.
func (c *Client) RemoveGroupMember(ctx context.Context, groupID, principalID string, options ...CallOption) error {
	return c.remove(ctx, groupPath(groupID)+"/members/"+url.PathEscape(principalID), nil, options...)
}

func groupPath(id string) string { return "/groups/" + url.PathEscape(id) }

// The audit log, for owners.

// VerifyAudit checks the chain of the audit log and its checkpoints on the server.
func (c *Client) VerifyAudit(ctx context.Context, in api.VerifyAuditRequest) (*api.AuditVerifyResult, error) {
	return send[api.AuditVerifyResult](ctx, c, http.MethodPost, "/audit/verify", in)
}

// ExportAudit writes the audit log with its checkpoints, one JSON object per line, for a check that needs no server.
// After an error a part may have been written.
func (c *Client) ExportAudit(ctx context.Context, w io.Writer) error {
	k := call{method: http.MethodGet, path: "/audit/export", out: w}
	k.header("Accept", "application/x-ndjson, application/problem+json")
	_, err := c.do(ctx, k)
	return err
}

// Messages and what was read of them.

// CreateMessage posts to a thread. The message gets a client_msg_id when it has none; with the same one the call
// can be repeated at any time and answers the message as it is then.
func (c *Client) CreateMessage(ctx context.Context, threadID string, in api.CreateMessageRequest, options ...CallOption) (*api.MessageWritten, error) {
	if in.ClientMsgID == "" {
		in.ClientMsgID = NewID()
	}
	return send[api.MessageWritten](ctx, c, http.MethodPost, threadPath(threadID)+"/messages", in, options...)
}

// MessageRange selects the messages of a thread; at most one of Before, After and Around is set. With none, the
// newest come.
type MessageRange struct {
	Before, After int64
	Around        string
	Limit         int
}

// ListMessages reads messages of a thread in ascending thread_seq.
func (c *Client) ListMessages(ctx context.Context, threadID string, r MessageRange) (*api.MessagePage, error) {
	q := Page{Limit: r.Limit}.query()
	if r.Before > 0 {
		q.Set("before", strconv.FormatInt(r.Before, 10))
	}
	if r.After > 0 {
		q.Set("after", strconv.FormatInt(r.After, 10))
	}
	if r.Around != "" {
		q.Set("around", r.Around)
	}
	return get[api.MessagePage](ctx, c, threadPath(threadID)+"/messages", q)
}

// Message is one message.
func (c *Client) Message(ctx context.Context, messageID string) (*api.Message, error) {
	return get[api.Message](ctx, c, messagePath(messageID), nil)
}

// UpdateMessage edits a message. Needs IfMatch with the version of the message.
func (c *Client) UpdateMessage(ctx context.Context, messageID string, in api.UpdateMessageRequest, options ...CallOption) (*api.MessageWritten, error) {
	return send[api.MessageWritten](ctx, c, http.MethodPatch, messagePath(messageID), in, options...)
}

// DeleteMessage deletes a message. A moderator may say why.
func (c *Client) DeleteMessage(ctx context.Context, messageID, reason string, options ...CallOption) error {
	q := url.Values{}
	if reason != "" {
		q.Set("reason", reason)
	}
	return c.remove(ctx, messagePath(messageID), q, options...)
}

// UpdateReadState says up to where the caller has read a thread.
func (c *Client) UpdateReadState(ctx context.Context, threadID string, in api.UpdateReadStateRequest, options ...CallOption) (*api.ReadState, error) {
	return send[api.ReadState](ctx, c, http.MethodPut, threadPath(threadID)+"/read-state", in, options...)
}

// MarkThreadUnread marks a thread unread from a message on.
func (c *Client) MarkThreadUnread(ctx context.Context, threadID string, fromThreadSeq int64, options ...CallOption) (*api.ReadState, error) {
	return send[api.ReadState](ctx, c, http.MethodPost, threadPath(threadID)+"/read-state/unread", api.MarkThreadUnreadRequest{FromThreadSeq: fromThreadSeq}, options...)
}

// Snapshot is one page of the caller's whole structure. Follow events from the head_seq of the first page.
func (c *Client) Snapshot(ctx context.Context, cursor string) (*api.Snapshot, error) {
	return get[api.Snapshot](ctx, c, "/sync/snapshot", Page{Cursor: cursor}.query())
}

// SnapshotOf is one page of a part of the structure, after access to it was gained. Targets are written as "instance",
// "space:<id>" or "channel:<id>". Above its page_seq, events of the targets apply.
func (c *Client) SnapshotOf(ctx context.Context, cursor string, targets ...string) (*api.Snapshot, error) {
	q := Page{Cursor: cursor}.query()
	q.Set("targets", strings.Join(targets, ","))
	return get[api.Snapshot](ctx, c, "/sync/snapshot", q)
}

// Events reads the log behind a position, for clients without a WebSocket.
func (c *Client) Events(ctx context.Context, after int64, syncEpoch string, limit int) (*api.EventPage, error) {
	q := Page{Limit: limit}.query()
	q.Set("after", strconv.FormatInt(after, 10))
	q.Set("sync_epoch", syncEpoch)
	return get[api.EventPage](ctx, c, "/sync/events", q)
}

// Agents and runs.

// CreateAgent adds an agent, with Token its first API token.
func (c *Client) CreateAgent(ctx context.Context, in api.CreateAgentRequest, options ...CallOption) (*api.AgentCreated, error) {
	return send[api.AgentCreated](ctx, c, http.MethodPost, "/agents", in, options...)
}

// Agent is one agent with what its adapter reported.
func (c *Client) Agent(ctx context.Context, agentID string) (*api.Agent, error) {
	return get[api.Agent](ctx, c, "/agents/"+url.PathEscape(agentID), nil)
}

// ListAgents lists agents.
func (c *Client) ListAgents(ctx context.Context, page Page) (*api.AgentList, error) {
	return get[api.AgentList](ctx, c, "/agents", page.query())
}

// SendHeartbeat reports the state of an adapter that has no gateway connection.
func (c *Client) SendHeartbeat(ctx context.Context, agentID string, in api.Heartbeat) (*api.HeartbeatAck, error) {
	return send[api.HeartbeatAck](ctx, c, http.MethodPost, "/agents/"+url.PathEscape(agentID)+"/heartbeat", in)
}

// Run is one run with its newest steps.
func (c *Client) Run(ctx context.Context, runID string) (*api.Run, error) {
	return get[api.Run](ctx, c, runPath(runID), nil)
}

// ListThreadRuns lists the runs of a thread, newest first.
func (c *Client) ListThreadRuns(ctx context.Context, threadID string, page Page) (*api.RunSummaryList, error) {
	return get[api.RunSummaryList](ctx, c, threadPath(threadID)+"/runs", page.query())
}

// RunContext is what an agent may know about a run's thread. Needs InvocationToken. before is the cursor of an
// earlier answer, or empty.
func (c *Client) RunContext(ctx context.Context, runID, before string, limit int, options ...CallOption) (*api.RunContext, error) {
	q := Page{Limit: limit}.query()
	if before != "" {
		q.Set("before", before)
	}
	return get[api.RunContext](ctx, c, runPath(runID)+"/context", q, options...)
}

// StartRun begins a run; exactly one start wins. Needs InvocationToken.
func (c *Client) StartRun(ctx context.Context, runID string, in api.StartRunRequest, options ...CallOption) (*api.RunStarted, error) {
	return send[api.RunStarted](ctx, c, http.MethodPost, runPath(runID)+"/start", in, options...)
}

// RenewRunToken gets a new invocation token. The rights of the person are checked anew.
func (c *Client) RenewRunToken(ctx context.Context, runID string) (*api.RunToken, error) {
	return send[api.RunToken](ctx, c, http.MethodPost, runPath(runID)+"/token", nil)
}

// UpdateRun reports progress. Needs InvocationToken.
func (c *Client) UpdateRun(ctx context.Context, runID string, in api.UpdateRunRequest, options ...CallOption) (*api.RunUpdateResult, error) {
	return send[api.RunUpdateResult](ctx, c, http.MethodPost, runPath(runID)+"/updates", in, options...)
}

// FinishRun ends a run. Needs InvocationToken, except for failed or cancelled without output and patch.
func (c *Client) FinishRun(ctx context.Context, runID string, in api.FinishRunRequest, options ...CallOption) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodPost, runPath(runID)+"/finish", in, options...)
}

// CancelRun asks a run to stop. Repeats answer the run.
func (c *Client) CancelRun(ctx context.Context, runID string, in api.CancelRunRequest, options ...CallOption) (*api.Run, error) {
	return send[api.Run](ctx, c, http.MethodPost, runPath(runID)+"/cancel", in, options...)
}

func (c *Client) remove(ctx context.Context, path string, query url.Values, options ...CallOption) error {
	_, err := c.do(ctx, call{method: http.MethodDelete, path: path, query: query}, options...)
	return err
}

func channelPath(id string) string { return "/channels/" + url.PathEscape(id) }
func threadPath(id string) string  { return "/threads/" + url.PathEscape(id) }
func messagePath(id string) string { return "/messages/" + url.PathEscape(id) }
func runPath(id string) string     { return "/runs/" + url.PathEscape(id) }
