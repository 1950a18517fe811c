// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Spaces has the use cases of spaces.
type Spaces struct{ Deps }

// NewSpaces makes the use cases.
func NewSpaces(d Deps) *Spaces { return &Spaces{d} }

// NewSpace describes a space to be created.
type NewSpace struct {
	Name, Description string
	Icon, Color       *string
	// AfterID is the space it stands behind; zero means at the end.
	AfterID ids.ID
}

// SpacePatch changes a space. A nil member stays; a pointer to nil clears.
type SpacePatch struct {
	Name, Description *string
	Icon, Color       **string
}

// List gives a page of the spaces the actor may see, in their order. A space of which only
// single channels are visible comes in short form.
func (s *Spaces) List(ctx context.Context, q SpaceQuery) (list []domain.Space, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		scope, err := s.Authorizer.Scope(ctx, authorize.ActionSpaceRead)
		if err != nil {
			return fmt.Errorf("find the visible spaces: %w", err)
		}
		q.Visible = scope
		if list, err = s.Spaces.Page(ctx, q); err != nil {
			return fmt.Errorf("list spaces: %w", err)
		}
		for i := range list {
			list[i] = shown(scope, list[i])
		}
		return nil
	})
	return list, err
}

// Get reads one space.
func (s *Spaces) Get(ctx context.Context, id ids.ID) (out domain.Space, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionSpaceRead, authorize.Space(id)); err != nil {
			return err
		}
		if out, err = s.Spaces.Get(ctx, id); err != nil {
			return err
		}
		scope, err := s.Authorizer.Scope(ctx, authorize.ActionSpaceRead)
		out = shown(scope, out)
		return err
	})
	return out, err
}

func shown(scope authorize.Scope, s domain.Space) domain.Space {
	if scope.All || slices.Contains(scope.Spaces, s.ID) {
		return s
	}
	return s.Passing()
}

// Create makes a space, at the end or behind another one.
func (s *Spaces) Create(ctx context.Context, n NewSpace) (out domain.Space, err error) {
	var faults errs.Validation
	names := s.names()
	n.Name = names.Name(&faults, "/name", n.Name)
	n.Description = names.Description(&faults, "/description", n.Description)
	if err := faults.Err(); err != nil {
		return out, err
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionSpaceCreate, authorize.Instance()); err != nil {
			return err
		}
		out, err = s.create(ctx, n, actor.From(ctx).ID)
		return err
	})
	return out, err
}

func (s *Spaces) create(ctx context.Context, n NewSpace, by ids.ID) (domain.Space, error) {
	if err := s.Spaces.LockOrder(ctx); err != nil {
		return domain.Space{}, err
	}
	siblings, err := s.Spaces.Siblings(ctx)
	if err != nil {
		return domain.Space{}, fmt.Errorf("read the order of spaces: %w", err)
	}
	if domain.Present(siblings) >= s.Config.MaxSpaces {
		return domain.Space{}, errs.Conflict(reasonLimitReached, fmt.Sprintf("There may be %d spaces.", s.Config.MaxSpaces))
	}
	key, err := placeKey(ctx, siblings, n.AfterID, s.rekey)
	if err != nil {
		return domain.Space{}, err
	}
	now := txn.Current(ctx).Now()
	out := domain.Space{
		ID: ids.NewAt(now), Name: n.Name, Description: n.Description, Icon: n.Icon, Color: n.Color, Key: key,
		CreatedBy: by, CreatedAt: now, UpdatedAt: now, Version: 1,
	}
	if err := s.Spaces.Insert(ctx, out); err != nil {
		return domain.Space{}, fmt.Errorf("insert the space: %w", err)
	}
	return out, s.Log.Append(ctx, s.spaceEvent(eventSpaceCreated, out))
}

// placeKey finds the key of a new sibling. When none is short enough, rekey gives all
// siblings fresh keys first.
func placeKey(ctx context.Context, siblings []domain.Sibling, after ids.ID, rekey func(context.Context, ids.ID, string) error) (string, error) {
	key, found, err := domain.PlaceAfter(siblings, after)
	if errors.Is(err, domain.ErrKeysFull) {
		for i, fresh := range domain.FreshKeys(len(siblings)) {
			siblings[i].Key = fresh
			if err := rekey(ctx, siblings[i].ID, fresh); err != nil {
				return "", fmt.Errorf("renumber the siblings: %w", err)
			}
		}
		key, found, err = domain.PlaceAfter(siblings, after)
	}
	if err == nil && !found {
		err = errs.Invalid("/after_id", "unknown", "There is no such sibling.")
	}
	return key, err
}

func (s *Spaces) rekey(ctx context.Context, id ids.ID, key string) error {
	space, err := s.Spaces.Lock(ctx, id)
	if err != nil {
		return err
	}
	space.Key = key
	space.Touch(txn.Current(ctx).Now())
	if err := s.Spaces.Update(ctx, space); err != nil {
		return err
	}
	return s.Log.Append(ctx, s.spaceEvent(eventSpaceUpdated, space))
}

// Update changes a space made from the named version.
func (s *Spaces) Update(ctx context.Context, id ids.ID, version int64, p SpacePatch) (out domain.Space, err error) {
	var faults errs.Validation
	names := s.names()
	if p.Name != nil {
		*p.Name = names.Name(&faults, "/name", *p.Name)
	}
	if p.Description != nil {
		*p.Description = names.Description(&faults, "/description", *p.Description)
	}
	if err := faults.Err(); err != nil {
		return out, err
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if out, err = s.Spaces.Lock(ctx, id); err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionSpaceUpdate, authorize.Space(id)); err != nil {
			return err
		}
		if err := checkVersion(out.Version, version); err != nil {
			return err
		}
		if out.ArchivedAt != nil {
			return errs.Forbidden(reasonTargetArchived)
		}
		setIf(&out.Name, p.Name)
		setIf(&out.Description, p.Description)
		setIf(&out.Icon, p.Icon)
		setIf(&out.Color, p.Color)
		out.Touch(txn.Current(ctx).Now())
		if err := s.Spaces.Update(ctx, out); err != nil {
			return fmt.Errorf("update the space: %w", err)
		}
		return s.Log.Append(ctx, s.spaceEvent(eventSpaceUpdated, out))
	})
	return out, err
}

// setIf applies a member of a patch.
func setIf[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
