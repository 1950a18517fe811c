// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"

	"github.com/OWNER/bothy/services/server/api/rest"
)

// EndViewAs implements rest.StrictServerInterface.
func (h *Handlers) EndViewAs(ctx context.Context, r rest.EndViewAsRequestObject) (rest.EndViewAsResponseObject, error) {
	if err := h.service.EndViewAs(ctx, r.SessionID); err != nil {
		return nil, err
	}
	return rest.EndViewAs204Response{}, nil
}
