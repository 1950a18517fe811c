// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"testing"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

func FuzzETags(f *testing.F) {
	for _, s := range []string{`"1"`, `"9223372036854775807"`, `W/"1"`, `1`, `""`, `*`, `"1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseETag(s)
		if err != nil {
			if !errs.Is(err, errs.CodeVersionConflict) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if again, err := parseETag(etag(v)); err != nil || again != v {
			t.Fatalf("%q: %d became %d, %v", s, v, again, err)
		}
	})
}
