// SPDX-License-Identifier: Apache-2.0

package txn

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// unit is one that works.
type unit struct {
	Unit
	registry *Registry
}

func (u unit) Phase() Phase        { return PhaseWork }
func (u unit) Registry() *Registry { return u.registry }

type posted struct{ text string }

type module struct {
	heard []string
	veto  error
}

func (m *module) OnPosted(ctx context.Context, e posted) error {
	m.heard = append(m.heard, e.text+" in "+ctx.Value(watched{}).(string))
	return m.veto
}

type watched struct{}

func TestSubscribersAreWatched(t *testing.T) {
	veto := errors.New("not now")
	for name, m := range map[string]*module{"ok": {}, "veto": {veto: veto}} {
		var ends []error
		r := NewRegistry()
		r.SetWatch(func(ctx context.Context, subscriber string) (context.Context, func(error)) {
			return context.WithValue(ctx, watched{}, subscriber), func(err error) { ends = append(ends, err) }
		})
		Subscribe(r, m.OnPosted)
		r.Seal()
		err := Publish(WithUnit(t.Context(), unit{registry: r}), posted{"hello"})
		if !errors.Is(err, m.veto) || !slices.Equal(ends, []error{m.veto}) {
			t.Errorf("%s: %v, watched %v", name, err, ends)
		}
		if want := "hello in kernel/txn.(*module).OnPosted"; len(m.heard) != 1 || m.heard[0] != want {
			t.Errorf("%s: heard %q", name, m.heard)
		}
	}
}

func TestASubscriberThatHidesItsModuleIsRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a closure was taken")
		}
	}()
	Subscribe(NewRegistry(), func(context.Context, posted) error { return nil })
}
