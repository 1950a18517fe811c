// SPDX-License-Identifier: Apache-2.0

package paging_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
)

type place struct {
	Key string `json:"k"`
}

func TestACursorComesBackAsItWent(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "1000", "ü", `\u0000`, "\u2028"} {
		cursor, err := paging.Encode("things", place{key})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := paging.Decode[place]("things", cursor); err != nil || got.Key != key {
			t.Errorf("%q came back as %q, %v", key, got.Key, err)
		}
		if _, err := paging.Decode[place]("others", cursor); !errors.Is(err, paging.ErrCursor) {
			t.Errorf("another list: %v", err)
		}
	}
}

func TestWhatNoListMadeIsNoCursor(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "null", "[]", `{"l":"things","p":1}`, `{"l":"things","p":{"k":"a\u0000"}}`, `{"l":"things","p":{"k":""}}x`} {
		if got, err := paging.Decode[place]("things", base64.RawURLEncoding.EncodeToString([]byte(raw))); !errors.Is(err, paging.ErrCursor) {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
	if _, err := paging.Decode[place]("things", "%"); !errors.Is(err, paging.ErrCursor) {
		t.Errorf("no base64: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("eyJsIjoidGhpbmdzIiwicCI6eyJrIjoiYSJ9fQ")
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		got, err := paging.Decode[place]("things", cursor)
		if err == nil {
			for _, r := range got.Key {
				if r == 0 {
					t.Errorf("%q passes", cursor)
				}
			}
		}
	})
}
