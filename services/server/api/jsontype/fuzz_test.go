// SPDX-License-Identifier: Apache-2.0

package jsontype_test

import (
	"encoding/json"
	"testing"

	"github.com/OWNER/bothy/services/server/api/jsontype"
)

// FuzzMergePatch holds that a patch says of each member exactly what its text says: absent,
// null or a value; and that it means the same after being written again.
func FuzzMergePatch(f *testing.F) {
	for _, text := range []string{`{}`, `{"title":null}`, `{"title":"a","size":3}`, `{"title":1}`, `{"size":1e400}`, `{"Title":"x"}`, `{"title":"a","title":null}`, `[]`} {
		f.Add([]byte(text))
	}
	type patch struct {
		Title jsontype.Nullable[string] `json:"title,omitzero"`
		Size  jsontype.Nullable[int64]  `json:"size,omitzero"`
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p patch
		if json.Unmarshal(text, &p) != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", text, err)
		}
		var q patch
		if err := json.Unmarshal(again, &q); err != nil || q != p {
			t.Fatalf("%s became %s: %+v and %+v, %v", text, again, p, q, err)
		}
		if p.Title.Set != (p.Title.Null || p.Title.Ptr() != nil) || p.Size.Set != (p.Size.Null || p.Size.Ptr() != nil) {
			t.Fatalf("%s: %+v is neither absent, null nor a value", text, p)
		}
	})
}

// FuzzTime holds that every time that is taken can be given back.
func FuzzTime(f *testing.F) {
	for _, text := range []string{`"2026-11-30T09:15:00Z"`, `"9999-12-31T23:59:59-10:00"`, `"0000-01-01T00:00:00+10:00"`, `"0001-01-01T00:00:00Z"`, `"0001-01-01T00:00:00.0004Z"`, `"2026-02-29T00:00:00Z"`, `null`, `7`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var at, again jsontype.Time
		if json.Unmarshal(text, &at) != nil {
			return
		}
		written, err := json.Marshal(at)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", text, err)
		}
		if at.IsZero() {
			t.Fatalf("%s became no time at all", text)
		}
		if err := json.Unmarshal(written, &again); err != nil || !again.Equal(at.Time) {
			t.Fatalf("%s became %s: %v", text, written, err)
		}
	})
}
