// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/chat/app"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Snapshot implements chat.SnapshotReads and chat.ThreadReads.
type Snapshot struct {
	spaces   *app.Spaces
	channels *app.Channels
	threads  *app.Threads
}

// NewSnapshot makes the reads.
func NewSnapshot(spaces *app.Spaces, channels *app.Channels, threads *app.Threads) *Snapshot {
	return &Snapshot{spaces: spaces, channels: channels, threads: threads}
}

var (
	_ chat.SnapshotReads = (*Snapshot)(nil)
	_ chat.ThreadReads   = (*Snapshot)(nil)
)

// SnapshotSpaces implements chat.SnapshotReads.
func (s *Snapshot) SnapshotSpaces(ctx context.Context, targets []ids.ID, after ids.ID, limit int) ([]chat.SnapshotItem, error) {
	list, err := s.spaces.Snapshot(ctx, targets, after, limit)
	if err != nil {
		return nil, err
	}
	return items(list, func(s domain.Space) ids.ID { return s.ID }, space)
}

// SnapshotChannels implements chat.SnapshotReads.
func (s *Snapshot) SnapshotChannels(ctx context.Context, targets []ids.ID, after ids.ID, limit int) ([]chat.SnapshotItem, error) {
	list, err := s.channels.Snapshot(ctx, targets, after, limit)
	if err != nil {
		return nil, err
	}
	return items(list, func(c domain.Channel) ids.ID { return c.ID }, channel)
}

// SnapshotThreads implements chat.SnapshotReads.
func (s *Snapshot) SnapshotThreads(ctx context.Context, targets []ids.ID, since time.Time, after ids.ID, limit int) ([]chat.SnapshotItem, error) {
	list, err := s.threads.Snapshot(ctx, targets, since, after, limit)
	if err != nil {
		return nil, err
	}
	return items(list, func(t domain.Thread) ids.ID { return t.ID }, thread)
}

// ThreadPayload implements chat.ThreadReads.
func (s *Snapshot) ThreadPayload(ctx context.Context, id ids.ID) (json.RawMessage, error) {
	t, err := s.threads.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	return json.Marshal(thread(t))
}

func items[T, R any](list []T, id func(T) ids.ID, payload func(T) R) ([]chat.SnapshotItem, error) {
	out := make([]chat.SnapshotItem, len(list))
	for i, item := range list {
		raw, err := json.Marshal(payload(item))
		if err != nil {
			return nil, fmt.Errorf("encode an item of the snapshot: %w", err)
		}
		out[i] = chat.SnapshotItem{ID: id(item), Payload: raw}
	}
	return out, nil
}
