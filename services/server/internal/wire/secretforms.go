// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"log/slog"

	identityapp "github.com/OWNER/bothy/services/server/internal/identity/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/platform/config"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// secretForms are the secrets that are not just words: what does not fit would stop the start.
var secretForms = map[string]func(text string) error{
	"audit.ip_key_wrap_ref": func(text string) error {
		_, err := decodeKey(text)
		return err
	},
	"auth.code_hmac_key_ref": func(text string) error {
		if len(text) < identityapp.CodeKeyMin {
			return fmt.Errorf("auth.code_hmac_key_ref: the secret must have at least %d bytes", identityapp.CodeKeyMin)
		}
		return nil
	},
}

// malformedSecrets names the references whose secret is there and has the wrong form. It is a
// fault of the configuration: starting again does not help.
func malformedSecrets(c *Config, loaded *config.Loaded) (map[string]error, error) {
	provider, err := secrets.New(c.Secrets, slog.New(slog.DiscardHandler), clock.System{})
	if err != nil {
		return nil, err
	}
	out := map[string]error{}
	for _, entry := range loaded.Refs() {
		fits := secretForms[entry.Key]
		if fits == nil || entry.Value == "" {
			continue
		}
		secret, err := provider.Resolve(entry.Key, entry.Value)
		if err != nil {
			continue // Absent is another fault, with a name of its own.
		}
		if err := fits(secret.Reveal()); err != nil {
			out[entry.Key] = err
		}
	}
	return out, nil
}
