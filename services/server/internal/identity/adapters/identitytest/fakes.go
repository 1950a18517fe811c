// SPDX-License-Identifier: Apache-2.0

package identitytest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Authorizer decides by the catalogue alone: who may call, own or owner, scope, step-up,
// and whether the credential lives. Places and grants do not exist for it.
type Authorizer struct {
	Credentials authz.CredentialSource
	Clock       clock.Clock
	// Hide makes principals invisible for guests, agents and apps.
	Hide map[ids.ID]bool
}

// Authorize implements authorize.Authorizer.
func (z *Authorizer) Authorize(ctx context.Context, action authorize.Action, r authorize.Resource) error {
	who := actor.From(ctx)
	err := z.decide(ctx, who, action, r)
	authorize.Note(ctx, authorize.Check{Action: action, Resource: r, Allowed: err == nil})
	return err
}

func (z *Authorizer) decide(ctx context.Context, who actor.Actor, action authorize.Action, r authorize.Resource) error {
	spec, ok := authorize.SpecOf(action)
	if !ok {
		return errs.Internal(errors.New("no such action: " + string(action)))
	}
	if z.Credentials != nil {
		if err := z.Credentials.CheckActive(ctx, who); err != nil {
			return err
		}
	}
	own := !who.ID.IsZero() && (r.ID == who.ID || r.OwnerID == who.ID)
	switch {
	case who.Kind == actor.KindAnonymous && !spec.OpenTo(authorize.CallerAnonymous):
		return errs.New(errs.CodeUnauthenticated, "Sign in.")
	case r.Kind == authorize.ResourceSelf && !own:
		return errs.NotFound()
	case !spec.OpenTo(authorize.CallerKind(who.Kind)):
		return errs.Forbidden("subject_kind_not_allowed")
	case who.Scopes != nil && spec.Scope == authorize.ScopeSession:
		return errs.New(errs.CodeScopeMissing, "A session is needed.")
	case spec.OwnerOnly && !who.Owner && !(spec.Self && own):
		return errs.Forbidden("not_owner")
	case spec.StepUp == authorize.StepUpAlways && who.Kind != actor.KindSystem && !z.Clock.Now().Before(who.StepUpUntil):
		return errs.New(errs.CodeStepUpRequired, "Confirm that it is you.")
	}
	return nil
}

// Allowed implements authorize.Authorizer.
func (z *Authorizer) Allowed(ctx context.Context, action authorize.Action, r authorize.Resource) (bool, error) {
	return !z.Hide[r.ID] && z.decide(ctx, actor.From(ctx), action, r) == nil, nil
}

// Scope implements authorize.Authorizer.
func (z *Authorizer) Scope(ctx context.Context, action authorize.Action) (authorize.Scope, error) {
	err := z.decide(ctx, actor.From(ctx), action, authorize.Instance())
	authorize.Note(ctx, authorize.Check{Action: action, Scoped: true, Allowed: err == nil})
	return authorize.Scope{All: true}, err
}

// Audit keeps entries in memory.
type Audit struct {
	mu      sync.Mutex
	allowed []auditing.Entry
	denied  []auditing.Entry
}

// Allowed implements auditing.Recorder.
func (a *Audit) Allowed(ctx context.Context, e auditing.Entry) error {
	if txn.PhaseOf(ctx) != txn.PhaseWork {
		return errors.New("an allowed act is recorded in the unit that does it")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed = append(a.allowed, e)
	return nil
}

// Denied implements auditing.Recorder.
func (a *Audit) Denied(_ context.Context, e auditing.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.denied = append(a.denied, e)
}

// Entries gives what was recorded for an action, allowed ones first.
func (a *Audit) Entries(action authorize.Action) (allowed, denied []auditing.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.allowed {
		if e.Action == string(action) {
			allowed = append(allowed, e)
		}
	}
	for _, e := range a.denied {
		if e.Action == string(action) {
			denied = append(denied, e)
		}
	}
	return allowed, denied
}

// Events keeps appended events in memory, also those of units that fail later.
type Events struct {
	mu   sync.Mutex
	list []eventlog.Event
}

// Append implements eventlog.Appender.
func (e *Events) Append(ctx context.Context, events ...eventlog.Event) error {
	if p := txn.PhaseOf(ctx); p != txn.PhaseWork && p != txn.PhaseRights {
		return errors.New("events are appended while a unit works")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, events...)
	return nil
}

// OfType gives the appended events of a type.
func (e *Events) OfType(name string) []eventlog.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []eventlog.Event
	for _, ev := range e.list {
		if ev.Type == name {
			out = append(out, ev)
		}
	}
	return out
}

