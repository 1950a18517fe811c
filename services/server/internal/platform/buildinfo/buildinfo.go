// SPDX-License-Identifier: Apache-2.0

// Package buildinfo says which build of Bothy is running.
//
// The release build sets the version with the linker; other builds take what the Go tool
// recorded about the working copy. The package knows nothing else: what a version means
// for compatibility is decided by its readers.
package buildinfo

import (
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// version is set by the release build: -ldflags "-X <this package>.version=1.4.0".
var version string

// Info describes the running binary.
type Info struct {
	// Version is a semantic version without a leading v; 0.0.0-dev when none was set.
	Version string
	// Revision is the commit, empty when the build did not see a repository.
	Revision string
	// Time is the time of that commit; zero when unknown.
	Time time.Time
	// Modified says that the working copy held changes beyond the commit.
	Modified bool
	// Go is the version of the toolchain.
	Go string
}

// Development is the version of a build that no release made.
const Development = "0.0.0-dev"

// Current is the description of the running binary, read once.
var Current = sync.OnceValue(func() Info {
	info, _ := debug.ReadBuildInfo()
	return describe(version, info)
})

func describe(version string, b *debug.BuildInfo) Info {
	out := Info{Version: strings.TrimPrefix(version, "v")}
	if out.Version == "" {
		out.Version = Development
	}
	if b == nil {
		return out
	}
	out.Go = b.GoVersion
	for _, s := range b.Settings {
		switch s.Key {
		case "vcs.revision":
			out.Revision = s.Value
		case "vcs.time":
			// An unreadable time is an unknown one; nothing depends on it.
			out.Time, _ = time.Parse(time.RFC3339, s.Value)
		case "vcs.modified":
			out.Modified = s.Value == "true"
		}
	}
	return out
}

// String is the one line that the command "version" prints.
func (i Info) String() string {
	parts := []string{"bothy", i.Version}
	if i.Revision != "" {
		revision := i.Revision
		if len(revision) > 12 {
			revision = revision[:12]
		}
		if i.Modified {
			revision += "+changes"
		}
		parts = append(parts, "("+revision+")")
	}
	if i.Go != "" {
		parts = append(parts, i.Go)
	}
	return strings.Join(parts, " ")
}
