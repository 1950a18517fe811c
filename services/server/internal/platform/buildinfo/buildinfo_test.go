// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestDescribeNamesVersionAndCommit(t *testing.T) {
	b := &debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"},
		{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
		{Key: "vcs.modified", Value: "true"},
	}}
	for _, c := range []struct {
		name, version string
		info          *debug.BuildInfo
		want          string
	}{
		{"release", "v1.4.0", b, "bothy 1.4.0 (0123456789ab+changes) go1.26"},
		{"no version", "", b, "bothy 0.0.0-dev (0123456789ab+changes) go1.26"},
		{"nothing known", "", nil, "bothy 0.0.0-dev"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(c.version, c.info).String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
