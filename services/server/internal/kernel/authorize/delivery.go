// SPDX-License-Identifier: Apache-2.0

package authorize

import (
	"context"
	"encoding/json"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Verdict is the answer of Delivery.Admit.
type Verdict int

// The verdicts. Unknown means that the principal's rights are not in memory at the needed
// version: fill them and ask again, or send the connection back to catch-up.
const (
	Denied Verdict = iota
	Admitted
	Unknown
)

// Observed is an event of the log as far as rights and structure depend on it.
type Observed struct {
	Seq               int64
	Type              string
	SpaceID           ids.ID
	ChannelID         ids.ID
	ThreadID          ids.ID
	PrincipalID       ids.ID
	PermissionVersion int64
	Payload           json.RawMessage
}

// Delivery decides about events on their way to connections. It works on rights held in
// memory and never queries on the way of an event.
type Delivery interface {
	// Observe applies an event to the rights and the structure in memory. The log tail
	// calls it for every event in order, before the event reaches any connection.
	Observe(ctx context.Context, e Observed)
	// Admit decides whether the principal may receive something about the resource with
	// rights of at least the given version.
	Admit(principal ids.ID, action Action, r Resource, version int64) Verdict
	// Fill loads the principal's rights, and those of others that a decision lacked, and keeps
	// the former until Release.
	Fill(ctx context.Context, principal ids.ID) error
	// Release lets the rights of a principal go; calls pair with Fill.
	Release(principal ids.ID)
	// Visible gives the targets a filled principal can see, for the indexes of the hub; ok
	// is false when the rights are not in memory.
	Visible(principal ids.ID) (scope Scope, ok bool)
	// Located gives the channel and the space a resource lies in, by the structure in memory;
	// either is zero where there is none. It is not known for what lies in no place of that
	// structure.
	Located(r Resource) (channel, space ids.ID, known bool)
	// ChannelOf gives the current place of a thread, by the structure in memory.
	ChannelOf(thread ids.ID) (channel ids.ID, ok bool)
}
