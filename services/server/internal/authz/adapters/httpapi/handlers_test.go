// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"testing"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

func TestTargetsAreReadFromTheirText(t *testing.T) {
	const id = "0199c2a0-000b-7000-8000-00000000000b"
	for text, want := range map[string]string{
		"instance": "instance", "space:" + id: "space", "channel:" + id: "channel", "host:" + id: "host",
		"": "", "space": "", "space:": "", "thread:" + id: "", "instance:" + id: "", "space:" + id + "x": "", ":" + id: "",
	} {
		got, err := parseTarget("query:target", text)
		if string(got.Kind) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func FuzzTargets(f *testing.F) {
	f.Add("instance")
	f.Add("space:0199c2a0-000b-7000-8000-00000000000b")
	f.Add("channel:zz")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTarget("query:target", text)
		if err != nil {
			if !errs.Is(err, errs.CodeValidationFailed) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again := string(got.Kind)
		if got.Kind != domain.TargetInstance {
			again += ":" + got.ID.String()
		}
		if again != text {
			t.Fatalf("%q became %q", text, again)
		}
	})
}
