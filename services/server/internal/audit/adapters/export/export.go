// SPDX-License-Identifier: Apache-2.0

// Package export has the form in which the record leaves the instance: one JSON object per
// line. First a header, then the public keys of checkpoints, then rows in their order with each
// checkpoint behind the last row it covers, and at the end how many lines of each kind there
// were. So a reader follows it with one row in memory, and one that was cut is seen to be.
//
// A row stands in its canonical form, the one its hash is made over.
package export

import (
	"encoding/json"
	"io"
	"time"

	"github.com/OWNER/bothy/services/server/internal/audit/app"
	"github.com/OWNER/bothy/services/server/internal/audit/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

// MediaType is that of an export.
const MediaType = "application/x-ndjson"

const (
	formVersion = 1
	timeLayout  = "2006-01-02T15:04:05.000Z"

	typeHeader     = "header"
	typeKey        = "key"
	typeRow        = "row"
	typeCheckpoint = "checkpoint"
	typeEnd        = "end"
)

// The lines by their type. Numbers of rows stand in strings, because not every reader of JSON
// holds them exactly.
type (
	headerLine struct {
		Type       string `json:"type"`
		V          int    `json:"v"`
		InstanceID ids.ID `json:"instance_id"`
		FromSeq    int64  `json:"from_seq,string"`
		ToSeq      int64  `json:"to_seq,string"`
		FirstSeq   int64  `json:"first_seq,string"`
		LastSeq    int64  `json:"last_seq,string"`
		ExportedAt string `json:"exported_at"`
	}
	keyLine struct {
		Type string   `json:"type"`
		JWK  jose.JWK `json:"jwk"`
	}
	rowLine struct {
		Type     string          `json:"type"`
		Row      json.RawMessage `json:"row"`
		PrevHash []byte          `json:"prev_hash"`
		Hash     []byte          `json:"hash"`
	}
	checkpointLine struct {
		Type string `json:"type"`
		Seq  int64  `json:"seq,string"`
		JWS  string `json:"jws"`
	}
	endLine struct {
		Type        string `json:"type"`
		Rows        int64  `json:"rows"`
		Checkpoints int64  `json:"checkpoints"`
	}
)

// Writer implements app.ExportWriter on a stream.
type Writer struct {
	encoder           *json.Encoder
	rows, checkpoints int64
}

var _ app.ExportWriter = (*Writer)(nil)

// NewWriter writes to w, one write per line.
func NewWriter(w io.Writer) *Writer {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return &Writer{encoder: e}
}

// Header implements app.ExportWriter.
func (w *Writer) Header(h app.ExportHeader) error {
	return w.encoder.Encode(headerLine{
		Type: typeHeader, V: formVersion, InstanceID: h.InstanceID, FromSeq: h.FromSeq, ToSeq: h.ToSeq, FirstSeq: h.FirstSeq,
		LastSeq:    h.LastSeq,
		ExportedAt: h.ExportedAt.UTC().Truncate(time.Millisecond).Format(timeLayout),
	})
}

// Key implements app.ExportWriter.
func (w *Writer) Key(k app.ExportKey) error {
	jwk, err := jose.FromPublic(k.Key)
	if err != nil {
		return err
	}
	jwk.KeyID, jwk.Use, jwk.Algorithm = k.KID, "sig", jose.ES256
	return w.encoder.Encode(keyLine{Type: typeKey, JWK: jwk})
}

// Row implements app.ExportWriter.
func (w *Writer) Row(r domain.Row, canonical []byte) error {
	w.rows++
	return w.encoder.Encode(rowLine{Type: typeRow, Row: canonical, PrevHash: r.PrevHash[:], Hash: r.HashValue[:]})
}

// Checkpoint implements app.ExportWriter.
func (w *Writer) Checkpoint(c domain.Checkpoint) error {
	w.checkpoints++
	return w.encoder.Encode(checkpointLine{Type: typeCheckpoint, Seq: c.Seq, JWS: c.JWS})
}

// End implements app.ExportWriter.
func (w *Writer) End() error {
	return w.encoder.Encode(endLine{Type: typeEnd, Rows: w.rows, Checkpoints: w.checkpoints})
}
