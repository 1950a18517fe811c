// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Channels has the use cases of channels.
type Channels struct{ Deps }

// NewChannels makes the use cases.
func NewChannels(d Deps) *Channels { return &Channels{d} }

// NewChannel describes a channel to be created.
type NewChannel struct {
	SpaceID     ids.ID
	Kind        string
	Name, Topic string
	Icon        *string
	Inherits    bool
	// AfterID is the channel it stands behind; zero means at the end.
	AfterID ids.ID
}

// ChannelPatch changes a channel. A nil member stays; a pointer to nil clears.
type ChannelPatch struct {
	Name, Topic     *string
	Icon            **string
	Inherits        *bool
	SlowModeSeconds *int
	Forum           *ForumPatch
}

// ForumPatch changes what only forums have.
type ForumPatch struct {
	DefaultSort     *string
	Guidelines      *string
	DefaultReaction **string
}

// List gives a page of the channels the actor may see, in their order.
func (s *Channels) List(ctx context.Context, q ChannelQuery) (list []domain.Channel, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if q.Visible, err = s.Authorizer.Scope(ctx, authorize.ActionChannelRead); err != nil {
			return fmt.Errorf("find the visible channels: %w", err)
		}
		if list, err = s.Channels.Page(ctx, q); err != nil {
			return fmt.Errorf("list channels: %w", err)
		}
		return nil
	})
	return list, err
}

// Get reads one channel.
func (s *Channels) Get(ctx context.Context, id ids.ID) (out domain.Channel, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelRead, authorize.Channel(id)); err != nil {
			return err
		}
		out, err = s.Channels.Get(ctx, id)
		return err
	})
	return out, err
}

// Create makes a channel, and with a text channel its main thread.
func (s *Channels) Create(ctx context.Context, n NewChannel) (out domain.Channel, err error) {
	var faults errs.Validation
	names := s.names()
	n.Name = names.Name(&faults, "/name", n.Name)
	n.Topic = names.Topic(&faults, "/topic", n.Topic)
	if err := faults.Err(); err != nil {
		return out, err
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		space, err := s.Spaces.Lock(ctx, n.SpaceID)
		if err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelCreate, authorize.Space(n.SpaceID)); err != nil {
			return err
		}
		if space.ArchivedAt != nil {
			return errs.Forbidden(reasonTargetArchived)
		}
		out, err = s.create(ctx, space, n, actor.From(ctx).ID)
		return err
	})
	return out, err
}

// create needs the row of the space to be held.
func (s *Channels) create(ctx context.Context, space domain.Space, n NewChannel, by ids.ID) (domain.Channel, error) {
	siblings, err := s.Channels.Siblings(ctx, space.ID)
	if err != nil {
		return domain.Channel{}, fmt.Errorf("read the order of channels: %w", err)
	}
	if domain.Present(siblings) >= s.Config.MaxPerSpace {
		return domain.Channel{}, errs.Conflict(reasonLimitReached, fmt.Sprintf("A space may have %d channels.", s.Config.MaxPerSpace))
	}
	key, err := placeKey(ctx, siblings, n.AfterID, s.rekey)
	if err != nil {
		return domain.Channel{}, err
	}
	now := txn.Current(ctx).Now()
	out := domain.Channel{
		ID: ids.NewAt(now), SpaceID: space.ID, Kind: n.Kind, Name: n.Name, Topic: n.Topic, Icon: n.Icon, Key: key, Inherits: n.Inherits,
		OperatorMode: domain.OperatorInherit, SpaceOperatorID: space.OperatorID,
		Behavior: domain.Behavior{
			TriggerRule: chat.TriggerMention, AgentSources: "any", Transcription: "inherit", Skills: []domain.Skill{},
		},
		Forum:         domain.Forum{DefaultSort: "activity"},
		ConfigVersion: 1, BehaviorVersion: 1, Version: 1, CreatedBy: by, CreatedAt: now, UpdatedAt: now,
	}
	events := []eventlog.Event{}
	var main domain.Thread
	if n.Kind == domain.KindText {
		main = domain.Thread{
			ID: ids.NewAt(now), ChannelID: out.ID, SpaceID: space.ID, Kind: chat.ThreadMain, TitleSource: domain.TitleNone, State: domain.StateOpen,
			Counters: domain.Counters{First: 1, LastMessageAt: now}, ActiveAt: now, CreatedAt: now, Version: 1,
		}
		out.MainThreadID = main.ID
	}
	if err := s.Channels.Insert(ctx, out); err != nil {
		return domain.Channel{}, fmt.Errorf("insert the channel: %w", err)
	}
	events = append(events, s.channelEvent(eventChannelCreated, out))
	if n.Kind == domain.KindText {
		if err := s.Threads.Insert(ctx, main); err != nil {
			return domain.Channel{}, fmt.Errorf("insert the main thread: %w", err)
		}
		events = append(events, s.threadEvent(eventThreadCreated, main))
	}
	if operator := out.Operator(); !operator.IsZero() {
		events = append(events, s.configEvent(operator, out, s.Payloads.AgentConfig(out)))
	}
	return out, s.Log.Append(ctx, events...)
}

func (s *Channels) rekey(ctx context.Context, id ids.ID, key string) error {
	if err := s.Channels.LockRow(ctx, id); err != nil {
		return err
	}
	c, err := s.Channels.Get(ctx, id)
	if err != nil {
		return err
	}
	c.Key = key
	c.Touch(txn.Current(ctx).Now(), false)
	return s.save(ctx, c, eventChannelUpdated)
}

