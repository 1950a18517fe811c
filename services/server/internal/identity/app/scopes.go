// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"sync"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
)

// moderationScope stands in no entry of the catalogue: it is needed instead of the write
// scope for what others have written.
const moderationScope = "messaging.admin"

// usableScopes are the scopes of the actions that are open to each kind of principal. A
// scope without such an action would promise what the token cannot do.
var usableScopes = sync.OnceValue(func() map[actor.Kind][]string {
	usable := map[actor.Kind][]string{}
	for _, spec := range authorize.Catalogue {
		if spec.Scope == "" || spec.Scope == authorize.ScopeSession || spec.Scope == authorize.ScopeNone {
			continue
		}
		for _, kind := range []actor.Kind{actor.KindPerson, actor.KindAgent, actor.KindApp} {
			if spec.OpenTo(authorize.CallerKind(kind)) && !slices.Contains(usable[kind], spec.Scope) {
				usable[kind] = append(usable[kind], spec.Scope)
			}
		}
	}
	for kind := range usable {
		usable[kind] = append(usable[kind], moderationScope)
		slices.Sort(usable[kind])
	}
	return usable
})

// Scopes lists the scopes a principal of the kind can use, sorted.
func Scopes(kind actor.Kind) []string { return slices.Clone(usableScopes()[kind]) }

// unusableScopes gives those that are unknown or of no use to the kind.
func unusableScopes(kind actor.Kind, wanted []string) []string {
	var bad []string
	for _, scope := range wanted {
		if !slices.Contains(usableScopes()[kind], scope) {
			bad = append(bad, scope)
		}
	}
	return bad
}

// tokenKind is the kind of API token a principal holds, and the prefix of its secrets.
func tokenKind(kind actor.Kind) (string, domain.SecretKind) {
	switch kind {
	case actor.KindAgent:
		return "agent", domain.SecretAgent
	case actor.KindApp:
		return "app", domain.SecretApp
	default:
		return "pat", domain.SecretPAT
	}
}
