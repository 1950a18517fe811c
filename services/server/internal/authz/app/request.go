// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
)

// requestMemo keeps what is asked once per request outside a unit.
type requestMemo struct {
	mu           sync.Mutex
	known        bool
	version      int64
	credentialOK bool
}

type requestKey struct{}

// WithRequest gives a context in which the version of all rights and the state of the
// credential are read at most once. The HTTP chain and the gateway call it once per request
// or op; without it every decision asks anew.
func WithRequest(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, &requestMemo{})
}

func memoOf(ctx context.Context) *requestMemo {
	m, _ := ctx.Value(requestKey{}).(*requestMemo)
	return m
}

func (s *Service) requestVersion(ctx context.Context) (int64, error) {
	m := memoOf(ctx)
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.known {
			return m.version, nil
		}
	}
	v, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
	if err != nil {
		return 0, fmt.Errorf("read the version of all rights: %w", err)
	}
	if m != nil {
		m.version, m.known = v, true
	}
	return v, nil
}

// checkCredential asks whether session, device or token still live, once per unit or request.
func (s *Service) checkCredential(ctx context.Context, a actor.Actor) error {
	if state := stateOf(ctx); state != nil {
		if state.credentialOK {
			return nil
		}
		if err := s.credentials.CheckActive(ctx, a); err != nil {
			return err
		}
		state.credentialOK = true
		return nil
	}
	m := memoOf(ctx)
	if m != nil {
		m.mu.Lock()
		done := m.credentialOK
		m.mu.Unlock()
		if done {
			return nil
		}
	}
	if err := s.credentials.CheckActive(ctx, a); err != nil {
		return err
	}
	if m != nil {
		m.mu.Lock()
		m.credentialOK = true
		m.mu.Unlock()
	}
	return nil
}
