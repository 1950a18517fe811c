// SPDX-License-Identifier: Apache-2.0

// Package domain has the form of the record: how a row becomes bytes, how rows hang together,
// what details may hold and what a checkpoint says.
package domain

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// HashSize is the size of every hash of the chain.
const HashSize = sha256.Size

// Hash links a row to everything before it.
type Hash [HashSize]byte

const (
	rowPrefix     = "bothy-audit/1\x00"
	genesisPrefix = "bothy-audit/1/genesis\x00"
	formVersion   = 1
)

// TimeLayout is how the record writes times, in its rows and in their details.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// Actor is who acted, with the credential that was used.
type Actor struct {
	Kind                                                    string
	ID, SessionID, DeviceID, TokenID, ActingForID, ViewAsID ids.ID
}

// Row is one audited decision. Zero values are absent.
type Row struct {
	Seq                 int64
	ID                  ids.ID
	OccurredAt          time.Time
	Action              string
	Outcome             string
	Reason              string
	Actor               Actor
	ResourceKind        string
	ResourceID          ids.ID
	SpaceID, ChannelID  ids.ID
	Details             json.RawMessage
	CorrelationID       ids.ID
	IPKeyID             ids.ID
	IPPseudonym         string
	PrevHash, HashValue Hash
}

// Canonicalize writes JSON in the canonical form of RFC 8785.
type Canonicalize func(text []byte) ([]byte, error)

// The members below are left out when absent, and so are objects without members.
type (
	canonicalRow struct {
		V             int                `json:"v"`
		Seq           string             `json:"seq"`
		ID            ids.ID             `json:"id"`
		OccurredAt    string             `json:"occurred_at"`
		Action        string             `json:"action"`
		Outcome       string             `json:"outcome"`
		Reason        string             `json:"reason,omitempty"`
		Actor         canonicalActor     `json:"actor"`
		Resource      *canonicalResource `json:"resource,omitempty"`
		Place         *canonicalPlace    `json:"place,omitempty"`
		Details       json.RawMessage    `json:"details,omitempty"`
		CorrelationID *ids.ID            `json:"correlation_id,omitempty"`
		IP            *canonicalIP       `json:"ip,omitempty"`
	}
	canonicalActor struct {
		Kind        string  `json:"kind"`
		ID          *ids.ID `json:"id,omitempty"`
		SessionID   *ids.ID `json:"session_id,omitempty"`
		DeviceID    *ids.ID `json:"device_id,omitempty"`
		TokenID     *ids.ID `json:"token_id,omitempty"`
		ActingForID *ids.ID `json:"acting_for_id,omitempty"`
		ViewAsID    *ids.ID `json:"view_as_id,omitempty"`
	}
	canonicalResource struct {
		Kind string  `json:"kind,omitempty"`
		ID   *ids.ID `json:"id,omitempty"`
	}
	canonicalPlace struct {
		SpaceID   *ids.ID `json:"space_id,omitempty"`
		ChannelID *ids.ID `json:"channel_id,omitempty"`
	}
	canonicalIP struct {
		KeyID     *ids.ID `json:"key_id,omitempty"`
		Pseudonym string  `json:"pseudonym,omitempty"`
	}
)

// Canonical is the form of a row that its hash is made over. Numbers larger than a double
// holds exactly stand in strings.
func (r Row) Canonical(canon Canonicalize) ([]byte, error) {
	c := canonicalRow{
		V: formVersion, Seq: strconv.FormatInt(r.Seq, 10), ID: r.ID, OccurredAt: r.OccurredAt.UTC().Format(TimeLayout),
		Action: r.Action, Outcome: r.Outcome, Reason: r.Reason, CorrelationID: r.CorrelationID.Ptr(),
		Actor: canonicalActor{
			Kind: r.Actor.Kind, ID: r.Actor.ID.Ptr(), SessionID: r.Actor.SessionID.Ptr(), DeviceID: r.Actor.DeviceID.Ptr(),
			TokenID: r.Actor.TokenID.Ptr(), ActingForID: r.Actor.ActingForID.Ptr(), ViewAsID: r.Actor.ViewAsID.Ptr(),
		},
	}
	if r.ResourceKind != "" || !r.ResourceID.IsZero() {
		c.Resource = &canonicalResource{Kind: r.ResourceKind, ID: r.ResourceID.Ptr()}
	}
	if !r.SpaceID.IsZero() || !r.ChannelID.IsZero() {
		c.Place = &canonicalPlace{SpaceID: r.SpaceID.Ptr(), ChannelID: r.ChannelID.Ptr()}
	}
	if r.IPPseudonym != "" || !r.IPKeyID.IsZero() {
		c.IP = &canonicalIP{KeyID: r.IPKeyID.Ptr(), Pseudonym: r.IPPseudonym}
	}
	if len(r.Details) > 0 && string(r.Details) != "{}" {
		c.Details = r.Details
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode the row %d: %w", r.Seq, err)
	}
	return canon(raw)
}

// Seal gives the hash that links the row to the one before it.
func (r Row) Seal(prev Hash, canon Canonicalize) (Hash, error) {
	body, err := r.Canonical(canon)
	if err != nil {
		return Hash{}, err
	}
	return sealed(prev, body), nil
}

// sealed is the hash over a canonical form and the hash of the row before it.
func sealed(prev Hash, body []byte) Hash {
	h := sha256.New()
	h.Write([]byte(rowPrefix))
	h.Write(prev[:])
	h.Write(body)
	return Hash(h.Sum(nil))
}

// Genesis is what the first row ever follows.
func Genesis(instanceID ids.ID) Hash {
	return sha256.Sum256([]byte(genesisPrefix + instanceID.String()))
}
