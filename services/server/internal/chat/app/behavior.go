// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"reflect"

	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// BehaviorPatch changes how a channel sets agents to work. A nil member stays.
type BehaviorPatch struct {
	TriggerRule   *string
	AgentChaining *bool
	AgentSources  *string
	Prompt        *string
	// Skills replaces the whole list.
	Skills *[]domain.Skill
}

// Behavior reads how a channel sets agents to work.
func (s *Channels) Behavior(ctx context.Context, id ids.ID) (out domain.Channel, err error) {
	err = s.Units.View(ctx, func(ctx context.Context) error {
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelBehaviorRead, authorize.Channel(id)); err != nil {
			return err
		}
		if out, err = s.Channels.Get(ctx, id); err != nil {
			return err
		}
		out.Behavior.Skills, err = s.Channels.Skills(ctx, id)
		return err
	})
	return out, err
}

// UpdateBehavior changes the behaviour made from the named version of it. A change that
// changes nothing is no event.
func (s *Channels) UpdateBehavior(ctx context.Context, id ids.ID, version int64, p BehaviorPatch) (out domain.Channel, err error) {
	if err := s.checkBehavior(p); err != nil {
		return out, err
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if out, err = s.locked(ctx, id, false); err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelBehaviorUpdate, authorize.Channel(id)); err != nil {
			return err
		}
		if err := checkVersion(out.BehaviorVersion, version); err != nil {
			return err
		}
		if out.Archived() {
			return errs.Forbidden(reasonTargetArchived)
		}
		if out.Behavior.Skills, err = s.Channels.Skills(ctx, id); err != nil {
			return fmt.Errorf("read the skills: %w", err)
		}
		before := out.Behavior
		b := &out.Behavior
		setIf(&b.TriggerRule, p.TriggerRule)
		setIf(&b.AgentChaining, p.AgentChaining)
		setIf(&b.AgentSources, p.AgentSources)
		setIf(&b.Prompt, p.Prompt)
		setIf(&b.Skills, p.Skills)
		if reflect.DeepEqual(before, out.Behavior) {
			return nil
		}
		return s.saveBehavior(ctx, out, p.Skills != nil, &out)
	})
	return out, err
}

func (s *Channels) saveBehavior(ctx context.Context, c domain.Channel, skills bool, out *domain.Channel) error {
	c.TouchBehavior(txn.Current(ctx).Now())
	*out = c
	if skills {
		if err := s.Channels.ReplaceSkills(ctx, c.ID, c.Behavior.Skills); err != nil {
			return fmt.Errorf("replace the skills: %w", err)
		}
	}
	if err := s.save(ctx, c, eventChannelUpdated); err != nil {
		return err
	}
	if err := s.Log.Append(ctx, s.channelEvent(eventSettingsChanged, c)); err != nil {
		return err
	}
	return s.tellOperator(ctx, c)
}

func (s *Channels) checkBehavior(p BehaviorPatch) error {
	var faults errs.Validation
	if p.Prompt != nil {
		s.names().Prompt(&faults, "/prompt", *p.Prompt)
	}
	if p.Skills != nil {
		if len(*p.Skills) > s.Config.MaxSkills {
			faults.Addf("/skills", "too_many", "A channel may have %d skills.", s.Config.MaxSkills)
		}
		seen := map[string]bool{}
		for i, skill := range *p.Skills {
			if seen[skill.Name] {
				faults.Add(fmt.Sprintf("/skills/%d/name", i), "duplicate", "The skill stands in the list already.")
			}
			seen[skill.Name] = true
		}
	}
	return faults.Err()
}

// SetOperator decides which agent answers in a channel: an own one, that of the space, or
// none. It is a change of rights, since an operator may write where it answers.
func (s *Channels) SetOperator(ctx context.Context, id ids.ID, version int64, mode string, agent ids.ID) (out domain.Channel, err error) {
	if (mode == domain.OperatorOwn) == agent.IsZero() {
		return out, errs.Invalid("/agent_id", "required", "Name an agent exactly with the mode own.")
	}
	change := txn.RightsChange{
		Action: string(authorize.ActionChannelOperatorSet), Principals: affected(agent), Targets: []txn.Target{{Kind: "channel", ID: id}},
	}
	err = s.Units.Do(ctx, func(ctx context.Context) error {
		if out, err = s.locked(ctx, id, true); err != nil {
			return err
		}
		if err := s.Authorizer.Authorize(ctx, authorize.ActionChannelOperatorSet, authorize.Channel(id)); err != nil {
			return err
		}
		switch {
		case out.Kind == domain.KindDirect:
			return errs.Conflict("dm_fixed", "The agent of a direct message cannot be changed.")
		case out.Archived():
			return errs.Forbidden(reasonTargetArchived)
		}
		if err := checkVersion(out.Version, version); err != nil {
			return err
		}
		if err := s.checkAgent(ctx, agent); err != nil {
			return err
		}
		before := out.Operator()
		if !out.SetOperator(mode, agent) {
			return nil
		}
		return s.changeOperator(ctx, &out, before)
	}, txn.WithRightsChange(change))
	return out, err
}

// UnsetOperator implements authz.OperatorSwitch: no agent answers in the channel any more.
func (s *Channels) UnsetOperator(ctx context.Context, id ids.ID) error {
	c, err := s.locked(ctx, id, true)
	if err != nil {
		return err
	}
	before := c.Operator()
	if !c.SetOperator(domain.OperatorNone, ids.ID{}) {
		return nil
	}
	return s.changeOperator(ctx, &c, before)
}

func (s *Channels) changeOperator(ctx context.Context, c *domain.Channel, before ids.ID) error {
	after := c.Operator()
	if err := s.Affected.Affect(ctx, affected(before, after)...); err != nil {
		return fmt.Errorf("name the operators: %w", err)
	}
	c.Touch(txn.Current(ctx).Now(), true)
	if err := s.save(ctx, *c, eventChannelUpdated); err != nil {
		return err
	}
	if !before.IsZero() && before != after {
		if err := s.Log.Append(ctx, s.configEvent(before, *c, s.Payloads.AgentConfigRemoved(c.ID))); err != nil {
			return err
		}
	}
	return s.tellOperator(ctx, *c)
}

func (s *Channels) checkAgent(ctx context.Context, agent ids.ID) error {
	if agent.IsZero() {
		return nil
	}
	found, err := s.Directory.ByID(ctx, []ids.ID{agent})
	if err != nil {
		return fmt.Errorf("find the agent: %w", err)
	}
	if p, ok := found[agent]; !ok || p.Kind != actor.KindAgent || !p.Active() {
		return errs.Invalid("/agent_id", reasonOperatorUnknown, "This is no active agent.")
	}
	return nil
}
