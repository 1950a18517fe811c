// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"slices"

	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
)

// scopes is the closed list of what an API token may be limited to.
var scopes = []string{
	"instance.read", "instance.admin", "audit.admin", "authz.read", "authz.admin",
	"identity.read", "identity.write", "identity.admin", "chat.read", "chat.write", "chat.admin",
	"messaging.read", "messaging.write", "messaging.admin", "files.read", "files.write", "search.read",
	"agents.read", "agents.write", "agents.admin", "commands", "runs.read", "runs.write",
	"billing.read", "billing.admin", "costs.reconcile", "sync.read", "sync.write",
	"gateway.read", "gateway.write", "notify.write", "apps.read", "apps.write", "apps.admin",
	"importer.admin", "stats.read", "stats.write", "status.read", "status.admin", "terminal.read",
}

// ownerScopes lead only to acts of owners; agents cannot be owners.
var ownerScopes = []string{"instance.admin", "audit.admin", "authz.admin", "identity.admin", "importer.admin", "status.admin"}

// personScopes are of no use to anybody but people.
var personScopes = []string{"notify.write"}

// Scopes lists the scopes a principal of the kind can use.
func Scopes(kind actor.Kind) []string {
	usable := make([]string, 0, len(scopes))
	for _, s := range scopes {
		if kind != actor.KindPerson && slices.Contains(personScopes, s) || kind == actor.KindAgent && slices.Contains(ownerScopes, s) {
			continue
		}
		usable = append(usable, s)
	}
	return usable
}

// UnusableScopes gives those of the list that are unknown or of no use to the kind.
func UnusableScopes(kind actor.Kind, wanted []string) []string {
	usable := Scopes(kind)
	var bad []string
	for _, s := range wanted {
		if !slices.Contains(usable, s) {
			bad = append(bad, s)
		}
	}
	return bad
}

// TokenKind is the kind of API token a principal holds, and the prefix of its secrets.
func TokenKind(kind actor.Kind) (string, SecretKind) {
	switch kind {
	case actor.KindAgent:
		return "agent", SecretAgent
	case actor.KindApp:
		return "app", SecretApp
	default:
		return "pat", SecretPAT
	}
}
