// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var _ authz.PrincipalNames = (*Service)(nil)

// PrincipalNames implements authz.PrincipalNames.
func (s *Service) PrincipalNames(ctx context.Context, principals []ids.ID) (map[ids.ID]string, error) {
	found, err := s.ByID(ctx, principals)
	if err != nil {
		return nil, err
	}
	out := make(map[ids.ID]string, len(found))
	for id, p := range found {
		out[id] = p.DisplayName
	}
	return out, nil
}
