// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Observe implements authorize.Delivery.
func (s *Service) Observe(_ context.Context, e authorize.Observed) {
	if e.Type == EventAccessChanged {
		version, told, validUntil, err := parseAccessChanged(e.Payload)
		if err != nil {
			s.log.Error("an event of rights cannot be read; the entry is dropped", "seq", e.Seq, "error", err)
			version, told = e.PermissionVersion, nil
		}
		s.cache.change(e.PrincipalID, version, told, validUntil)
		return
	}
	switch e.Type {
	case "space.created", "space.updated", "space.archived":
		s.observeSpace(e)
	case "channel.created", "channel.updated", "channel.archived":
		s.observeChannel(e)
	case "thread.moved":
		s.cache.move(e.ThreadID, e.ChannelID)
	}
	s.cache.passed(e.PermissionVersion)
}

func (s *Service) observeSpace(e authorize.Observed) {
	var p struct {
		ID       ids.ID           `json:"id"`
		Archived *json.RawMessage `json:"archived"`
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil || p.ID.IsZero() {
		s.log.Error("an event of a space cannot be read", "seq", e.Seq, "error", err)
		return
	}
	sp := domain.Space{ID: p.ID, Archived: p.Archived != nil}
	s.cache.restructure(func(st *domain.Structure) *domain.Structure { return st.WithSpace(sp) })
}

func (s *Service) observeChannel(e authorize.Observed) {
	var p struct {
		ID       ids.ID           `json:"id"`
		Kind     string           `json:"kind"`
		SpaceID  *ids.ID          `json:"space_id"`
		Inherits bool             `json:"inherits"`
		ReadOnly *json.RawMessage `json:"read_only"`
		Archived *json.RawMessage `json:"archived"`
		Operator struct {
			AgentID *ids.ID `json:"agent_id"`
		} `json:"operator"`
		Participants []struct {
			PrincipalID ids.ID  `json:"principal_id"`
			LeftAt      *string `json:"left_at"`
		} `json:"participants"`
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil || p.ID.IsZero() {
		s.log.Error("an event of a channel cannot be read", "seq", e.Seq, "error", err)
		return
	}
	c := domain.Channel{
		ID: p.ID, SpaceID: ids.Deref(p.SpaceID), Direct: p.Kind == "dm", Inherits: p.Inherits,
		Archived: p.Archived != nil, ReadOnly: p.ReadOnly != nil, Operator: ids.Deref(p.Operator.AgentID),
	}
	for _, m := range p.Participants {
		if m.LeftAt == nil {
			c.Participants = append(c.Participants, m.PrincipalID)
		}
	}
	s.cache.restructure(func(st *domain.Structure) *domain.Structure { return st.WithChannel(c) })
}

// Admit implements authorize.Delivery.
func (s *Service) Admit(principal ids.ID, action authorize.Action, r authorize.Resource, version int64) authorize.Verdict {
	spec, ok := s.spec(action)
	if !ok {
		return authorize.Denied
	}
	e := s.cache.get(principal, version, s.generation(), s.clock.Now())
	st := s.cache.structure.Load()
	if e == nil || st == nil {
		return authorize.Unknown
	}
	if !e.Active {
		return authorize.Denied
	}
	q := request{spec: spec, kind: actor.Kind(e.Kind), caller: principal, r: r}
	s.placeInMemory(&q, st)
	if q.meets(e) {
		other := s.cache.get(r.ID, 0, s.generation(), s.clock.Now())
		switch {
		case other != nil:
			q.shared = shares(e, other, st)
		case version > 0: // What is stored can wait until Fill has read the other.
			s.cache.want(principal, r.ID)
			return authorize.Unknown
		default: // A signal cannot: members count as knowing an agent whose rights are not here.
			q.shared = member(e)
		}
	}
	if judge(&q, e).code != "" {
		return authorize.Denied
	}
	return authorize.Admitted
}

// placeInMemory is locate without any query. A thread lies where it lies now, whatever an
// older event tells.
func (s *Service) placeInMemory(q *request, st *domain.Structure) {
	channel, space := q.r.ChannelID, q.r.SpaceID
	switch q.r.Kind {
	case authorize.ResourceInstance:
		q.p = place{kind: domain.TargetInstance, found: true}
		return
	case authorize.ResourceChannel:
		if channel.IsZero() {
			channel = q.r.ID
		}
	case authorize.ResourceSpace:
		if space.IsZero() {
			space = q.r.ID
		}
	case authorize.ResourceThread:
		if now, moved := s.cache.channelOf(q.r.ID); moved {
			channel = now
		}
	case authorize.ResourceGrant, authorize.ResourceTarget:
		if channel.IsZero() && space.IsZero() {
			q.p = place{kind: domain.TargetInstance, found: true}
			return
		}
	case authorize.ResourceMessage, authorize.ResourceRun, authorize.ResourceAgent:
	default:
		return
	}
	if !channel.IsZero() {
		c, ok := st.Channel(channel)
		q.p = place{kind: domain.TargetChannel, found: ok, channel: c}
	} else if !space.IsZero() {
		sp, ok := st.Space(space)
		q.p = place{kind: domain.TargetSpace, found: ok, space: sp}
	}
}

// Located implements authorize.Delivery.
func (s *Service) Located(r authorize.Resource) (channel, space ids.ID, known bool) {
	st := s.cache.structure.Load()
	if st == nil {
		return channel, space, false
	}
	q := request{r: r}
	s.placeInMemory(&q, st)
	switch {
	case !q.p.found:
		return channel, space, false
	case q.p.kind == domain.TargetChannel:
		return q.p.channel.ID, q.p.channel.SpaceID, true
	case q.p.kind == domain.TargetSpace:
		return channel, q.p.space.ID, true
	default:
		return channel, space, false
	}
}

// Fill implements authorize.Delivery.
func (s *Service) Fill(ctx context.Context, principal ids.ID) error {
	version, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
	if err != nil {
		return sourceError("delivery", err)
	}
	for _, other := range s.cache.wanted(principal) {
		if _, err := s.load(ctx, other, version, false); err != nil {
			return sourceError("delivery", err)
		}
	}
	if _, err = s.load(ctx, principal, version, true); err != nil {
		s.cache.release(principal)
	}
	return sourceError("delivery", err)
}

// Release implements authorize.Delivery.
func (s *Service) Release(principal ids.ID) { s.cache.release(principal) }

// Visible implements authorize.Delivery.
func (s *Service) Visible(principal ids.ID) (authorize.Scope, bool) {
	e := s.cache.get(principal, 0, s.generation(), s.clock.Now())
	st := s.cache.structure.Load()
	if e == nil || st == nil {
		return authorize.Scope{}, false
	}
	return toScope(e.Reach(st), e.Version), true
}

// ChannelOf implements authorize.Delivery. It knows the threads that have moved since the
// process began; all others lie where their events say.
func (s *Service) ChannelOf(thread ids.ID) (ids.ID, bool) { return s.cache.channelOf(thread) }
