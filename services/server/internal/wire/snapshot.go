// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"time"

	identityhttp "github.com/OWNER/bothy/services/server/internal/identity/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	syncapp "github.com/OWNER/bothy/services/server/internal/sync/app"
)

// snapshotSources ties the sections of the snapshot to the modules that own what is in them.
func (p *process) snapshotSources() syncapp.Sources {
	c := p.config.HTTP
	self := identityhttp.NewSnapshot(p.identity.service)
	chat := p.chat.snapshot
	return syncapp.Sources{
		Instance: p.instance.http.Snapshot(c.ReadOnly(), c.ClientMetrics, c.InstallHint),
		Self:     self.Self,
		Spaces: func(ctx context.Context, t syncapp.Targets, after ids.ID, limit int) ([]syncapp.Item, error) {
			list, err := chat.SnapshotSpaces(ctx, t, after, limit)
			return items(list, err)
		},
		Channels: func(ctx context.Context, t syncapp.Targets, after ids.ID, limit int) ([]syncapp.Item, error) {
			list, err := chat.SnapshotChannels(ctx, t, after, limit)
			return items(list, err)
		},
		Threads: func(ctx context.Context, t syncapp.Targets, since time.Time, after ids.ID, limit int) ([]syncapp.Item, error) {
			list, err := chat.SnapshotThreads(ctx, t, since, after, limit)
			return items(list, err)
		},
		Principals: func(ctx context.Context, limit int) ([]syncapp.Item, bool, error) {
			list, complete, err := self.Principals(ctx, limit)
			out, err := items(list, err)
			return out, complete, err
		},
		Agents: func(ctx context.Context, after ids.ID, limit int) ([]syncapp.Item, error) {
			list, err := p.agents.service.SnapshotAgents(ctx, after, limit)
			return items(list, err)
		},
		Runs: func(ctx context.Context, channels []ids.ID, after ids.ID, limit int) ([]syncapp.Item, error) {
			list, err := p.runs.service.ActiveInChannels(ctx, channels, after, limit)
			out := make([]syncapp.Item, len(list))
			for i, one := range list {
				out[i] = syncapp.Item{ID: one.ID, Payload: one.Payload}
			}
			return out, err
		},
	}
}

// items turns what modules give into what the snapshot takes; both are an ID with a payload.
func items[T ~struct {
	ID      ids.ID
	Payload json.RawMessage
}](list []T, err error) ([]syncapp.Item, error) {
	out := make([]syncapp.Item, len(list))
	for i, one := range list {
		out[i] = syncapp.Item(one)
	}
	return out, err
}
