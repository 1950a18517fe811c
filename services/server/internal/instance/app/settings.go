// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// EventInstanceUpdated is the event of this module.
const EventInstanceUpdated = "instance.updated"

// settingViewAs is a setting of this module that authz reads.
const settingViewAs = "access.view_as_enabled"

// settingProductName is the name of the product on this instance unless branding has another.
const settingProductName = "branding.product_name"

func ownSettings() []domain.Setting {
	one, eighty, forty := int64(1), int64(80), int64(40)
	return []domain.Setting{
		{Key: instance.SettingName, Module: "instance", Type: domain.TypeString, Default: "Bothy", Min: &one, Max: &eighty},
		{Key: instance.SettingLocale, Module: "instance", Type: domain.TypeString, Default: "en", Min: &one, Max: &forty},
		{Key: instance.SettingTimeZone, Module: "instance", Type: domain.TypeString, Default: "UTC", Check: checkTimeZone},
		{Key: settingProductName, Module: "instance", Type: domain.TypeString, Default: "Bothy", Min: &one, Max: &forty},
		{Key: settingViewAs, Module: "authz", Type: domain.TypeBool, Default: true, Sensitive: true},
		{Key: instance.SettingEmailVisible, Module: "identity", Type: domain.TypeBool, Default: false},
	}
}

func checkTimeZone(v any) error {
	name, _ := v.(string)
	if _, err := time.LoadLocation(name); err != nil || name == "" || name == "Local" {
		return errors.New("the value must be the name of a time zone, for example Europe/Vienna")
	}
	return nil
}

// SettingsView is what an owner sees of the settings.
type SettingsView struct {
	// Values are all values in the form they are written in.
	Values  map[string]any
	Schema  []domain.Setting
	Version int64
}

// ReadSettings gives every setting with its value and its rules.
func (s *Service) ReadSettings(ctx context.Context) (SettingsView, error) {
	if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceSettingsRead, authorize.Instance()); err != nil {
		return SettingsView{}, err
	}
	section, err := s.store.Section(ctx, SectionSettings)
	if err != nil {
		return SettingsView{}, fmt.Errorf("read settings: %w", err)
	}
	return s.view(section), nil
}

func (s *Service) view(section Section) SettingsView {
	values := s.registry.Values(section.Document)
	for key, v := range values {
		values[key] = domain.Written(v)
	}
	return SettingsView{Values: values, Schema: s.registry.All(), Version: max(section.Version, 1)}
}

// UpdateSettings changes the named settings and leaves the others; JSON null restores a
// default. All take effect or none does. version must be the present one.
func (s *Service) UpdateSettings(ctx context.Context, changes map[string]json.RawMessage, version int64) (SettingsView, error) {
	var out SettingsView
	err := s.units.Do(ctx, func(ctx context.Context) error {
		if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionInstanceSettingsUpdate, authorize.Instance()); err != nil {
			return err
		}
		section, err := s.store.LockSection(ctx, SectionSettings)
		if err != nil {
			return fmt.Errorf("lock settings: %w", err)
		}
		if max(section.Version, 1) != version {
			return errs.New(errs.CodeVersionConflict, "The settings have changed. Load them and try again.")
		}
		sensitive, err := s.apply(section.Document, changes)
		if err != nil {
			return err
		}
		if sensitive && !actor.From(ctx).StepUpUntil.After(s.now(ctx)) {
			return errs.New(errs.CodeStepUpRequired, "Prove again that it is you, then repeat.")
		}
		for _, check := range s.checks {
			if err := check(ctx, s.registry.Values(section.Document)); err != nil {
				return err
			}
		}
		section.Version = version + 1
		if err := s.store.SaveSection(ctx, SectionSettings, section, actor.From(ctx).ID, s.now(ctx)); err != nil {
			return fmt.Errorf("store settings: %w", err)
		}
		out = s.view(section)
		return s.tellChange(ctx, "settings", slices.Sorted(maps.Keys(changes)), section)
	})
	s.Invalidate()
	return out, err
}

