// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"

	"github.com/OWNER/bothy/services/server/api/routes"
	authzapp "github.com/OWNER/bothy/services/server/internal/authz/app"
	"github.com/OWNER/bothy/services/server/internal/gateway/adapters/ws"
	gatewayapp "github.com/OWNER/bothy/services/server/internal/gateway/app"
	"github.com/OWNER/bothy/services/server/internal/identity"
	instanceapp "github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/platform/buildinfo"
)

type gatewayModule struct {
	gateway *gatewayapp.Gateway
	handler *ws.Handler
}

// buildGateway is the top of the process: it follows the tail and hears the signals.
func (p *process) buildGateway(ctx context.Context) error {
	if err := checkOps(); err != nil {
		return err
	}
	info, err := p.instance.service.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the instance: %w", err)
	}
	g := gatewayapp.New(p.config.Gateway, gatewayapp.Deps{
		Instance: gatewayapp.Instance{
			ID: info.ID, SyncEpoch: info.SyncEpoch, ServerVersion: buildinfo.Current().Version,
			URL: p.config.HTTP.PublicURL + routes.BasePath + routes.ByID("openGateway").Path,
		},
		Authenticator: p.identity.authenticator, Authorizer: p.authz.service, Delivery: p.authz.service, CatchUp: p.sync.catchUp,
		Principals: principals{p.identity.service}, Threads: p.chat.threads, Presence: p.agents.tracker, Consumers: p.agents.consumers,
		RunDelivery: p.runs.service, RunUpdates: p.runs.updates, RunReads: p.runs.service, Limiter: p.limiter,
		Request: authzapp.WithRequest, Nonce: p.nonce, Ready: p.instance.service.SetupComplete, Clock: p.clock, Log: p.log, Observer: p.observer,
	})
	p.sync.tail.Follow(settingsFollower{p.instance.service})
	p.sync.tail.Follow(g)
	p.signals.to = g
	p.gateway = &gatewayModule{gateway: g, handler: ws.NewHandler(p.config.WS, g)}
	return nil
}

func (p *process) nonce(context.Context) string { return p.identity.proofs.Nonce() }

// checkOps holds the ops of the gateway against the contract: each has its action, and none
// is missing.
func checkOps() error {
	ops := gatewayapp.Ops()
	for _, want := range routes.Ops {
		action, ok := ops[want.Name]
		if !ok || action != authorize.Action(want.Action) {
			return fmt.Errorf("the gateway takes the op %s as %q, the contract says %q", want.Name, action, want.Action)
		}
	}
	if len(ops) != len(routes.Ops) {
		return fmt.Errorf("the gateway takes %d ops, the contract names %d", len(ops), len(routes.Ops))
	}
	return nil
}

// principals names principals for the gateway.
type principals struct{ directory identity.Directory }

// Name implements the port of the gateway.
func (d principals) Name(ctx context.Context, id ids.ID) (handle, displayName string, err error) {
	found, err := d.directory.ByID(ctx, []ids.ID{id})
	if err != nil {
		return "", "", err
	}
	one, ok := found[id]
	if !ok {
		return "", "", errs.NotFound()
	}
	return one.Handle, one.DisplayName, nil
}

// settingsFollower forgets settings that another process has changed.
type settingsFollower struct{ service *instanceapp.Service }

// Deliver implements sync.Follower.
func (f settingsFollower) Deliver(e eventlog.Record) {
	if e.Type == "instance.updated" {
		f.service.Invalidate()
	}
}
