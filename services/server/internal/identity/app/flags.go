// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

var _ instance.FlagUserSource = (*Service)(nil)

// UnknownPeople implements instance.FlagUserSource.
func (s *Service) UnknownPeople(ctx context.Context, list []ids.ID) ([]ids.ID, error) {
	if len(list) == 0 {
		return nil, nil
	}
	accounts, err := s.Store.AccountsByID(ctx, list)
	if err != nil {
		return nil, err
	}
	known := make(map[ids.ID]bool, len(accounts))
	for _, a := range accounts {
		known[a.ID] = a.Kind == actor.KindPerson
	}
	var unknown []ids.ID
	for _, id := range list {
		if !known[id] {
			unknown = append(unknown, id)
		}
	}
	return unknown, nil
}
