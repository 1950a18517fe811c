// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"bytes"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit"
	"github.com/OWNER/bothy/services/server/internal/audit/app"
)

const (
	// maxLine bounds a line: a row has at most 4 KiB of details.
	maxLine = 64 << 10
	// maxKeys bounds the keys of a file.
	maxKeys = 10_000
)

// Faults of a file, beside those of its lines.
var (
	// ErrForm means that the file is no export of a known form.
	ErrForm = errors.New("this is no export of the audit log that this program can read")
	// ErrCut means that the end is missing, or does not count what stands before it.
	ErrCut = errors.New("the export was cut: its end does not count what stands before it")
)

// Reader reads an export line by line.
type Reader struct {
	scan *bufio.Scanner
	line int
	// Head is the header, Keys are the public keys that came along, by their ID.
	Head app.ExportHeader
	Keys map[string]crypto.PublicKey

	held              []byte
	rows, checkpoints int64
}

// NewReader reads header and keys. Entries gives the rest.
func NewReader(r io.Reader) (*Reader, error) {
	out := &Reader{scan: bufio.NewScanner(r), Keys: map[string]crypto.PublicKey{}}
	out.scan.Buffer(make([]byte, 0, 8<<10), maxLine)
	raw, err := out.next()
	if err != nil {
		return nil, err
	}
	var h headerLine
	if err := strict(raw, &h); err != nil || h.Type != typeHeader || h.V != formVersion {
		return nil, ErrForm
	}
	at, err := time.Parse(timeLayout, h.ExportedAt)
	if err != nil || h.FirstSeq < 1 || h.FromSeq < h.FirstSeq || h.ToSeq < h.FromSeq || h.LastSeq < h.ToSeq {
		return nil, ErrForm
	}
	out.Head = app.ExportHeader{
		InstanceID: h.InstanceID, FromSeq: h.FromSeq, ToSeq: h.ToSeq, FirstSeq: h.FirstSeq, LastSeq: h.LastSeq, ExportedAt: at,
	}
	return out, out.keys()
}

func (r *Reader) keys() error {
	for range maxKeys {
		raw, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil // Entries tells that the file was cut.
		}
		if err != nil {
			return err
		}
		if typeOf(raw) != typeKey {
			r.held = raw
			return nil
		}
		var k keyLine
		if err := strict(raw, &k); err != nil {
			return r.fault(err)
		}
		public, err := k.JWK.Public()
		if err != nil {
			return r.fault(err)
		}
		r.Keys[k.JWK.KeyID] = public
	}
	return r.fault(errors.New("too many keys"))
}

// Entries gives rows and checkpoints in the order of the file. The last error is ErrCut when
// the end is missing or counts something else.
func (r *Reader) Entries() iter.Seq2[audit.Entry, error] {
	return func(yield func(audit.Entry, error) bool) {
		for {
			e, done, err := r.entry()
			if done && err == nil || !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (r *Reader) entry() (e audit.Entry, done bool, err error) {
	raw, err := r.take()
	if errors.Is(err, io.EOF) {
		return e, true, ErrCut
	}
	if err != nil {
		return e, true, err
	}
	switch typeOf(raw) {
	case typeRow:
		var l rowLine
		if err := strict(raw, &l); err != nil {
			return e, true, r.fault(err)
		}
		r.rows++
		return audit.Entry{Row: l.Row, PrevHash: l.PrevHash, Hash: l.Hash}, len(l.Row) == 0, r.orFault(len(l.Row) == 0, "a row is empty")
	case typeCheckpoint:
		var l checkpointLine
		if err := strict(raw, &l); err != nil {
			return e, true, r.fault(err)
		}
		r.checkpoints++
		return audit.Entry{Checkpoint: l.JWS}, false, nil
	case typeEnd:
		return e, true, r.end(raw)
	default:
		return e, true, r.fault(errors.New("a line of an unknown type"))
	}
}

func (r *Reader) end(raw []byte) error {
	var l endLine
	if err := strict(raw, &l); err != nil {
		return r.fault(err)
	}
	if l.Rows != r.rows || l.Checkpoints != r.checkpoints {
		return ErrCut
	}
	if _, err := r.next(); !errors.Is(err, io.EOF) {
		return r.fault(errors.New("something follows the end"))
	}
	return nil
}

func (r *Reader) orFault(is bool, text string) error {
	if is {
		return r.fault(errors.New(text))
	}
	return nil
}

// fault names the line.
func (r *Reader) fault(err error) error { return fmt.Errorf("line %d: %w: %w", r.line, ErrForm, err) }

func (r *Reader) take() ([]byte, error) {
	if raw := r.held; raw != nil {
		r.held = nil
		return raw, nil
	}
	return r.next()
}

// next gives a line of its own memory; io.EOF at the end.
func (r *Reader) next() ([]byte, error) {
	if !r.scan.Scan() {
		if err := r.scan.Err(); err != nil {
			r.line++
			return nil, r.fault(err)
		}
		return nil, io.EOF
	}
	r.line++
	return bytes.Clone(r.scan.Bytes()), nil
}

func typeOf(raw []byte) string {
	var l struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &l) != nil {
		return ""
	}
	return l.Type
}

// strict refuses members that the form does not have, so that nothing hides beside what is
// verified.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("a line holds more than one object")
	}
	return nil
}
