// SPDX-License-Identifier: Apache-2.0

package authz

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// PrincipalNames tells what principals are called, for explanations. The module identity
// implements it.
type PrincipalNames interface {
	// PrincipalNames gives display names; unknown IDs are left out.
	PrincipalNames(ctx context.Context, principals []ids.ID) (map[ids.ID]string, error)
}

// PlaceNames tells what places are called, for explanations. The module chat implements it.
type PlaceNames interface {
	// PlaceName gives the name of a space or channel, empty when it has none.
	PlaceName(ctx context.Context, t Target) (string, error)
}
