// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// place is a thread with its channel as read under the place lock. What it says of the
// channel holds until the end of the unit, so the unit keeps it: the decision about rights
// and the numbering of the message then need no further read.
type place struct {
	thread  domain.Thread
	channel domain.Channel
}

// Places a unit writes in are few; a slice is searched faster than a map is made.
type placesKey struct{}

func holdPlace(ctx context.Context, p place) {
	u := txn.Current(ctx)
	if u == nil {
		return
	}
	list, _ := u.Value(placesKey{}).(*[]place)
	if list == nil {
		list = &[]place{}
		u.SetValue(placesKey{}, list)
	}
	for i := range *list {
		if (*list)[i].thread.ID == p.thread.ID {
			(*list)[i] = p
			return
		}
	}
	*list = append(*list, p)
}

func heldPlace(ctx context.Context, thread ids.ID) (place, bool) {
	for _, p := range heldPlaces(ctx) {
		if p.thread.ID == thread {
			return p, true
		}
	}
	return place{}, false
}

func heldChannel(ctx context.Context, channel ids.ID) (domain.Channel, bool) {
	for _, p := range heldPlaces(ctx) {
		if p.channel.ID == channel {
			return p.channel, true
		}
	}
	return domain.Channel{}, false
}

func heldPlaces(ctx context.Context) []place {
	if u := txn.Current(ctx); u != nil {
		if list, _ := u.Value(placesKey{}).(*[]place); list != nil {
			return *list
		}
	}
	return nil
}

// forgetPlace makes the next look at a thread read it again.
func forgetPlace(ctx context.Context, thread ids.ID) {
	if u := txn.Current(ctx); u != nil {
		if list, _ := u.Value(placesKey{}).(*[]place); list != nil {
			for i := range *list {
				if (*list)[i].thread.ID == thread {
					*list = append((*list)[:i], (*list)[i+1:]...)
					return
				}
			}
		}
	}
}

// forgetPlaces is for units that change a channel.
func forgetPlaces(ctx context.Context) {
	if u := txn.Current(ctx); u != nil {
		u.SetValue(placesKey{}, nil)
	}
}