// save writes a channel and appends its event.
func (s *Channels) save(ctx context.Context, c domain.Channel, event string) error {
	if err := s.Channels.Update(ctx, c); err != nil {
		return fmt.Errorf("update the channel: %w", err)
	}
	forgetPlaces(ctx)
	return s.Log.Append(ctx, s.channelEvent(event, c))
}

// tellOperator appends the configuration for the agent that answers in the channel.
func (s *Channels) tellOperator(ctx context.Context, c domain.Channel) error {
	operator := c.Operator()
	if operator.IsZero() {
		return nil
	}
	if c.Behavior.Skills == nil {
		var err error
		if c.Behavior.Skills, err = s.Channels.Skills(ctx, c.ID); err != nil {
			return fmt.Errorf("read the skills: %w", err)
		}
	}
	return s.Log.Append(ctx, s.configEvent(operator, c, s.Payloads.AgentConfig(c)))
}

// Update changes a channel made from the named version. Changing what it inherits is a
// change of rights.
func (s *Channels) Update(ctx context.Context, id ids.ID, version int64, p ChannelPatch) (out domain.Channel, err error) {
	var faults errs.Validation
	s.checkPatch(&faults, p)
	if err := faults.Err(); err != nil {
		return out, err
	}
	var opts []txn.Option
	if p.Inherits != nil {
		opts = append(opts, txn.WithRightsChange(txn.RightsChange{
			Action: string(authorize.ActionChannelUpdate), Targets: []txn.Target{{Kind: "channel", ID: id}},
		}))
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if out, err = s.locked(ctx, id, p.Inherits != nil); err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelUpdate, authorize.Channel(id)); err != nil {
			return err
		}
		if err := checkVersion(out.Version, version); err != nil {
			return err
		}
		config, err := apply(&out, p)
		if err != nil {
			return err
		}
		out.Touch(txn.Current(ctx).Now(), config)
		if err := s.save(ctx, out, eventChannelUpdated); err != nil || !config {
			return err
		}
		return s.tellOperator(ctx, out)
	}, opts...)
	return out, err
}

// locked reads a channel for a change; exclusive keeps everybody from writing in it.
func (s *Channels) locked(ctx context.Context, id ids.ID, exclusive bool) (domain.Channel, error) {
	if exclusive {
		if err := s.Channels.LockExclusive(ctx, id); err != nil {
			return domain.Channel{}, err
		}
	}
	if err := s.Channels.LockRow(ctx, id); err != nil {
		return domain.Channel{}, err
	}
	return s.Channels.Get(ctx, id)
}

func (s *Channels) checkPatch(faults *errs.Validation, p ChannelPatch) {
	names := s.names()
	if p.Name != nil {
		*p.Name = names.Name(faults, "/name", *p.Name)
	}
	if p.Topic != nil {
		*p.Topic = names.Topic(faults, "/topic", *p.Topic)
	}
	if p.Forum != nil && p.Forum.Guidelines != nil {
		*p.Forum.Guidelines = names.Description(faults, "/forum/guidelines", *p.Forum.Guidelines)
	}
}

// apply changes the channel and tells whether agents work with what changed.
func apply(c *domain.Channel, p ChannelPatch) (config bool, err error) {
	switch {
	case c.Archived():
		return false, errs.Forbidden(reasonTargetArchived)
	case c.Kind == domain.KindDirect && (p.Inherits != nil || p.SlowModeSeconds != nil):
		return false, errs.Conflict("dm_fixed", "A direct message cannot be changed so.")
	case p.Forum != nil && c.Kind != domain.KindForum:
		return false, errs.Conflict("channel_kind", "Only forums have these settings.")
	}
	name, topic := c.Name, c.Topic
	setIf(&c.Name, p.Name)
	setIf(&c.Topic, p.Topic)
	setIf(&c.Icon, p.Icon)
	setIf(&c.Inherits, p.Inherits)
	setIf(&c.SlowModeSeconds, p.SlowModeSeconds)
	if f := p.Forum; f != nil {
		setIf(&c.Forum.DefaultSort, f.DefaultSort)
		setIf(&c.Forum.Guidelines, f.Guidelines)
		setIf(&c.Forum.DefaultReaction, f.DefaultReaction)
	}
	return c.Name != name || c.Topic != topic, nil
}

// Archive hides a channel and ends all writing in it. An archived one is answered as it is.
func (s *Channels) Archive(ctx context.Context, id ids.ID, version int64) (out domain.Channel, err error) {
	change := txn.RightsChange{Action: string(authorize.ActionChannelArchive), Targets: []txn.Target{{Kind: "channel", ID: id}}}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if out, err = s.locked(ctx, id, true); err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelArchive, authorize.Channel(id)); err != nil {
			return err
		}
		switch {
		case out.Kind == domain.KindDirect:
			return errs.Conflict("dm_fixed", "A direct message cannot be archived.")
		case out.ArchivedAt != nil:
			return nil
		}
		if err := checkVersion(out.Version, version); err != nil {
			return err
		}
		if err := s.Affected.Affect(ctx, affected(out.Operator())...); err != nil {
			return fmt.Errorf("name the operator: %w", err)
		}
		now := txn.Current(ctx).Now()
		out.ArchivedAt, out.ArchivedBy = &now, actor.From(ctx).ID
		out.Touch(now, false)
		if err := s.save(ctx, out, eventChannelArchived); err != nil {
			return err
		}
		return txn.Publish(ctx, chat.ChannelArchived{ChannelID: out.ID, SpaceID: out.SpaceID, Archived: true})
	}, txn.WithRightsChange(change))
	return out, err
}

func affected(principals ...ids.ID) []ids.ID {
	out := principals[:0]
	for _, p := range principals {
		if !p.IsZero() {
			out = append(out, p)
		}
	}
	return out
}
