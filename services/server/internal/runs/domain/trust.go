// SPDX-License-Identifier: Apache-2.0

package domain

import "github.com/OWNER/bothy/services/server/internal/kernel/ids"

// Trust says how far an agent may follow a text. It belongs to the author, never to the text.
type Trust string

// The degrees of trust. Only order and trusted are instructions.
const (
	TrustOrder     Trust = "order"
	TrustTrusted   Trust = "trusted"
	TrustSelf      Trust = "self"
	TrustAgent     Trust = "agent"
	TrustUntrusted Trust = "untrusted"
)

// Judge knows what trust depends on.
type Judge struct {
	AgentID ids.ID
	// Orders are the messages that are addressed to the run.
	Orders map[ids.ID]bool
	// MayOrder are the people with the right to give orders in the channel now.
	MayOrder map[ids.ID]bool
}

// Of gives the trust of a message by its author.
func (j Judge) Of(message, author ids.ID, authorKind string) Trust {
	switch {
	case j.Orders[message]:
		return TrustOrder
	case author == j.AgentID:
		return TrustSelf
	case authorKind == "agent":
		return TrustAgent
	case authorKind == "person" && j.MayOrder[author]:
		return TrustTrusted
	default:
		return TrustUntrusted
	}
}
