// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ActionTrim is the action of the row that the removal of old rows leaves: an anchor, from
// which what remains is verified. It is no action of the catalogue, since nobody can ask for
// it.
const ActionTrim = "audit.retention_trim"

// TrimDetails are the keys that the details of such a row may have.
var TrimDetails = []string{"through_seq", "through_hash", "checkpoint_id", "count"}

// Anchor says where the record was cut off: the last row that was removed.
type Anchor struct {
	ThroughSeq  int64
	ThroughHash Hash
}

// Details are those of the row that holds the anchor.
func (a Anchor) Details(checkpoint ids.ID, count int64) map[string]any {
	return map[string]any{
		"through_seq": a.ThroughSeq, "through_hash": hex.EncodeToString(a.ThroughHash[:]), "checkpoint_id": checkpoint, "count": count,
	}
}

// AnchorOf reads the anchor of a row; ok is false when it holds none.
func AnchorOf(action, actorKind string, details json.RawMessage) (a Anchor, ok bool) {
	var d struct {
		Seq  json.Number `json:"through_seq"`
		Hash string      `json:"through_hash"`
	}
	if action != ActionTrim || actorKind != "system" || json.Unmarshal(details, &d) != nil {
		return a, false
	}
	seq, err := strconv.ParseInt(d.Seq.String(), 10, 64)
	raw, errHash := hex.DecodeString(d.Hash)
	if err != nil || errHash != nil || len(raw) != HashSize {
		return a, false
	}
	return Anchor{ThroughSeq: seq, ThroughHash: Hash(raw)}, true
}

// Range says what a verification is about.
type Range struct {
	InstanceID ids.ID
	// Keys are the public keys of checkpoints by their ID.
	Keys map[string]crypto.PublicKey
	// From is the first row that will be shown, First the first one there is.
	From, First int64
	// Broken is told of everything that does not fit. The error says more where there is more
	// to say.
	Broken func(seq int64, kind string, err error)
	// Unknown is told of checkpoints whose key is not among Keys. Where Keys are all there are,
	// it is nil, and such a checkpoint is broken.
	Unknown func(seq int64, kid string)
}

// Verifier follows rows and the checkpoints between them in ascending order. It holds no more
// than the last of each, so a record of any length can be verified.
type Verifier struct {
	r     Range
	chain *Chain
	// known is set when something vouches for what stands before the first row.
	known bool
	// begin is the hash that the first row follows, seen tells that there was one.
	begin Hash
	seen  bool
	// previous is the digest of the last checkpoint.
	previous Hash
	covered  int64
	// signed is the last row that a checkpoint with a known key covers.
	signed int64
	anchor *Anchor

	rows        int64
	checkpoints int
}

// NewVerifier begins a verification. The very first row follows the genesis; before any other
// one the caller may show the checkpoint that stands before the range.
func NewVerifier(r Range) *Verifier {
	v := &Verifier{r: r}
	if r.From == 1 {
		genesis := Genesis(r.InstanceID)
		v.chain, v.known = NewChain(0, &genesis), true
	} else {
		v.chain = NewChain(r.From-1, nil)
	}
	return v
}

// Anchor shows an anchor; the last one shown counts.
func (v *Verifier) Anchor(a Anchor) { v.anchor = &a }

// Row verifies the next row.
func (v *Verifier) Row(l Link) {
	if !v.seen {
		v.begin, v.seen = l.PrevHash, true
		if !v.known && l.Seq != v.r.From {
			v.broken(l.Seq, KindGap, nil)
		}
	}
	if kind := v.chain.Next(l); kind != "" {
		v.broken(l.Seq, kind, nil)
	}
	v.rows++
}

// Checkpoint verifies the next checkpoint, which stands behind the last row it covers. One
// that stands before the range only tells what follows it. One of an unknown key must fit all
// the same, and vouches for nothing.
func (v *Verifier) Checkpoint(c Checkpoint) {
	before := c.Seq < v.r.From
	err := c.Signed(v.r.Keys, v.r.InstanceID)
	signed := err == nil
	if errors.Is(err, ErrUnknownKey) && v.r.Unknown != nil {
		v.r.Unknown(c.Seq, c.KID)
		err = nil
	}
	if err != nil {
		v.broken(c.Seq, KindCheckpointSignature, err)
	} else if head, hash := v.chain.Head(); !before && (head != c.Seq || hash != c.HashValue) {
		v.broken(c.Seq, KindCheckpointHash, nil)
	} else if !before && c.Previous != v.previous {
		v.broken(c.Seq, KindCheckpointHash, nil)
	} else if before && signed && c.Seq == v.r.From-1 && !v.seen && !v.known {
		v.chain, v.known = NewChain(c.Seq, &c.HashValue), true
	}
	v.previous = c.Digest()
	if !before {
		v.checkpoints++
		v.covered = c.Seq
		if signed {
			v.signed = c.Seq
		}
	}
}

// Close ends the verification: a record whose beginning was removed must have an anchor that
// vouches for its first row.
func (v *Verifier) Close() Summary {
	if v.seen && v.r.From > 1 && v.r.From == v.r.First {
		if v.anchor == nil || v.anchor.ThroughSeq != v.r.From-1 || v.anchor.ThroughHash != v.begin {
			v.broken(v.r.From, KindAnchor, nil)
		} else {
			v.known = true
		}
	}
	head, _ := v.chain.Head()
	return Summary{Rows: v.rows, Checkpoints: v.checkpoints, Last: head, Covered: v.covered, Signed: v.signed, Vouched: v.known}
}

// Summary is what was seen.
type Summary struct {
	Rows        int64
	Checkpoints int
	// Last is the last row, Covered the last one that a checkpoint covers.
	Last, Covered int64
	// Signed is the last row that a checkpoint with a known key covers; zero for none.
	Signed int64
	// Vouched tells that the beginning is the genesis, or that a checkpoint or an anchor
	// vouches for it.
	Vouched bool
}

func (v *Verifier) broken(seq int64, kind string, err error) { v.r.Broken(seq, kind, err) }
