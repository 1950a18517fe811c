// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// SnapshotItem is one principal in the form of the contract.
type SnapshotItem struct {
	ID      ids.ID
	Payload json.RawMessage
}

// Snapshot gives the parts of the snapshot that this module knows.
type Snapshot struct{ service *app.Service }

// NewSnapshot makes it.
func NewSnapshot(service *app.Service) *Snapshot { return &Snapshot{service} }

// Self is the caller's own account.
func (s *Snapshot) Self(ctx context.Context) (json.RawMessage, error) {
	view, err := s.service.Self(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(self(view))
	if err != nil {
		return nil, fmt.Errorf("encode the own account: %w", err)
	}
	return raw, nil
}

// Principals are the active ones that the caller may see, at most limit.
func (s *Snapshot) Principals(ctx context.Context, limit int) (items []SnapshotItem, complete bool, err error) {
	list, complete, err := s.service.VisibleShown(ctx, limit)
	if err != nil {
		return nil, false, err
	}
	items = make([]SnapshotItem, len(list))
	for i, one := range list {
		raw, err := json.Marshal(directoryEntry(one))
		if err != nil {
			return nil, false, fmt.Errorf("encode a principal: %w", err)
		}
		items[i] = SnapshotItem{ID: one.ID, Payload: raw}
	}
	return items, complete, nil
}
