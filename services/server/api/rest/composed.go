// SPDX-License-Identifier: Apache-2.0

// Package rest is the REST server of the contract: generated types and operations, and by
// hand what the generator does not compose.
package rest

import (
	"github.com/OWNER/bothy/services/server/api/jsontype"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The types of this file are allOf in the contract: a resource and what only some answers add to it. They embed the
// resource, so a handler maps it once. The contract test holds them equal to the document.

// User is a person as an owner sees it.
type User struct {
	DirectoryEntry
	EmailVerified bool           `json:"email_verified"`
	Locale        string         `json:"locale"`
	LastLoginAt   *jsontype.Time `json:"last_login_at"`
	CreatedAt     jsontype.Time  `json:"created_at"`
}

// UserListItem is a person in the list of people. LastLoginAt is for owners only and then may be nil: a Nullable that
// is not set leaves it out.
type UserListItem struct {
	DirectoryEntry
	LastLoginAt jsontype.Nullable[jsontype.Time] `json:"last_login_at,omitzero"`
}

// UserCreated is a new person and, when asked for, the code with which she sets her first credential.
type UserCreated struct {
	User
	Enrollment *Enrollment `json:"enrollment,omitempty"`
}

// Self is the caller. Login and Session are nil for agents and apps.
type Self struct {
	DirectoryEntry
	EmailVerified bool          `json:"email_verified"`
	Locale        string        `json:"locale"`
	Login         *LoginMethods `json:"login"`
	Session       *SelfSession  `json:"session"`
	ViewAs        *ids.ID       `json:"view_as,omitempty"`
}

// TokenCreated is an API token with its secret, which no later answer holds.
type TokenCreated struct {
	Token
	Secret string `json:"secret"`
}

// GrantCreated is a grant and the version of all rights since it counts.
type GrantCreated struct {
	Grant
	PermissionVersion int64 `json:"permission_version"`
}

// MessageWritten is a message as its author gets it back.
type MessageWritten struct {
	Message
	// Warnings is never nil in an answer.
	Warnings []MessageWarning `json:"warnings"`
}

// AgentCreated is an agent and, when asked for, the token of its adapter.
type AgentCreated struct {
	Agent
	Token *TokenCreated `json:"token,omitempty"`
}

// Run is the whole document of a run.
type Run struct {
	RunSummary
	TriggerInteractionID *ids.ID     `json:"trigger_interaction_id"`
	Plan                 []PlanEntry `json:"plan"`
	// Steps and Artifacts are keyed by the key the agent gave them.
	Steps     map[string]RunStep     `json:"steps"`
	Artifacts map[string]RunArtifact `json:"artifacts"`
	Output    RunOutput              `json:"output"`
	// Usage is keyed by provider and model, joined by a slash.
	Usage      map[string]ModelUsage `json:"usage"`
	SourceList []RunSource           `json:"source_list"`
	Chain      []ids.ID              `json:"chain"`
}
