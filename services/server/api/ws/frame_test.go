// SPDX-License-Identifier: Apache-2.0

package ws_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/api/ws"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

func TestDecodeFrameRefusesOtherForms(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":           `op`,
		"no object":         `["op"]`,
		"no op":             `{"d":{}}`,
		"no d":              `{"op":"focus"}`,
		"op is a number":    `{"op":1,"d":{}}`,
		"unknown member":    `{"op":"focus","d":{},"x":1}`,
		"member in capital": `{"Op":"focus","d":{}}`,
		"second value":      `{"op":"focus","d":{}} {}`,
		"repeated member":   `{"op":"focus","d":{},"op":"ack"}`,
		"repeated below d":  `{"op":"focus","d":{"idle":true,"idle":false}}`,
		"too deep":          `{"op":"focus","d":` + strings.Repeat(`[`, 40) + strings.Repeat(`]`, 40) + `}`,
		"long id":           `{"op":"focus","id":"` + strings.Repeat("x", 65) + `","d":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ws.DecodeFrame([]byte(text), 32); !errors.Is(err, ws.ErrMalformed) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDecodeFrameCountsDepthFromTheFrame(t *testing.T) {
	text := []byte(`{"op":"focus","d":{"a":[1]}}`)
	if _, err := ws.DecodeFrame(text, 3); err != nil {
		t.Errorf("three levels under a limit of three: %v", err)
	}
	if _, err := ws.DecodeFrame(text, 2); !errors.Is(err, ws.ErrMalformed) {
		t.Errorf("three levels under a limit of two: %v", err)
	}
}

func TestDecodeClientNamesEveryFault(t *testing.T) {
	f, err := ws.DecodeFrame([]byte(`{"op":"focus","id":"7","d":{"thread_ids":["x"],"idle":"yes","more":1}}`), 32)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.DecodeClient()
	got := map[string]string{}
	for _, fault := range errs.As(err).Fields {
		got[fault.Pointer] = fault.Code
	}
	for pointer, code := range map[string]string{"/thread_ids/0": "malformed", "/idle": "wrong_type", "/more": "unknown_member"} {
		if got[pointer] != code {
			t.Errorf("%s: got %q, want %q (all: %v)", pointer, got[pointer], code, got)
		}
	}
}

func TestDecodeClientGivesTheTypeOfTheOp(t *testing.T) {
	f, err := ws.DecodeFrame([]byte(`{"op":"ack","d":{"seq":12}}`), 32)
	if err != nil {
		t.Fatal(err)
	}
	v, err := f.DecodeClient()
	if err != nil {
		t.Fatal(err)
	}
	if ack, ok := v.(*ws.Ack); !ok || ack.Seq != 12 {
		t.Errorf("got %#v", v)
	}
	if _, err := (ws.Frame{Op: "hello", D: []byte(`{}`)}).DecodeClient(); !errors.Is(err, ws.ErrUnknownOp) {
		t.Errorf("an op of the server from a client: %v", err)
	}
}

func TestEncodeFrameLeavesOutAnAbsentID(t *testing.T) {
	raw, err := ws.EncodeFrame(ws.OpCatchupComplete, "", ws.CatchupComplete{Cursor: 3})
	if err != nil || string(raw) != `{"op":"catchup.complete","d":{"cursor":3}}` {
		t.Errorf("got %s, %v", raw, err)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add([]byte(`{"op":"identify","id":"1","d":{"token":"t","protocol_version":1,"client":{"name":"n","version":"1","platform":"web"}}}`))
	f.Add([]byte(`{"op":"heartbeat","d":{"agent":{"state":"online"}}}`))
	f.Add([]byte(`{"op":"run.update","d":{"patch":{"steps":{"a":{}}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		frame, err := ws.DecodeFrame(raw, 32)
		if err != nil {
			if !errors.Is(err, ws.ErrMalformed) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		v, err := frame.DecodeClient()
		if err != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("a decoded payload cannot be written: %v", err)
		}
		if _, err := (ws.Frame{Op: frame.Op, D: again}).DecodeClient(); err != nil {
			t.Fatalf("a payload is refused after a round: %v", err)
		}
	})
}
