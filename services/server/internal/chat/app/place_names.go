// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
)

var _ authz.PlaceNames = (*RightsSource)(nil)

// PlaceName implements authz.PlaceNames.
func (s *RightsSource) PlaceName(ctx context.Context, t authz.Target) (string, error) {
	switch t.Kind {
	case "space":
		space, err := s.spaces.Get(ctx, t.ID)
		_, err = present(err)
		return space.Name, err
	case "channel":
		c, err := s.channels.Get(ctx, t.ID)
		_, err = present(err)
		return c.Name, err
	default:
		return "", nil
	}
}
