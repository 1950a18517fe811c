// SPDX-License-Identifier: Apache-2.0

// Package ws has the frames of the gateway: the ops, the payload of each, and the data of each event type. Decoding is
// strict, so the gateway decides on a frame only after its form is settled. The types of payloads are generated from
// the schemas of the contract; where REST answers the same thing, the type is the one of the package rest.
package ws

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/OWNER/bothy/services/server/api/contract"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// Subprotocol is the WebSocket subprotocol of version 1.
const Subprotocol = "bothy.v1"

// ProtocolVersion is the version named in hello and identify.
const ProtocolVersion = 1

var (
	// ErrMalformed means that a frame is not one JSON object of the agreed form. The connection ends with 4001.
	ErrMalformed = errors.New("ws: malformed frame")
	// ErrUnknownOp means that nobody sends such an op. The connection ends with 4002.
	ErrUnknownOp = errors.New("ws: unknown op")
)

// Frame is one frame before its payload is decoded.
type Frame struct {
	Op string `json:"op"`
	// ID is chosen by the client and comes back in the answer or the error; empty when there is none.
	ID string          `json:"id,omitempty"`
	D  json.RawMessage `json:"d"`
}

// maxIDLength bounds what a client can have echoed.
const maxIDLength = 64

// payload names the Go type and the schema of a payload.
type payload struct {
	schema string
	make   func() any
}

// DecodeFrame reads one text frame. maxDepth is the deepest nesting that is taken. The error wraps ErrMalformed, also
// for a repeated member name at any depth, because two readers could disagree on which of the two counts.
func DecodeFrame(raw []byte, maxDepth int) (Frame, error) {
	if err := checkShape(raw, maxDepth); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for name := range members {
		if name != "op" && name != "id" && name != "d" {
			return Frame{}, fmt.Errorf("%w: unknown member %q", ErrMalformed, name)
		}
	}
	var f Frame
	if err := dec.Decode(&f); err != nil {
		return Frame{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if f.Op == "" || len(f.ID) > maxIDLength || len(f.D) == 0 {
		return Frame{}, fmt.Errorf("%w: op or d is missing, or id is too long", ErrMalformed)
	}
	return f, nil
}

// DecodeClient decodes the payload of a client's frame into a pointer to the type of its op, for example *Identify.
// The error is ErrUnknownOp or a validation_failed with pointers into d.
func (f Frame) DecodeClient() (any, error) { return decode(clientOps, f.Op, f.D) }

// DecodeServer is DecodeClient for the other direction. Clients ignore members they do not know, so it does too.
func (f Frame) DecodeServer() (any, error) { return decode(serverOps, f.Op, f.D) }

// DecodeEvent decodes the data of an event into a pointer to its type, for example *MessageCreatedData. The error is
// ErrUnknownOp for a type that the catalogue does not have.
func DecodeEvent(eventType string, data json.RawMessage) (any, error) {
	return decode(events, eventType, data)
}

// CheckEvent holds data against the schema of its event type.
func CheckEvent(eventType string, data json.RawMessage) error {
	p, ok := events[eventType]
	if !ok {
		return fmt.Errorf("%w: event type %q", ErrUnknownOp, eventType)
	}
	return contract.Value(p.schema, data)
}

func decode(table map[string]payload, name string, d json.RawMessage) (any, error) {
	p, ok := table[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownOp, name)
	}
	if err := contract.Value(p.schema, d); err != nil {
		return nil, err
	}
	v := p.make()
	if err := json.Unmarshal(d, v); err != nil {
		return nil, errs.Invalid("", "invalid", "The payload does not fit the contract.").WithCause(err)
	}
	return v, nil
}

// EncodeFrame writes a frame. id is empty unless the frame answers one.
func EncodeFrame(op, id string, d any) ([]byte, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode the payload of %s: %w", op, err)
	}
	return json.Marshal(Frame{Op: op, ID: id, D: raw})
}

// checkShape holds that raw is exactly one JSON object, no deeper than maxDepth and without repeated names.
func checkShape(raw []byte, maxDepth int) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	first, err := dec.Token()
	if err != nil {
		return err
	}
	if first != json.Delim('{') {
		return errors.New("not an object")
	}
	if err := object(dec, maxDepth-1); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func object(dec *json.Decoder, depth int) error {
	seen := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		if seen[name.(string)] {
			return fmt.Errorf("member %q is repeated", name)
		}
		seen[name.(string)] = true
		if err := value(dec, depth); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

func value(dec *json.Decoder, depth int) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	delim, nested := t.(json.Delim)
	if !nested {
		return nil
	}
	if depth <= 0 {
		return errors.New("nested too deeply")
	}
	if delim == '{' {
		return object(dec, depth-1)
	}
	for dec.More() {
		if err := value(dec, depth-1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}
