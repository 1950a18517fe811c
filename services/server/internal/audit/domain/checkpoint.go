// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// CheckpointType is the typ of a checkpoint's JWS.
const CheckpointType = "bothy-audit-checkpoint+jws"

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

	// Sink says whether the checkpoint lies outside the database as well; SinkError is the
	// code of the last failed attempt.
	Sink         SinkState
	SinkAttempts int
	SinkError    string
	DepositedAt  *time.Time
}

// SinkState is where a checkpoint stands on its way to the sink.
type SinkState string

// The states. A checkpoint that was made without a sink never goes to one.
const (
	SinkNone      SinkState = "none"
	SinkPending   SinkState = "pending"
	SinkDeposited SinkState = "deposited"
)

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
		CreatedAt: c.CreatedAt.UTC().Format(TimeLayout),
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

// CheckpointOf reads a checkpoint out of its JWS, whose signature is not verified here.
func CheckpointOf(jws string) (Checkpoint, error) {
	token, err := jose.Parse(jws)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read a checkpoint: %w", err)
	}
	var s Statement
	if err := json.Unmarshal(token.Payload, &s); err != nil || len(s.Hash) != HashSize || len(s.PrevCheckpointHash) != HashSize {
		return Checkpoint{}, ErrStatement
	}
	seq, errSeq := strconv.ParseInt(s.Seq, 10, 64)
	first, errFirst := strconv.ParseInt(s.FirstSeq, 10, 64)
	at, errAt := time.Parse(TimeLayout, s.CreatedAt)
	if errSeq != nil || errFirst != nil || errAt != nil || first < 1 || seq < first {
		return Checkpoint{}, ErrStatement
	}
	return Checkpoint{
		Seq: seq, FirstSeq: first, HashValue: Hash(s.Hash), Previous: Hash(s.PrevCheckpointHash), KID: token.Header.KeyID, JWS: jws, CreatedAt: at,
	}, nil
}

// The faults of a signature.
var (
	ErrUnknownKey = errors.New("the key is not among those of checkpoints")
	ErrSignature  = errors.New("the signature does not verify")
)

// Signed checks a checkpoint with the keys of its purpose alone, old ones too. ErrUnknownKey
// tells that all but the signature fits: without its key nobody can say whether that does.
func (c Checkpoint) Signed(keys map[string]crypto.PublicKey, instanceID ids.ID) error {
	token, err := jose.Parse(c.JWS)
	if err != nil || token.Header.Type != CheckpointType || token.Header.Algorithm != jose.ES256 {
		return ErrSignature
	}
	key, known := keys[token.Header.KeyID]
	if !known {
		if err := c.Confirms(token.Payload, instanceID); err != nil {
			return err
		}
		return ErrUnknownKey
	}
	if token.Verify(key) != nil {
		return ErrSignature
	}
	return c.Confirms(token.Payload, instanceID)
}
