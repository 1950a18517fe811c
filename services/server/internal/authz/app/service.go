// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Deps are what the service works with. The sources of higher modules are set afterwards by
// SetSources, because those modules need the service first.
type Deps struct {
	Store    Store
	Units    txn.UnitOfWork
	Clock    clock.Clock
	Counters instance.Counters
	Versions instance.Versions
	// Barrier tells the generation of the flusher; nil for none.
	Barrier flush.Barrier
	// Settings are those of the owner.
	Settings instance.Settings
	Events   eventlog.Appender
	Audit    auditing.Recorder
	Log      *slog.Logger
}

// Sources tell what authz does not own.
type Sources struct {
	Principals  authz.PrincipalSource
	Credentials authz.CredentialSource
	Places      authz.StructureSource
	Agents      authz.AgentPolicySource
	Handles     authz.HandleSource
	// PrincipalNames and PlaceNames are for explanations alone; without them these speak of
	// "a member" and "this channel".
	PrincipalNames authz.PrincipalNames
	PlaceNames     authz.PlaceNames
	// Views begins the sessions of owners who look as somebody else.
	Views authz.ViewSessions
}

// Service is the module's one object: it decides, delivers, and changes grants.
type Service struct {
	cfg      Config
	store    Store
	units    txn.UnitOfWork
	clock    clock.Clock
	counters instance.Counters
	versions instance.Versions
	barrier  flush.Barrier
	settings instance.Settings
	events   eventlog.Appender
	audit    auditing.Recorder
	log      *slog.Logger
	cache    *cache
	// spec finds the entry of an action.
	spec func(authorize.Action) (*authorize.Spec, bool)

	principals  authz.PrincipalSource
	credentials authz.CredentialSource
	places      authz.StructureSource
	agents      authz.AgentPolicySource
	remedies    Remedies
	handles     authz.HandleSource

	principalNames authz.PrincipalNames
	placeNames     authz.PlaceNames
	views          authz.ViewSessions
}

var (
	_ authorize.Authorizer = (*Service)(nil)
	_ authorize.Rights     = (*Service)(nil)
	_ authorize.Delivery   = (*Service)(nil)
	_ authz.Grants         = (*Service)(nil)
	_ authz.Groups         = (*Service)(nil)
	_ authz.ClaimGroups    = (*Service)(nil)
	_ authz.Affected       = (*Service)(nil)
	_ authz.TriggerHolders = (*Service)(nil)
)

// New makes the service. Until SetSources has run, every source knows nothing, so every
// decision is a denial.
func New(cfg Config, d Deps) *Service {
	none := unwired{}
	return &Service{
		cfg: cfg, store: d.Store, units: d.Units, clock: d.Clock, counters: d.Counters, versions: d.Versions,
		barrier: d.Barrier, settings: d.Settings, events: d.Events, audit: d.Audit, log: d.Log, cache: newCache(cfg.CacheMaxPrincipals),
		spec: authorize.SpecOf, principals: none, credentials: none, places: none, agents: none, handles: none,
		principalNames: none, placeNames: none, views: none,
	}
}

// SetSources installs the sources that are not nil. It is called while the process starts,
// before the first request.
func (s *Service) SetSources(src Sources) {
	if src.Principals != nil {
		s.principals = src.Principals
	}
	if src.Credentials != nil {
		s.credentials = src.Credentials
	}
	if src.Places != nil {
		s.places = src.Places
	}
	if src.Agents != nil {
		s.agents = src.Agents
	}
	if src.Views != nil {
		s.views = src.Views
	}
	if src.PrincipalNames != nil {
		s.principalNames = src.PrincipalNames
	}
	if src.PlaceNames != nil {
		s.placeNames = src.PlaceNames
	}
	if src.Handles != nil {
		s.handles = src.Handles
	}
}
