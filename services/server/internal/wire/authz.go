// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	authzhttp "github.com/OWNER/bothy/services/server/internal/authz/adapters/httpapi"
	authzjobs "github.com/OWNER/bothy/services/server/internal/authz/adapters/jobs"
	authzpg "github.com/OWNER/bothy/services/server/internal/authz/adapters/postgres"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
)

type authzModule struct {
	service *authzapp.Service
	http    authzhttp.Handlers
}

// buildAuthz needs the log before the rest of sync exists, because every change of rights is
// an event; the log needs nothing of authz but the version that a unit decided with.
func (p *process) buildAuthz(context.Context) error {
	p.sync = p.newLog()
	service := authzapp.New(p.config.Modules.Authz, authzapp.Deps{
		Store: authzpg.New(p.db), Units: p.units, Clock: p.clock, Counters: p.instance.service, Versions: p.instance.service,
		Barrier: p.db.Barrier(), Settings: p.instance.service, Events: p.sync.appender, Audit: p.audit.recorder, Log: p.log,
	})
	p.audit.recorder.SetAuthorizer(service)
	p.authz = &authzModule{service: service, http: authzhttp.Handlers{Authz: service}}
	authzjobs.Register(p.jobs, service, p.config.Modules.Authz.ExpiryInterval)
	return nil
}
