// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// understand turns a content into its canonical form. channel is asked only when the content
// names somebody; a failure of it fails the whole.
func (s *Messages) understand(ctx context.Context, author ids.ID, content string, channel func() (ids.ID, error)) (domain.Text, error) {
	doc, err := s.Parser.Parse(content)
	if err != nil {
		return domain.Text{}, err
	}
	limits := domain.Limits{MaxMentions: s.Config.MaxMentions, PublicURL: s.Config.PublicURL}
	if len(doc.Refs) == 0 {
		return domain.Canonicalise(doc, domain.Known{}, limits)
	}
	known, err := s.names(ctx, doc)
	if err != nil {
		return domain.Text{}, err
	}
	where, err := channel()
	if err != nil {
		return domain.Text{}, err
	}
	if known.Channels, err = s.channels(ctx, doc, where); err != nil {
		return domain.Text{}, err
	}
	known.Broadcast, known.Refusal, err = s.mayBroadcast(ctx, doc, author, where)
	if err != nil {
		return domain.Text{}, err
	}
	text, err := domain.Canonicalise(doc, known, limits)
	if err != nil {
		return domain.Text{}, err
	}
	return text, s.warnHidden(ctx, &text, author, where)
}

// names looks up whom a document may name.
func (s *Messages) names(ctx context.Context, doc domain.Document) (domain.Known, error) {
	known := domain.Known{Handles: map[string]domain.Target{}, Principals: map[ids.ID]domain.Target{}}
	if handles := doc.Handles(); len(handles) > 0 {
		found, err := s.Directory.ByHandle(ctx, handles)
		if err != nil {
			return known, fmt.Errorf("look up handles: %w", err)
		}
		for handle, p := range found {
			if p.Active() {
				known.Handles[handle] = target(p)
			}
		}
	}
	if named := doc.Principals(); len(named) > 0 {
		found, err := s.Directory.ByID(ctx, named)
		if err != nil {
			return known, fmt.Errorf("look up principals: %w", err)
		}
		for id, p := range found {
			if p.Active() {
				known.Principals[id] = target(p)
			}
		}
	}
	return known, nil
}

// channels finds the channels that a document names and the author may read: those of the
// space it is written in.
func (s *Messages) channels(ctx context.Context, doc domain.Document, where ids.ID) (map[string]ids.ID, error) {
	names := doc.ChannelNames()
	if len(names) == 0 {
		return nil, nil
	}
	here, err := s.Structure.Channel(ctx, where)
	if err != nil || here.SpaceID.IsZero() {
		return nil, err
	}
	found, err := s.Structure.ChannelsNamed(ctx, here.SpaceID, names)
	if err != nil {
		return nil, fmt.Errorf("look up channels: %w", err)
	}
	for name, id := range found {
		readable, err := s.Authorizer.Allowed(ctx, authorize.ActionChannelRead, authorize.Channel(id))
		if err != nil {
			return nil, fmt.Errorf("ask for the channel %s: %w", id, err)
		}
		if !readable {
			delete(found, name)
		}
	}
	return found, nil
}

func target(p identity.Principal) domain.Target {
	return domain.Target{ID: p.ID, Label: p.DisplayName}
}

// mayBroadcast tells whether the author may call many people here and now, or the code of the
// warning why not.
func (s *Messages) mayBroadcast(ctx context.Context, doc domain.Document, author, channel ids.ID) (bool, string, error) {
	if !doc.Broadcasts() {
		return false, "", nil
	}
	standing, err := s.Rights.Standing(ctx, author, channel)
	if err != nil {
		return false, "", fmt.Errorf("read the author's rights: %w", err)
	}
	if !standing.Broadcasts {
		return false, domain.WarnBroadcast, nil
	}
	n, err := s.Messages.BroadcastsSince(ctx, author, channel, s.Clock.Now().Add(-time.Hour))
	if err != nil {
		return false, "", fmt.Errorf("count the author's broadcasts: %w", err)
	}
	return n < s.Config.BroadcastPerHour, domain.WarnBroadcastLimited, nil
}

// warnHidden tells the author whom the message names in vain. Everybody who can write in a
// channel may know who can read it.
func (s *Messages) warnHidden(ctx context.Context, text *domain.Text, author, channel ids.ID) error {
	for _, m := range text.Mentions {
		if m.Kind != string(domain.RefPrincipal) || m.ID == author {
			continue
		}
		standing, err := s.Rights.Standing(ctx, m.ID, channel)
		if err != nil {
			return fmt.Errorf("read the rights of who is named: %w", err)
		}
		if !standing.Reads {
			text.Warnings = append(text.Warnings, domain.Warning{Code: domain.WarnNoAccess, Kind: m.Kind, Label: m.Label, ID: m.ID})
		}
	}
	return nil
}
