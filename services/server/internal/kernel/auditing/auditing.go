// SPDX-License-Identifier: Apache-2.0

// Package auditing writes down sensitive acts. What is allowed is written in the unit that
// does it, so there is no act without its row; what is denied is written afterwards in a
// unit of its own. The module audit implements the Recorder.
package auditing

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Outcome is what became of the act.
type Outcome string

// The outcomes.
const (
	Allow Outcome = "allow"
	Deny  Outcome = "deny"
)

// Entry is one audited decision. The recorder adds who acted, from the context, when, and
// the request's correlation ID and address.
type Entry struct {
	// Action is an ID of the action catalogue.
	Action string
	Reason string
	// ResourceKind and ResourceID name what was acted on.
	ResourceKind string
	ResourceID   ids.ID
	SpaceID      ids.ID
	ChannelID    ids.ID
	// Details hold only the keys that the catalogue allows for the action, and only IDs,
	// whole numbers, booleans, times and short codes: never a name, a text or a secret.
	Details map[string]any
}

// Recorder writes the audit log.
type Recorder interface {
	// Allowed notes an act of the running unit of work. The row is chained when the unit
	// ends; when it cannot be written, the unit fails.
	Allowed(ctx context.Context, e Entry) error
	// Denied writes the row in a unit of its own. A failure is logged and counted, because
	// the denial stands either way.
	Denied(ctx context.Context, e Entry)
}
