// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The kinds of breaks between rows; the port has the same words.
const (
	KindGap  = "gap"
	KindHash = "hash"
	KindLink = "link"
)

// Chain verifies rows one after the other, in ascending order.
type Chain struct {
	canon Canonicalize
	// seq and prev are those of the last row.
	seq  int64
	prev Hash
	// known is set when prev is trusted: from the beginning, or after the first row.
	known bool
}

// NewChain verifies rows that follow the row seq with the hash prev. From the very beginning
// seq is zero and prev the genesis; for a range whose row before is unknown, prev is nil.
func NewChain(canon Canonicalize, seq int64, prev *Hash) *Chain {
	c := &Chain{canon: canon, seq: seq}
	if prev != nil {
		c.prev, c.known = *prev, true
	}
	return c
}

// Next verifies one row. It returns the kind of what does not fit, empty when it does. The
// next row is then verified against this one as it stands, so one fault is told once.
func (c *Chain) Next(r Row) (string, error) {
	if c.known && r.Seq != c.seq+1 {
		c.seq, c.prev = r.Seq, r.HashValue
		return KindGap, nil
	}
	linked := !c.known || r.PrevHash == c.prev
	hash, err := r.Seal(r.PrevHash, c.canon)
	if err != nil {
		return "", fmt.Errorf("seal the row %d: %w", r.Seq, err)
	}
	c.seq, c.prev, c.known = r.Seq, r.HashValue, true
	switch {
	case hash != r.HashValue:
		return KindHash, nil
	case !linked:
		return KindLink, nil
	default:
		return "", nil
	}
}

// Head is the last row and its hash.
func (c *Chain) Head() (int64, Hash) { return c.seq, c.prev }

// Checkpoint is a signed statement about all rows up to one.
type Checkpoint struct {
	ID ids.ID
	// Seq is the last row covered, FirstSeq the first that existed then.
	Seq, FirstSeq int64
	HashValue     Hash
	// Previous is the hash of the JWS of the checkpoint before; zeros for the first.
	Previous  Hash
	KID       string
	JWS       string
	CreatedAt time.Time
}

// Digest is what the next checkpoint refers to.
func (c Checkpoint) Digest() Hash { return sha256.Sum256([]byte(c.JWS)) }

// Statement is the payload of a checkpoint's JWS.
type Statement struct {
	V                  int    `json:"v"`
	InstanceID         ids.ID `json:"instance_id"`
	SyncEpoch          ids.ID `json:"sync_epoch"`
	FirstSeq           string `json:"first_seq"`
	Seq                string `json:"seq"`
	Hash               []byte `json:"hash"`
	PrevCheckpointHash []byte `json:"prev_checkpoint_hash"`
	CreatedAt          string `json:"created_at"`
}

// StatementOf puts a checkpoint into words.
func StatementOf(c Checkpoint, instanceID, epoch ids.ID) Statement {
	return Statement{
		V: formVersion, InstanceID: instanceID, SyncEpoch: epoch, FirstSeq: strconv.FormatInt(c.FirstSeq, 10),
		Seq: strconv.FormatInt(c.Seq, 10), Hash: c.HashValue[:], PrevCheckpointHash: c.Previous[:],
		CreatedAt: c.CreatedAt.UTC().Format(timeLayout),
	}
}

// ErrStatement means that a signed payload does not say what its checkpoint says.
var ErrStatement = errors.New("the statement is not that of the checkpoint")

// Confirms checks that a payload, whose signature has been verified, is about the checkpoint.
func (c Checkpoint) Confirms(payload []byte, instanceID ids.ID) error {
	var s Statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return fmt.Errorf("read the statement: %w", ErrStatement)
	}
	want := StatementOf(c, instanceID, s.SyncEpoch)
	if s.V != want.V || s.InstanceID != want.InstanceID || s.Seq != want.Seq || s.FirstSeq != want.FirstSeq ||
		string(s.Hash) != string(want.Hash) || string(s.PrevCheckpointHash) != string(want.PrevCheckpointHash) {
		return ErrStatement
	}
	return nil
}
