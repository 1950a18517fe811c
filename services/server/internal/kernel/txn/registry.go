// SPDX-License-Identifier: Apache-2.0

package txn

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"sort"
	"strings"
)

// Hooks are the functions that the unit of work calls at its phases. Each belongs to one
// module; a nil hook does nothing.
type Hooks struct {
	// RightsBegin runs before the work of a unit that declares a change of rights.
	RightsBegin func(ctx context.Context, change RightsChange) error
	// RightsCheck runs after that work and may veto it.
	RightsCheck func(ctx context.Context, change RightsChange) error
	// Log numbers and queues the appended events; its statements travel with the commit.
	Log func(ctx context.Context) error
	// Audit extends the chain of the audit log.
	Audit func(ctx context.Context) error
	// Committed runs when the commit has been answered, before its flush is waited for, and
	// also when the answer was lost. It must not wait for anything and may not use the unit's
	// transaction.
	Committed func(ctx context.Context)
}

// Registry holds the hooks and the subscribers of in-transaction events. internal/wire
// fills it in one place and seals it before the first unit of work.
type Registry struct {
	hooks       Hooks
	subscribers map[reflect.Type][]subscriber
	order       []SubscriptionInfo
	watch       Watch
	sealed      bool
}

// Watch is told when a subscriber begins, by its package and function below internal/; the
// returned function is told how it ended. The context goes to the subscriber.
type Watch func(ctx context.Context, subscriber string) (context.Context, func(err error))

type subscriber struct {
	name string
	call func(ctx context.Context, event any) error
}

// SubscriptionInfo names a subscription for the golden list of the architecture gate.
type SubscriptionInfo struct {
	// Event is the type, for example messaging.MessagePosted.
	Event string
	// Publisher and Subscriber are packages below internal/; Function is the method.
	Publisher, Subscriber, Function string
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{subscribers: map[reflect.Type][]subscriber{}}
}

// SetHooks installs the hooks; it panics when called twice or after Seal, or for a function
// that internal/wire has made, as wiring that is wrong must not start: a rule in a hook
// belongs to a module.
func (r *Registry) SetHooks(h Hooks) {
	r.mustBeOpen()
	if r.hooks.RightsBegin != nil || r.hooks.Log != nil || r.hooks.Audit != nil {
		panic("txn: hooks are set already")
	}
	for _, fn := range []any{h.RightsBegin, h.RightsCheck, h.Log, h.Audit, h.Committed} {
		if name := functionName(fn); strings.Contains(name, "/internal/wire.") {
			panic(fmt.Sprintf("txn: hook %s belongs to no module", name))
		}
	}
	r.hooks = h
}

// SetWatch lets every call of a subscriber be watched, for traces. It panics after Seal.
func (r *Registry) SetWatch(w Watch) {
	r.mustBeOpen()
	r.watch = w
}

// Hooks gives the installed hooks.
func (r *Registry) Hooks() Hooks { return r.hooks }

// Seal ends the filling of the registry.
func (r *Registry) Seal() { r.sealed = true }

// Sealed reports whether the registration has ended. A unit that runs before could miss a
// hook or a subscriber.
func (r *Registry) Sealed() bool { return r.sealed }

// Subscribe registers fn for events of type E. Delivery is synchronous, in the order of
// registration and in the publisher's transaction; an error prevents the commit. fn must be
// a function or a method value of the subscribing module: a closure would hide its owner
// from the architecture gate and panics.
func Subscribe[E any](r *Registry, fn func(ctx context.Context, event E) error) {
	r.mustBeOpen()
	event := reflect.TypeFor[E]()
	name := functionName(fn)
	base := strings.TrimSuffix(name, "-fm")
	if strings.Contains(base[strings.LastIndex(base, "/")+1:], ".func") {
		panic(fmt.Sprintf("txn: subscriber %s of %s is a closure; register a function or method of its module", name, event))
	}
	r.subscribers[event] = append(r.subscribers[event], subscriber{name: base, call: func(ctx context.Context, e any) error {
		return fn(ctx, e.(E))
	}})
	pkg, function := splitFunction(base)
	r.order = append(r.order, SubscriptionInfo{
		Event: event.String(), Publisher: shortPackage(event.PkgPath()), Subscriber: shortPackage(pkg), Function: function,
	})
}

// Publish delivers an event of the running unit to its subscribers. Outside the phases of
// work and rights it fails, because a later effect could no longer be undone or counted.
func Publish[E any](ctx context.Context, event E) error {
	u := Current(ctx)
	if u == nil || u.Phase() != PhaseWork && u.Phase() != PhaseRights {
		return fmt.Errorf("txn: %T published outside the work of a unit", event)
	}
	for _, s := range u.Registry().subscribers[reflect.TypeFor[E]()] {
		if err := u.Registry().deliver(ctx, s, event); err != nil {
			return fmt.Errorf("deliver %T to %s: %w", event, s.name, err)
		}
	}
	return nil
}

func (r *Registry) deliver(ctx context.Context, s subscriber, event any) error {
	if r.watch == nil {
		return s.call(ctx, event)
	}
	ctx, ended := r.watch(ctx, shortPackage(s.name))
	err := s.call(ctx, event)
	ended(err)
	return err
}

// functionName is the full name of a function, empty for nil.
func functionName(fn any) string {
	v := reflect.ValueOf(fn)
	if v.IsNil() {
		return ""
	}
	return runtime.FuncForPC(v.Pointer()).Name()
}

// Subscriptions lists what is registered, by event and then in the order of delivery.
func (r *Registry) Subscriptions() []SubscriptionInfo {
	out := append([]SubscriptionInfo(nil), r.order...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Event < out[j].Event })
	return out
}

func (r *Registry) mustBeOpen() {
	if r.sealed {
		panic("txn: the registry is sealed")
	}
}

func splitFunction(name string) (pkg, function string) {
	slash := strings.LastIndex(name, "/")
	dot := strings.Index(name[slash+1:], ".")
	return name[:slash+1+dot], name[slash+2+dot:]
}

func shortPackage(path string) string {
	if _, after, found := strings.Cut(path, "/internal/"); found {
		return after
	}
	return path
}
