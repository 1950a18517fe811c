// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync"
)

// index finds the connected principals an event can concern, so that the work of an event
// grows with them and not with all that are connected. It may name too many, since each is
// decided on, and never too few. The lock of the hub guards it.
//
// A principal stands at every space it sees as a whole and at every channel it sees for
// another reason. It is placed anew when its rights change. What it comes to see by taking part, such
// as a direct channel, it is shown by an event of that place: everybody is asked about such
// an event, and who is admitted stands there from then on.
type index struct {
	delivery authorize.Delivery
	byPlace  map[ids.ID]map[ids.ID]struct{}
	places   map[ids.ID][]ids.ID
	// everywhere are those who see everything, and those whose rights are not in memory.
	everywhere map[ids.ID]struct{}
}

func newIndex(d authorize.Delivery) *index {
	return &index{delivery: d, byPlace: map[ids.ID]map[ids.ID]struct{}{}, places: map[ids.ID][]ids.ID{}, everywhere: map[ids.ID]struct{}{}}
}

// put places a principal by its rights of this moment.
func (x *index) put(principal ids.ID) {
	x.remove(principal)
	scope, known := x.delivery.Visible(principal)
	if !known || scope.All {
		x.everywhere[principal] = struct{}{}
		return
	}
	for _, space := range scope.Spaces {
		x.add(principal, space)
	}
	for _, channel := range scope.Channels {
		x.add(principal, channel)
	}
}

// refill places a principal whose rights were not in memory, if they are now.
func (x *index) refill(principal ids.ID) {
	if _, all := x.everywhere[principal]; all {
		x.put(principal)
	}
}

func (x *index) add(principal, place ids.ID) {
	set := x.byPlace[place]
	if set == nil {
		set = map[ids.ID]struct{}{}
		x.byPlace[place] = set
	}
	if _, there := set[principal]; !there {
		set[principal] = struct{}{}
		x.places[principal] = append(x.places[principal], place)
	}
}

func (x *index) remove(principal ids.ID) {
	for _, place := range x.places[principal] {
		delete(x.byPlace[place], principal)
		if len(x.byPlace[place]) == 0 {
			delete(x.byPlace, place)
		}
	}
	delete(x.places, principal)
	delete(x.everywhere, principal)
}

// saw notes that a principal was admitted to an event of a place.
func (x *index) saw(principal, place ids.ID) {
	if _, all := x.everywhere[principal]; !all {
		x.add(principal, place)
	}
}

// audience is where the receivers of an event are to be looked for.
type audience struct {
	channel, space ids.ID
	// place is set for an event that shows a place itself; everybody is asked.
	place ids.ID
	all   bool
}

// audienceOf finds the place at which an event is decided on, by the structure in memory.
func (x *index) audienceOf(e eventlog.Record) audience {
	r, placed := sync.ReceivedAt(e)
	if !placed {
		return audience{all: true}
	}
	channel, space, known := x.delivery.Located(r)
	switch {
	case !known:
		return audience{all: true}
	case e.Resource.Type == "channel" && e.Resource.ID == channel:
		return audience{all: true, place: channel}
	case e.Resource.Type == "space" && e.Resource.ID == space:
		return audience{all: true, place: space}
	default:
		return audience{channel: channel, space: space}
	}
}

// each calls fn once for every principal at the place of an audience.
func (x *index) each(a audience, fn func(principal ids.ID)) {
	for principal := range x.everywhere {
		fn(principal)
	}
	inChannel := x.byPlace[a.channel]
	for principal := range inChannel {
		fn(principal)
	}
	for principal := range x.byPlace[a.space] {
		if _, done := inChannel[principal]; !done {
			fn(principal)
		}
	}
}
