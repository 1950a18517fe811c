// SPDX-License-Identifier: Apache-2.0

package permissions

import "slices"

// Clone gives a world that changes by itself.
func (w *World) Clone() *World {
	out := &World{
		Now: w.Now, Principals: copies(w.Principals), Groups: copies(w.Groups), Memberships: copies(w.Memberships),
		Grants: copies(w.Grants), Spaces: copies(w.Spaces), Channels: copies(w.Channels),
	}
	for _, c := range out.Channels {
		c.Participants = slices.Clone(c.Participants)
	}
	return out
}

func copies[T any](list []*T) []*T {
	out := make([]*T, len(list))
	for i, v := range list {
		one := *v
		out[i] = &one
	}
	return out
}
