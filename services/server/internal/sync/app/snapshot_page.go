// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/sync/domain"
)

// pageBuilder fills one page, section after section, until it is full.
type pageBuilder struct {
	snapshot *Snapshot
	pos      position
	sections map[string][]json.RawMessage
	single   map[string]json.RawMessage
	complete map[string]bool
	baseline []domain.ReadState
	channels []ids.ID
	items    int
	bytes    int
}

func (b *pageBuilder) full() bool {
	return b.items >= b.snapshot.config.PageItems || b.bytes >= b.snapshot.config.PageBytes
}

func (b *pageBuilder) room() int { return max(1, b.snapshot.config.PageItems-b.items) }

func (b *pageBuilder) fill(ctx context.Context) error {
	b.complete = map[string]bool{}
	for b.pos.Section < len(sectionOrder) && !b.full() {
		name := sectionOrder[b.pos.Section]
		done := true
		if b.wanted(ctx, name) {
			var err error
			if done, err = b.section(ctx, name); err != nil {
				return fmt.Errorf("read the section %s: %w", name, err)
			}
		}
		if done {
			b.pos.Section++
			b.pos.After = ids.ID{}
		}
	}
	return nil
}

// wanted tells whether the caller asked for the section and is meant to have it. A scoped
// snapshot has the sections that depend on targets.
func (b *pageBuilder) wanted(ctx context.Context, name string) bool {
	if name == sectionSelf && actor.From(ctx).Kind != actor.KindPerson {
		return false
	}
	if len(b.pos.Targets) > 0 && (name == sectionInstance || name == sectionSelf || name == sectionAgents) {
		return false
	}
	if len(b.pos.Sections) == 0 {
		return true
	}
	return slices.Contains(b.pos.Sections, name) || name == sectionThreads && slices.Contains(b.pos.Sections, "read_states")
}

func (b *pageBuilder) section(ctx context.Context, name string) (done bool, err error) {
	src, after := b.snapshot.sources, b.pos.After
	switch name {
	case sectionInstance:
		return true, b.one(ctx, name, src.Instance)
	case sectionSelf:
		return true, b.one(ctx, name, src.Self)
	case sectionSpaces:
		items, err := src.Spaces(ctx, b.pos.Targets, after, b.room())
		return b.withAccess(ctx, name, "space", items, err)
	case sectionChannels:
		items, err := src.Channels(ctx, b.pos.Targets, after, b.room())
		return b.withAccess(ctx, name, "channel", items, err)
	case sectionThreads:
		return b.threadsSection(ctx)
	case sectionPrincipals:
		return b.principalsSection(ctx)
	case sectionAgents:
		items, err := src.Agents(ctx, after, b.room())
		return b.list(name, items, b.room(), err)
	default:
		channels, err := b.visibleChannels(ctx)
		if err != nil {
			return false, err
		}
		items, err := src.Runs(ctx, channels, after, b.room())
		return b.list(name, items, b.room(), err)
	}
}

// principalsSection is read at once, because the directory is ordered by name and bounded by
// itself; a page may become larger by it.
func (b *pageBuilder) principalsSection(ctx context.Context) (bool, error) {
	items, complete, err := b.snapshot.sources.Principals(ctx, b.snapshot.config.MaxPrincipals)
	if err != nil {
		return false, err
	}
	b.complete["principals_complete"] = complete
	_, err = b.list(sectionPrincipals, items, len(items)+1, nil)
	return true, err
}

func (b *pageBuilder) one(ctx context.Context, name string, read func(context.Context) (json.RawMessage, error)) error {
	payload, err := read(ctx)
	if err != nil {
		return err
	}
	b.single[name] = payload
	b.items++
	b.bytes += len(payload)
	return nil
}

// list adds items; fewer than asked for end the section.
func (b *pageBuilder) list(name string, items []Item, asked int, err error) (done bool, _ error) {
	if err != nil {
		return false, err
	}
	for _, item := range items {
		b.sections[name] = append(b.sections[name], item.Payload)
		b.items++
		b.bytes += len(item.Payload)
		b.pos.After = item.ID
	}
	return len(items) < asked, nil
}

