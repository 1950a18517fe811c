// SPDX-License-Identifier: Apache-2.0

package authorize

// Spec is the entry of an action in the catalogue: everything a decision, the audit log, the rate limiter and the
// documentation need to know about it.
type Spec struct {
	ID     Action
	Module string
	// Summary is one imperative phrase for people who give out rights.
	Summary string
	Effect  Effect
	// Callers are the kinds of callers the action is open to at all.
	Callers []CallerKind
	// Resource is what the action is done to; SecondResource the further thing a few actions touch, empty for most.
	Resource, SecondResource ResourceKind
	// Self tells that on one's own resource no level is needed.
	Self bool
	// Level and Capability are both needed where both are set. LevelNone and an empty capability ask for nothing.
	Level      Level
	Capability Capability
	// AnyOf stands instead of them: one of the rights is enough.
	AnyOf     []Right
	OwnerOnly bool
	StepUp    StepUp
	// StepUpRule names the rule that says when a conditional step-up is needed.
	StepUpRule string
	// AuditAllow and AuditDeny say which decisions are written to the audit log.
	AuditAllow, AuditDeny bool
	Maintenance           Maintenance
	// BeforeSetup opens the action while the instance has no owner yet.
	BeforeSetup bool
	// ViewAs opens it to an owner who looks at another person's view.
	ViewAs bool
	// ActingFor opens it to an agent with an invocation token.
	ActingFor bool
	// Extension opens it to the child sessions of browser extensions.
	Extension bool
	// RateLimit is the class of the token bucket; empty for actions of the system.
	RateLimit string
	// Scope is what an API token needs: ScopeSession for actions that no token reaches, ScopeNone for those that need
	// no credential, empty for actions of the system.
	Scope string
	// Details are the keys that audit details of this action may have.
	Details []string
	// Rules are the rules of the specification that refine the decision.
	Rules []string
}

// Scopes with a meaning of their own.
const (
	ScopeSession = "session"
	ScopeNone    = "none"
)

// Right is a level or a capability.
type Right struct {
	Level      Level
	Capability Capability
}

// Effect says whether an action changes anything.
type Effect string

// The effects.
const (
	EffectRead  Effect = "read"
	EffectWrite Effect = "write"
)

// CallerKind is a kind of caller an action can be open to.
type CallerKind string

// The kinds of callers.
const (
	CallerPerson    CallerKind = "person"
	CallerAgent     CallerKind = "agent"
	CallerApp       CallerKind = "app"
	CallerAnonymous CallerKind = "anonymous"
	CallerWebhook   CallerKind = "webhook"
	CallerHost      CallerKind = "host"
	CallerSystem    CallerKind = "system"
)

// StepUp says whether an action needs a fresh proof of the person.
type StepUp string

// The values of StepUp.
const (
	StepUpNever       StepUp = "never"
	StepUpAlways      StepUp = "always"
	StepUpConditional StepUp = "conditional"
)

// Maintenance says what becomes of an action in maintenance mode.
type Maintenance string

// The values of Maintenance. MaintenanceNoWrite passes because the action then writes nothing; MaintenanceConditional
// passes by a rule of the chapter, for example for an agent whose run is running.
const (
	MaintenanceDeny        Maintenance = "deny"
	MaintenanceAllow       Maintenance = "allow"
	MaintenanceNoWrite     Maintenance = "no_write"
	MaintenanceConditional Maintenance = "conditional"
)

var specs = func() map[Action]*Spec {
	m := make(map[Action]*Spec, len(Catalogue))
	for i := range Catalogue {
		m[Catalogue[i].ID] = &Catalogue[i]
	}
	return m
}()

// SpecOf finds the entry of an action. An action outside the catalogue does not exist: the second value is false, and
// the caller must deny.
func SpecOf(a Action) (*Spec, bool) {
	s, ok := specs[a]
	return s, ok
}

// OpenTo reports whether the action is open to callers of the kind at all.
func (s *Spec) OpenTo(kind CallerKind) bool {
	for _, c := range s.Callers {
		if c == kind {
			return true
		}
	}
	return false
}