// apply puts the changes into the document; it reports whether one of them is sensitive.
func (s *Service) apply(document map[string]json.RawMessage, changes map[string]json.RawMessage) (sensitive bool, err error) {
	var v errs.Validation
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		setting, known := s.registry.Get(key)
		if !known {
			v.Addf("/"+key, "unknown", "There is no setting %q.", key)
			continue
		}
		sensitive = sensitive || setting.Sensitive
		raw := changes[key]
		if string(raw) == "null" {
			delete(document, key)
			continue
		}
		if _, fault := setting.Parse(raw); fault != nil {
			v.Add("/"+key, fault.Code, fault.Message)
			continue
		}
		document[key] = raw
	}
	return sensitive, v.Err()
}

func (s *Service) tellChange(ctx context.Context, section string, keys []string, stored Section) error {
	if err := s.peers.Audit.Allowed(ctx, auditing.Entry{
		Action: string(authorize.ActionInstanceSettingsUpdate), ResourceKind: string(authorize.ResourceInstance),
		Details: map[string]any{"keys": keys},
	}); err != nil {
		return err
	}
	public, err := s.publicWith(ctx, s.registry.Values(stored.Document))
	if err != nil {
		return err
	}
	return s.tellPublic(ctx, section, public)
}

// tell appends the event of the module: what changed, with the public data as they are then.
func (s *Service) tell(ctx context.Context, changed string) error {
	public, err := s.public(ctx)
	if err != nil {
		return err
	}
	return s.tellPublic(ctx, changed, public)
}

func (s *Service) tellPublic(ctx context.Context, changed string, public Public) error {
	return s.peers.Events.Append(ctx, eventlog.Event{
		Type: EventInstanceUpdated, Resource: eventlog.Resource{Type: "instance", ID: public.ID},
		Payload: updatedPayload{Changed: []string{changed}, Instance: public},
	})
}

// Invalidate forgets what is kept in memory of settings, branding, flags and keys. The follower of the log
// calls it on instance.updated, so that a change in another process takes effect here.
func (s *Service) Invalidate() {
	s.settings.forget()
	s.branding.forget()
	s.flags.forget()
	s.keys.expire()
}

// current gives all values, from memory while they are young. Inside a unit of work the
// rows are read, since the unit may have changed them.
func (s *Service) current(ctx context.Context) (map[string]any, error) {
	load := func() (map[string]any, error) {
		section, err := s.store.Section(ctx, SectionSettings)
		if err != nil {
			return nil, fmt.Errorf("read settings: %w", err)
		}
		return s.registry.Values(section.Document), nil
	}
	if u := txn.Current(ctx); u != nil && !u.ReadOnly() {
		return load()
	}
	return s.settings.get(s.clock.Now(), s.cfg.SettingsTTL, load)
}

func settingOf[T any](ctx context.Context, s *Service, key string) (T, error) {
	var none T
	values, err := s.current(ctx)
	if err != nil {
		return none, err
	}
	v, ok := values[key].(T)
	if !ok {
		return none, errs.Internal(fmt.Errorf("the setting %s is no %T", key, none))
	}
	return v, nil
}

// String implements instance.Settings.
func (s *Service) String(ctx context.Context, key string) (string, error) {
	return settingOf[string](ctx, s, key)
}

// Bool implements instance.Settings.
func (s *Service) Bool(ctx context.Context, key string) (bool, error) {
	return settingOf[bool](ctx, s, key)
}

// Int implements instance.Settings.
func (s *Service) Int(ctx context.Context, key string) (int64, error) {
	return settingOf[int64](ctx, s, key)
}

// Duration implements instance.Settings.
func (s *Service) Duration(ctx context.Context, key string) (time.Duration, error) {
	return settingOf[time.Duration](ctx, s, key)
}