func (b *pageBuilder) withAccess(ctx context.Context, name, member string, items []Item, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	asked := b.room()
	list := make([]ids.ID, len(items))
	for i, item := range items {
		list[i] = item.ID
	}
	access, err := b.snapshot.rights.AccessOf(ctx, list)
	if err != nil {
		return false, fmt.Errorf("read the access: %w", err)
	}
	for i, item := range items {
		a := access[item.ID]
		if a.Capabilities == nil {
			a.Capabilities = []authorize.Capability{}
		}
		// A space that is shown for the sake of a channel in it has no level of its own.
		var level *authorize.Level
		if a.Level != authorize.LevelNone {
			level = &a.Level
		}
		if items[i].Payload, err = json.Marshal(map[string]any{
			member:   item.Payload,
			"access": map[string]any{"level": level, "capabilities": a.Capabilities},
		}); err != nil {
			return false, fmt.Errorf("encode: %w", err)
		}
	}
	return b.list(name, items, asked, nil)
}

func (b *pageBuilder) threadsSection(ctx context.Context) (bool, error) {
	s := b.snapshot
	asked := min(b.room(), s.config.MaxThreads-b.pos.Threads)
	if asked <= 0 {
		b.complete["threads_complete"] = false
		return true, nil
	}
	since := s.clock.Now().Add(-s.config.ThreadWindow)
	items, err := s.sources.Threads(ctx, b.pos.Targets, since, b.pos.After, asked)
	if err != nil {
		return false, err
	}
	b.pos.Threads += len(items)
	done, err := b.list(sectionThreads, items, asked, nil)
	if done {
		b.complete["threads_complete"] = true
	}
	if err != nil || actor.From(ctx).Kind != actor.KindPerson || len(items) == 0 {
		return done, err
	}
	return done, b.readStates(ctx, items)
}

// readStates adds the read positions of the threads just read, and remembers those that
// shall count as read from now on.
func (b *pageBuilder) readStates(ctx context.Context, items []Item) error {
	list := make([]ids.ID, len(items))
	for i, item := range items {
		list[i] = item.ID
	}
	infos, err := b.snapshot.threads.Infos(ctx, list)
	if err != nil {
		return fmt.Errorf("read the threads: %w", err)
	}
	threads := make([]chat.Thread, 0, len(list))
	for _, id := range list {
		if t, ok := infos[id]; ok {
			threads = append(threads, t)
		}
	}
	me, now := actor.From(ctx).ID, b.snapshot.clock.Now()
	states, err := b.snapshot.readStates.ForThreads(ctx, me, threads, now)
	if err != nil {
		return err
	}
	for i, state := range states {
		raw, err := json.Marshal(state)
		if err != nil {
			return fmt.Errorf("encode a read state: %w", err)
		}
		b.sections["read_states"] = append(b.sections["read_states"], raw)
		b.items++
		b.bytes += len(raw)
		if state.Version == 0 && threads[i].Kind == chat.ThreadMain {
			b.baseline = append(b.baseline, domain.ReadState{ThreadID: state.ThreadID, ChannelID: state.ChannelID, LastRead: state.LastReadThreadSeq})
		}
	}
	return nil
}

// visibleChannels lists the channels of the caller, for sections that lie in them.
func (b *pageBuilder) visibleChannels(ctx context.Context) ([]ids.ID, error) {
	if b.channels != nil {
		return b.channels, nil
	}
	const step = 500
	b.channels = []ids.ID{}
	for after := (ids.ID{}); ; {
		items, err := b.snapshot.sources.Channels(ctx, b.pos.Targets, after, step)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			b.channels = append(b.channels, item.ID)
			after = item.ID
		}
		if len(items) < step {
			return b.channels, nil
		}
	}
}

func (b *pageBuilder) encode() (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	for name, payload := range b.single {
		out[name] = payload
	}
	for name, list := range b.sections {
		raw, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("encode the section %s: %w", name, err)
		}
		out[name] = raw
	}
	for name, value := range b.complete {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		out[name] = raw
	}
	return out, nil
}
