// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/instance"
	instancehttp "github.com/OWNER/bothy/services/server/internal/instance/adapters/httpapi"
	instancejobs "github.com/OWNER/bothy/services/server/internal/instance/adapters/jobs"
	"github.com/OWNER/bothy/services/server/internal/instance/adapters/keystore"
	instancemetrics "github.com/OWNER/bothy/services/server/internal/instance/adapters/otelmetrics"
	instancepg "github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/platform/buildinfo"
)

type instanceModule struct {
	service *instanceapp.Service
	http    instancehttp.Handlers
}

func (p *process) buildInstance(context.Context) error {
	store, err := keystore.Open(p.config.Secrets.SigningKeyDir)
	if err != nil {
		return err
	}
	config := p.config.Modules.Instance
	config.ServerVersion = buildinfo.Current().Version
	service := instanceapp.New(config, instanceapp.Deps{
		Store: instancepg.New(p.db), KeyStore: store, Units: p.units, Clock: p.clock, Log: p.log, Settings: identityapp.Settings(),
		Flags: p.config.Modules.Flags, Metrics: instancemetrics.New(p.meter),
		// identity stands above instance and is built after it, before the first request.
		Checks: []instance.SettingsCheck{func(ctx context.Context, values map[string]any) error {
			return p.identity.service.CheckSettings(ctx, values)
		}},
	})
	instancejobs.Register(p.jobs, service)
	p.instance = &instanceModule{service: service, http: instancehttp.Handlers{Instance: service}}
	return nil
}
