// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// RunAppend is text added to an output at an offset in code points.
type RunAppend struct {
	Target string
	Offset int
	Text   string
}

// RunPatch is one stored step of progress: a merge patch in JSON, or appended text.
type RunPatch struct {
	Version int64
	Patch   []byte
	Append  []RunAppend
}

// RunProgress is what has gathered for one run: patches from a version to a newer one.
type RunProgress struct {
	RunID, ThreadID, ChannelID, SpaceID ids.ID
	// AgentID is who makes the progress.
	AgentID              ids.ID
	BaseVersion, Version int64
	Patches              []RunPatch
	// Bytes is about what the patches weigh.
	Bytes int
}

// Gather adds a later progress of the same run. Text appended to one output directly behind
// the last is joined to it, so a stream of small pieces leaves as one.
func (p *RunProgress) Gather(next RunProgress) {
	if len(p.Patches) == 0 {
		*p = next
		return
	}
	for _, patch := range next.Patches {
		p.add(patch)
	}
	p.Version = next.Version
	p.Bytes += next.Bytes
}

func (p *RunProgress) add(patch RunPatch) {
	last := &p.Patches[len(p.Patches)-1]
	if len(patch.Patch) == 0 && len(last.Patch) == 0 && len(patch.Append) == 1 && len(last.Append) == 1 {
		a, b := &last.Append[0], patch.Append[0]
		if a.Target == b.Target && a.Offset+utf8.RuneCountInString(a.Text) == b.Offset {
			a.Text += b.Text
			last.Version = patch.Version
			return
		}
	}
	p.Patches = append(p.Patches, patch)
}
