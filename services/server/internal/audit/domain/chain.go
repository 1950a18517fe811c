// SPDX-License-Identifier: Apache-2.0

package domain

// The kinds of breaks; the port has the same words.
const (
	KindGap                 = "gap"
	KindHash                = "hash"
	KindLink                = "link"
	KindCheckpointSignature = "checkpoint_signature"
	KindCheckpointHash      = "checkpoint_hash"
	KindAnchor              = "anchor"
)

// Link is a row as the chain sees it: its number, its canonical form and its hashes.
type Link struct {
	Seq                 int64
	Body                []byte
	PrevHash, HashValue Hash
}

// Link gives the row as the chain sees it.
func (r Row) Link(canon Canonicalize) (Link, error) {
	body, err := r.Canonical(canon)
	return Link{Seq: r.Seq, Body: body, PrevHash: r.PrevHash, HashValue: r.HashValue}, err
}

// Chain verifies rows one after the other, in ascending order.
type Chain struct {
	// seq and prev are those of the last row.
	seq  int64
	prev Hash
	// known is set when prev is trusted: from the beginning, or after the first row.
	known bool
}

// NewChain verifies rows that follow the row seq with the hash prev. From the very beginning
// seq is zero and prev the genesis; for a range whose row before is unknown, prev is nil.
func NewChain(seq int64, prev *Hash) *Chain {
	c := &Chain{seq: seq}
	if prev != nil {
		c.prev, c.known = *prev, true
	}
	return c
}

// Next verifies one row. It returns the kind of what does not fit, empty when it does. The
// next row is then verified against this one as it stands, so one fault is told once.
func (c *Chain) Next(l Link) string {
	if c.known && l.Seq != c.seq+1 {
		c.seq, c.prev = l.Seq, l.HashValue
		return KindGap
	}
	linked := !c.known || l.PrevHash == c.prev
	c.seq, c.prev, c.known = l.Seq, l.HashValue, true
	switch {
	case sealed(l.PrevHash, l.Body) != l.HashValue:
		return KindHash
	case !linked:
		return KindLink
	default:
		return ""
	}
}

// Head is the last row and its hash.
func (c *Chain) Head() (int64, Hash) { return c.seq, c.prev }
