// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// FlagView is a flag with what the program says about it.
type FlagView struct {
	Registered instance.Flag
	domain.Flag
}

// FlagChange has what an owner changes; nil keeps.
type FlagChange struct {
	State          *domain.FlagState
	People, Groups *[]ids.ID
	Percent        *int
}

// flagRegistry holds the flags of all modules by key.
type flagRegistry map[string]instance.Flag

func newFlagRegistry(list []instance.Flag) flagRegistry {
	r := make(flagRegistry, len(list))
	for _, f := range list {
		if _, twice := r[f.Key]; twice || f.Key == "" || f.Module == "" {
			panic("instance: the flag " + f.Key + " is registered twice or without a module")
		}
		r[f.Key] = f
	}
	return r
}

// Enabled implements instance.Flags.
func (s *Service) Enabled(ctx context.Context, key string) bool {
	registered, known := s.flagRegistry[key]
	if !known {
		s.log.Error("an unknown feature flag was asked for", "flag", key)
		return false
	}
	on, err := s.evaluate(ctx, key)
	if err != nil {
		s.log.Warn("a feature flag cannot be evaluated and has its default", "flag", key, "error", err)
		return registered.Default
	}
	return on
}

// flagsOf evaluates every flag for the actor.
func (s *Service) flagsOf(ctx context.Context) map[string]bool {
	out := make(map[string]bool, len(s.flagRegistry))
	for key := range s.flagRegistry {
		out[key] = s.Enabled(ctx, key)
	}
	return out
}

func (s *Service) evaluate(ctx context.Context, key string) (bool, error) {
	stored, err := s.storedFlags(ctx)
	if err != nil {
		return false, err
	}
	who := actor.From(ctx)
	return s.flag(stored, key).For(domain.Subject{
		ID: who.ID, Person: who.Kind == actor.KindPerson,
		InGroup: func(groups []ids.ID) (bool, error) {
			if s.peers.FlagGroups == nil {
				return false, nil
			}
			return s.peers.FlagGroups.InAnyGroup(ctx, who.ID, groups)
		},
	})
}

func (s *Service) flag(stored map[string]domain.Flag, key string) domain.Flag {
	if f, changed := stored[key]; changed {
		return f
	}
	return domain.Untouched(key, s.flagRegistry[key].Default)
}

// storedFlags gives the rows, from memory while they are young.
func (s *Service) storedFlags(ctx context.Context) (map[string]domain.Flag, error) {
	load := func() (map[string]domain.Flag, error) {
		list, err := s.store.Flags(ctx)
		if err != nil {
			return nil, fmt.Errorf("read feature flags: %w", err)
		}
		out := make(map[string]domain.Flag, len(list))
		for _, f := range list {
			out[f.Key] = f
		}
		return out, nil
	}
	if u := txn.Current(ctx); u != nil && !u.ReadOnly() {
		return load()
	}
	return s.flags.get(s.clock.Now(), s.cfg.SettingsTTL, load)
}

// ListFlags gives every flag that the program knows, by key.
func (s *Service) ListFlags(ctx context.Context) ([]FlagView, error) {
	if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionFeatureFlagRead, authorize.Instance()); err != nil {
		return nil, err
	}
	list, err := s.store.Flags(ctx)
	if err != nil {
		return nil, fmt.Errorf("read feature flags: %w", err)
	}
	stored := make(map[string]domain.Flag, len(list))
	for _, f := range list {
		stored[f.Key] = f
	}
	out := make([]FlagView, 0, len(s.flagRegistry))
	for key, registered := range s.flagRegistry {
		out = append(out, FlagView{registered, s.flag(stored, key)})
	}
	slices.SortFunc(out, func(a, b FlagView) int { return strings.Compare(a.Flag.Key, b.Flag.Key) })
	return out, nil
}

// UpdateFlag changes a flag. version must be the present one.
func (s *Service) UpdateFlag(ctx context.Context, key string, change FlagChange, version int64) (view FlagView, err error) {
	err = s.units.Do(ctx, func(ctx context.Context) error {
		if err := s.peers.Authorizer.Authorize(ctx, authorize.ActionFeatureFlagUpdate, authorize.Instance()); err != nil {
			return err
		}
		registered, known := s.flagRegistry[key]
		if !known {
			return errs.NotFound()
		}
		f, err := s.store.LockFlag(ctx, domain.Untouched(key, registered.Default), s.now(ctx))
		if err != nil {
			return fmt.Errorf("lock a feature flag: %w", err)
		}
		if f.Version != version {
			return errs.New(errs.CodeVersionConflict, "The flag has changed. Load it and try again.")
		}
		if err := s.applyFlag(ctx, &f, change); err != nil {
			return err
		}
		f.Version, f.UpdatedBy, f.UpdatedAt = version+1, actor.From(ctx).ID, s.now(ctx)
		if err := s.store.SaveFlag(ctx, f); err != nil {
			return fmt.Errorf("store a feature flag: %w", err)
		}
		view = FlagView{registered, f}
		if err := s.peers.Audit.Allowed(ctx, auditing.Entry{
			Action: string(authorize.ActionFeatureFlagUpdate), ResourceKind: string(authorize.ResourceInstance),
			Details: map[string]any{
				"key": key, "state": string(f.State), "percent": f.Percent, "people": len(f.People), "groups": len(f.Groups),
			},
		}); err != nil {
			return err
		}
		return s.tell(ctx, "flags")
	})
	s.Invalidate()
	return view, err
}

func (s *Service) applyFlag(ctx context.Context, f *domain.Flag, change FlagChange) error {
	if change.State != nil {
		f.State = *change.State
	}
	if change.Percent != nil {
		f.Percent = *change.Percent
	}
	if change.People != nil {
		f.People = *change.People
	}
	if change.Groups != nil {
		f.Groups = *change.Groups
	}
	f.Normalize()
	var v errs.Validation
	if change.People != nil && s.peers.FlagUsers != nil {
		unknown, err := s.peers.FlagUsers.UnknownPeople(ctx, f.People)
		if err != nil {
			return fmt.Errorf("look for the people of a flag: %w", err)
		}
		if len(unknown) > 0 {
			v.Addf("/people", "unknown", "%s is no person of this instance.", unknown[0])
		}
	}
	if change.Groups != nil && s.peers.FlagGroups != nil {
		unknown, err := s.peers.FlagGroups.UnknownGroups(ctx, f.Groups)
		if err != nil {
			return fmt.Errorf("look for the groups of a flag: %w", err)
		}
		if len(unknown) > 0 {
			v.Addf("/groups", "unknown", "There is no group %s.", unknown[0])
		}
	}
	return v.Err()
}