// Instance implements instance.Instance and instance.Settings in memory.
type Instance struct {
	mu        sync.Mutex
	completed *time.Time
	Strings   map[string]string
	Bools     map[string]bool
}

// Info implements instance.Instance.
func (i *Instance) Info(context.Context) (instance.Info, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return instance.Info{SetupCompletedAt: i.completed}, nil
}

// SetupComplete implements instance.Instance.
func (i *Instance) SetupComplete(context.Context) (bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.completed != nil, nil
}

// CompleteSetup implements instance.Instance.
func (i *Instance) CompleteSetup(ctx context.Context) error {
	u := txn.Current(ctx)
	if u == nil {
		return errors.New("the setup is completed in a unit")
	}
	at := u.Now()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.completed = &at
	return nil
}

// String implements instance.Settings.
func (i *Instance) String(_ context.Context, key string) (string, error) {
	if v, ok := i.Strings[key]; ok {
		return v, nil
	}
	switch key {
	case instance.SettingName:
		return "Rivendell", nil
	case instance.SettingDeviceApproval:
		return "off", nil
	case instance.SettingLocale:
		return "en", nil
	case instance.SettingTimeZone:
		return "UTC", nil
	}
	return "", errors.New("unknown setting " + key)
}

// Bool implements instance.Settings.
func (i *Instance) Bool(_ context.Context, key string) (bool, error) {
	if v, ok := i.Bools[key]; ok {
		return v, nil
	}
	return key == instance.SettingLocalEnabled || key == instance.SettingPasskeyEnabled, nil
}

// Int implements instance.Settings.
func (i *Instance) Int(_ context.Context, key string) (int64, error) {
	return 0, errors.New("unknown setting " + key)
}

// Duration implements instance.Settings.
func (i *Instance) Duration(_ context.Context, key string) (time.Duration, error) {
	return 0, errors.New("unknown setting " + key)
}

// Grants implements authz.Grants and authz.Groups and counts what is made.
type Grants struct {
	mu       sync.Mutex
	Everyone int
	Handles  map[string]bool
}

// CreateEveryone implements authz.Grants.
func (g *Grants) CreateEveryone(context.Context) (ids.ID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Everyone++
	return ids.New(), nil
}

// GrantEveryone implements authz.Grants.
func (g *Grants) GrantEveryone(context.Context, authz.Target, authorize.Level, []authorize.Capability) error {
	return nil
}

// GrantPrincipal implements authz.Grants.
func (g *Grants) GrantPrincipal(context.Context, ids.ID, authz.Target, authorize.Level, []authorize.Capability) error {
	return nil
}

// RevokeAll implements authz.Grants.
func (g *Grants) RevokeAll(context.Context, ids.ID) error { return nil }

// HandleTaken implements authz.Groups.
func (g *Grants) HandleTaken(_ context.Context, handle string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Handles[handle], nil
}

// Throttle lets everything pass until Block is set.
type Throttle struct {
	mu    sync.Mutex
	block bool
	keys  []string
}

// Block makes every further attempt too many.
func (t *Throttle) Block(block bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.block = block
}

// Keys gives the keys of the attempts so far.
func (t *Throttle) Keys() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.keys...)
}

// Take implements app.Throttle.
func (t *Throttle) Take(_, key string) (bool, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keys = append(t.keys, key)
	return !t.block, time.Minute
}
