// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/identity/domain"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
)

// drivers reads which of the drivers that need nothing but this server are switched on.
func (s *Service) drivers(ctx context.Context) (domain.Drivers, error) {
	local, err := s.Settings.Bool(ctx, instance.SettingLocalEnabled)
	if err != nil {
		return domain.Drivers{}, err
	}
	passkey, err := s.Settings.Bool(ctx, instance.SettingPasskeyEnabled)
	return domain.Drivers{Local: local, Passkey: passkey}, err
}

// needDriver refuses a driver that is switched off as if there were none.
func (s *Service) needDriver(ctx context.Context, driver string) error {
	if driver != DriverLocal && driver != DriverPasskey {
		return nil
	}
	on, err := s.drivers(ctx)
	if err != nil || driver == DriverLocal && on.Local || driver == DriverPasskey && on.Passkey {
		return err
	}
	return errs.Invalid("/driver", "unknown", "Use one of the login options of the discovery document.")
}

// CheckSettings is an instance.SettingsCheck: no driver is switched off while an active owner
// would keep no way in.
func (s *Service) CheckSettings(ctx context.Context, values map[string]any) error {
	local, _ := values[instance.SettingLocalEnabled].(bool)
	passkey, _ := values[instance.SettingPasskeyEnabled].(bool)
	if local && passkey {
		return nil
	}
	shut, err := s.Store.OwnersShutOut(ctx, domain.Drivers{Local: local, Passkey: passkey})
	if err != nil {
		return err
	}
	if shut {
		return errs.Conflict("no_login_left", "An owner could not sign in any more. Let every owner add another way first.")
	}
	return nil
}
