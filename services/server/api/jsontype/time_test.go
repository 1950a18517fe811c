// SPDX-License-Identifier: Apache-2.0

package jsontype_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/api/jsontype"
)

func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	zone := time.FixedZone("odd", 5*3600+45*60)
	for want, in := range map[string]time.Time{
		`"2026-11-30T09:15:00.000Z"`: time.Date(2026, 11, 30, 15, 0, 0, 0, zone),
		`"2026-11-30T09:15:00.120Z"`: time.Date(2026, 11, 30, 9, 15, 0, 120_999_999, time.UTC),
	} {
		got, err := json.Marshal(jsontype.At(in))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
		var back jsontype.Time
		if err := json.Unmarshal(got, &back); err != nil || !back.Equal(jsontype.At(in).Time) {
			t.Errorf("%s came back as %v, %v", want, back, err)
		}
	}
}

func TestNullableTellsAbsentFromNull(t *testing.T) {
	type patch struct {
		Title jsontype.Nullable[string] `json:"title,omitzero"`
	}
	for text, want := range map[string]jsontype.Nullable[string]{
		`{}`:             {},
		`{"title":null}`: jsontype.Null[string](),
		`{"title":""}`:   jsontype.Of(""),
		`{"title":"a"}`:  jsontype.Of("a"),
	} {
		var p patch
		if err := json.Unmarshal([]byte(text), &p); err != nil || p.Title != want {
			t.Errorf("%s: got %+v, %v", text, p.Title, err)
		}
		if again, err := json.Marshal(p); err != nil || string(again) != text {
			t.Errorf("%s was written as %s, %v", text, again, err)
		}
	}
}
