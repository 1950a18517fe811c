// SPDX-License-Identifier: Apache-2.0

package wire

import (
	agentshttp "github.com/OWNER/bothy/services/server/internal/agents/adapters/httpapi"
	audithttp "github.com/OWNER/bothy/services/server/internal/audit/adapters/httpapi"
	authzhttp "github.com/OWNER/bothy/services/server/internal/authz/adapters/httpapi"
	chathttp "github.com/OWNER/bothy/services/server/internal/chat/adapters/httpapi"
	identityhttp "github.com/OWNER/bothy/services/server/internal/identity/adapters/httpapi"
	instancehttp "github.com/OWNER/bothy/services/server/internal/instance/adapters/httpapi"
	messaginghttp "github.com/OWNER/bothy/services/server/internal/messaging/adapters/httpapi"
	runshttp "github.com/OWNER/bothy/services/server/internal/runs/adapters/httpapi"
	synchttp "github.com/OWNER/bothy/services/server/internal/sync/adapters/httpapi"

	"github.com/OWNER/bothy/services/server/api/rest"
)

// allHandlers is the whole API. Every module brings the operations it owns; the compiler
// finds an operation that nobody answers, and one that two modules answer.
type allHandlers struct {
	instancePart
	auditPart
	authzPart
	identityPart
	chatPart
	messagingPart
	agentsPart
	runsPart
	syncPart
}

// One part per module, because all of them call their handlers the same.
type (
	instancePart  struct{ instancehttp.Handlers }
	auditPart     struct{ audithttp.Handlers }
	authzPart     struct{ authzhttp.Handlers }
	identityPart  struct{ *identityhttp.Handlers }
	chatPart      struct{ *chathttp.Handlers }
	messagingPart struct{ *messaginghttp.Handlers }
	agentsPart    struct{ *agentshttp.Handlers }
	runsPart      struct{ *runshttp.Handlers }
	syncPart      struct{ *synchttp.Handlers }
)

var _ rest.StrictServerInterface = allHandlers{}

func (p *process) handlers() rest.StrictServerInterface {
	return allHandlers{
		instancePart{p.instance.http}, auditPart{p.audit.http}, authzPart{p.authz.http}, identityPart{p.identity.http}, chatPart{p.chat.http},
		messagingPart{p.messaging.http}, agentsPart{p.agents.http}, runsPart{p.runs.http}, syncPart{p.sync.http},
	}
}
