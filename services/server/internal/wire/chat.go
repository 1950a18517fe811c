// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/chat/adapters/graphemes"
	chathttp "github.com/OWNER/bothy/services/server/internal/chat/adapters/httpapi"
	chatpg "github.com/OWNER/bothy/services/server/internal/chat/adapters/postgres"
	chatapp "github.com/OWNER/bothy/services/server/internal/chat/app"
)

type chatModule struct {
	spaces    *chatapp.Spaces
	channels  *chatapp.Channels
	threads   *chatapp.Threads
	structure *chatapp.Structure
	setup     *chatapp.Setup
	rights    *chatapp.RightsSource
	snapshot  *chathttp.Snapshot
	http      *chathttp.Handlers
}

func (p *process) buildChat(context.Context) error {
	spaces, channels, threads := chatpg.NewSpaces(p.db), chatpg.NewChannels(p.db), chatpg.NewThreads(p.db)
	rights := chatapp.NewRightsSource(spaces, channels, threads)
	p.authz.service.SetSources(authzapp.Sources{Places: rights, PlaceNames: rights})
	deps := chatapp.Deps{
		Config: p.config.Modules.Chat, Units: p.units, Authorizer: p.authz.service, Log: p.sync.appender, Directory: p.identity.service,
		Grants: p.authz.service, Affected: p.authz.service, Spaces: spaces, Channels: channels, Threads: threads,
		Payloads: chathttp.Payloads{}, Clusters: graphemes.Clusters{},
	}
	m := &chatModule{
		spaces: chatapp.NewSpaces(deps), channels: chatapp.NewChannels(deps), threads: chatapp.NewThreads(deps),
		structure: chatapp.NewStructure(channels), setup: chatapp.NewSetup(deps), rights: rights,
	}
	p.authz.service.SetRemedies(authzapp.Remedies{Operators: m.channels})
	m.snapshot = chathttp.NewSnapshot(m.spaces, m.channels, m.threads)
	m.http = chathttp.New(m.spaces, m.channels, m.threads)
	p.chat = m
	return nil
}
