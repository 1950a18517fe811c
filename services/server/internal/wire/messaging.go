// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/messaging"
	messaginghttp "github.com/OWNER/bothy/services/server/internal/messaging/adapters/httpapi"
	"github.com/OWNER/bothy/services/server/internal/messaging/adapters/markdown"
	messagingpg "github.com/OWNER/bothy/services/server/internal/messaging/adapters/postgres"
	messagingapp "github.com/OWNER/bothy/services/server/internal/messaging/app"
)

type messagingModule struct {
	uses *messagingapp.Messages
	// port is what other modules do with messages in their own units.
	port messagingapp.Port
	http *messaginghttp.Handlers
}

var (
	_ messaging.Messages = messagingapp.Port{}
	_ messaging.Mentions = messagingapp.Port{}
)

func (p *process) buildMessaging(context.Context) error {
	uses := messagingapp.NewMessages(messagingapp.Deps{
		Config: p.config.Modules.Messaging, Units: p.units, Authorizer: p.authz.service, Rights: p.authz.service, Log: p.sync.appender,
		Redactor: p.sync.appender, Directory: p.identity.service, Places: p.chat.threads, Structure: p.chat.structure,
		Threads: p.chat.threads, ThreadReads: p.chat.snapshot, Messages: messagingpg.NewMessages(p.db),
		Parser: markdown.New(p.config.Modules.Markdown), Payloads: messaginghttp.Payloads{}, Clock: p.clock,
	})
	p.messaging = &messagingModule{uses: uses, port: messagingapp.NewPort(uses), http: messaginghttp.New(uses)}
	return nil
}
