// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"slices"
)

// JobKinds lists the kinds of jobs that the process has registered. It is complete once the
// server is ready.
func (s *Server) JobKinds() []string { return slices.Sorted(maps.Keys(s.jobs.Kinds())) }
