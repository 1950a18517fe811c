// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/gateway/domain"
)

func TestParseFrame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"plain":                     {`{"op":"heartbeat","d":{}}`, true},
		"with an id":                {`{"op":"focus","id":"7","d":{"thread_ids":[]}}`, true},
		"without d":                 {`{"op":"heartbeat"}`, true},
		"same member at two places": {`{"op":"x","d":{"a":{"b":1},"c":{"b":2},"l":[{"b":1},{"b":2}]}}`, true},
		"empty text":                {``, false},
		"an array":                  {`[]`, false},
		"a string":                  {`"op"`, false},
		"no op":                     {`{"d":{}}`, false},
		"empty op":                  {`{"op":""}`, false},
		"unknown member":            {`{"op":"x","e":1}`, false},
		"op twice":                  {`{"op":"x","op":"y"}`, false},
		"member twice inside":       {`{"op":"x","d":{"a":1,"b":[],"a":2}}`, false},
		"text behind":               {`{"op":"x"}{}`, false},
		"ends early":                {`{"op":"x","d":{`, false},
		"member in capitals":        {`{"OP":"x"}`, false},
		"op twice in two cases":     {`{"op":"x","Op":"y"}`, false},
		"both cases inside":         {`{"op":"x","d":{"a":1,"A":2}}`, true},
		"longest id":                {`{"op":"x","id":"` + strings.Repeat("é", 64) + `"}`, true},
		"id too long":               {`{"op":"x","id":"` + strings.Repeat("a", 65) + `"}`, false},
		"invalid UTF-8":             {"{\"op\":\"\xff\"}", false},
		"deep enough":               {`{"op":"x","d":` + strings.Repeat("[", 7) + strings.Repeat("]", 7) + `}`, true},
		"too deep":                  {`{"op":"x","d":` + strings.Repeat("[", 8) + strings.Repeat("]", 8) + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := domain.ParseFrame([]byte(tc.text), 8)
			if tc.ok && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !tc.ok && !errors.Is(err, domain.ErrMalformed) {
				t.Errorf("got %v, want ErrMalformed", err)
			}
		})
	}
}

func TestDataHasTheNamesOfItsMembersExactly(t *testing.T) {
	t.Parallel()
	type inner struct {
		Name string `json:"name"`
	}
	type data struct {
		Token string          `json:"token"`
		Inner *inner          `json:"inner"`
		List  []inner         `json:"list"`
		Texts []string        `json:"texts"`
		Raw   json.RawMessage `json:"raw,omitempty"`
	}
	for text, ok := range map[string]bool{
		`{"token":"a","inner":{"name":"b"},"list":[{"name":"c"}],"texts":["A"],"raw":{"Name":1,"name":2}}`: true,
		`{"token":"a","inner":null,"list":null,"raw":null}`:                                                true,
		`{}`:                        true,
		`{"Token":"a"}`:             false,
		`{"token":"a","TOKEN":"b"}`: false,
		`{"inner":{"Name":"b"}}`:    false,
		`{"list":[{},{"NAME":""}]}`: false,
		`{"other":1}`:               false,
		`{"token":1}`:               false,
	} {
		var d data
		if err := domain.DecodeStrict([]byte(text), &d); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestCloseReasonFitsItsFrame(t *testing.T) {
	t.Parallel()
	c := domain.Close{Code: domain.CloseServerRestart, Detail: strings.Repeat("x", 200)}
	if got := len(c.Reason()); got != 123 {
		t.Errorf("reason of %d bytes, want 123", got)
	}
	if got := (domain.Close{Code: domain.CloseTooSlow}).Reason(); got != "too_slow" {
		t.Errorf("reason %q", got)
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add([]byte(`{"op":"heartbeat","d":{"cursor":1}}`))
	f.Add([]byte(`{"op":"x","d":[[[[]]]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		frame, err := domain.ParseFrame(text, 32)
		if err != nil {
			return
		}
		if frame.Op == "" || !json.Valid(text) {
			t.Fatalf("accepted %q", text)
		}
	})
}
