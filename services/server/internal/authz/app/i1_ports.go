// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// TriggerRows are the rights to set agents to work as stored.
type TriggerRows struct {
	// Grants are all of the level trigger and above, by ID.
	Grants []TriggerGrant
	// Members are those of the groups that such grants name.
	Members []TriggerMember
}

// TriggerGrant is a grant of a principal or of a group; the other ID is zero.
type TriggerGrant struct {
	ID, PrincipalID, GroupID ids.ID
	// Everyone is set for the group of all members, which has no member rows.
	Everyone bool
	domain.Grant
}

// TriggerMember is a membership; Claimed is set when an identity provider keeps it.
type TriggerMember struct {
	domain.MemberKey
	Claimed   bool
	ExpiresAt time.Time
}

// TriggerStore reads who can set agents to work.
type TriggerStore interface {
	Triggers(ctx context.Context) (TriggerRows, error)
}

// Remedies are what other modules do as a way out of a violation.
type Remedies struct {
	Switch    authz.AgentPolicySwitch
	Operators authz.OperatorSwitch
}

// SetRemedies installs those that are not nil, while the process starts.
func (s *Service) SetRemedies(r Remedies) {
	if r.Switch != nil {
		s.remedies.Switch = r.Switch
	}
	if r.Operators != nil {
		s.remedies.Operators = r.Operators
	}
}

var errNoRemedy = errors.New("authz: nothing can make this remedy")

func (r Remedies) switchToOrganization(ctx context.Context, agents []ids.ID) error {
	if r.Switch == nil {
		return errNoRemedy
	}
	return r.Switch.SwitchToOrganization(ctx, agents)
}

func (r Remedies) unsetOperator(ctx context.Context, channel ids.ID) error {
	if r.Operators == nil {
		return errNoRemedy
	}
	return r.Operators.UnsetOperator(ctx, channel)
}
