// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// The types of events of this module.
const (
	EventAccessChanged = "access.changed"
	EventGrantChanged  = "grant.changed"
	EventGroupChanged  = "group.changed"
	// EventAccessExpiring reminds of a right or membership that will end.
	EventAccessExpiring = "access.expiring"
)

// maxListed is the most lines an access.changed carries; beyond it the receiver reads anew.
const maxListed = 200

// stamp is a time in the form of the API: UTC with milliseconds.
type stamp time.Time

// MarshalJSON implements json.Marshaler.
func (s stamp) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(s).UTC().Format(`"2006-01-02T15:04:05.000Z"`)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *stamp) UnmarshalJSON(b []byte) error { return (*time.Time)(s).UnmarshalJSON(b) }

func stampOf(t time.Time) *stamp {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

type targetPayload struct {
	Kind string  `json:"kind"`
	ID   *ids.ID `json:"id,omitempty"`
}

func targetPayloadOf(t domain.Target) targetPayload {
	return targetPayload{Kind: string(t.Kind), ID: t.ID.Ptr()}
}

func (t targetPayload) target() domain.Target {
	return domain.Target{Kind: domain.TargetKind(t.Kind), ID: ids.Deref(t.ID)}
}

type accessLine struct {
	Target       targetPayload `json:"target"`
	Level        *string       `json:"level"`
	Capabilities []string      `json:"capabilities"`
	// Passing is present at manage: what goes through channels that do not inherit.
	Passing *[]string `json:"passing,omitempty"`
}

type accessChangedPayload struct {
	PermissionVersion int64           `json:"permission_version"`
	Cause             string          `json:"cause"`
	Gained            []accessLine    `json:"gained,omitempty"`
	Changed           []accessLine    `json:"changed,omitempty"`
	Lost              []targetPayload `json:"lost,omitempty"`
	Owner             *bool           `json:"owner,omitempty"`
	Groups            *[]ids.ID       `json:"groups,omitempty"`
	ValidUntil        *stamp          `json:"valid_until,omitempty"`
	Full              bool            `json:"full,omitempty"`
}

func accessChangedOf(version int64, cause string, c domain.Change, before, after *domain.Entry) accessChangedPayload {
	p := accessChangedPayload{PermissionVersion: version, Cause: cause, ValidUntil: stampOf(after.ValidUntil)}
	if before.Owner != after.Owner {
		p.Owner = &after.Owner
	}
	if c.Flags || c.Size() > maxListed || len(c.Groups) > maxListed {
		p.Full = true
		return p
	}
	if c.Groups != nil {
		p.Groups = &c.Groups
	}
	p.Gained, p.Changed = linesOf(c.Gained), linesOf(c.Changed)
	for _, t := range c.Lost {
		p.Lost = append(p.Lost, targetPayloadOf(t.Target))
	}
	return p
}

func linesOf(list []domain.TargetHeld) []accessLine {
	var out []accessLine
	for _, t := range list {
		line := accessLine{Target: targetPayloadOf(t.Target), Capabilities: t.Held.Caps.Names()}
		if t.Held.Level != domain.None {
			level := t.Held.Level.String()
			line.Level = &level
		}
		if t.Held.Passes {
			passing := t.Held.Passing.Names()
			line.Passing = &passing
		}
		out = append(out, line)
	}
	return out
}

// parseAccessChanged reads the event's payload; told is nil when the entry must be read anew.
func parseAccessChanged(raw json.RawMessage) (version int64, told *domain.Change, validUntil time.Time, err error) {
	var p accessChangedPayload
	if err := json.Unmarshal(raw, &p); err != nil {
		return 0, nil, time.Time{}, fmt.Errorf("read access.changed: %w", err)
	}
	if p.ValidUntil != nil {
		validUntil = time.Time(*p.ValidUntil)
	}
	if p.Full {
		return p.PermissionVersion, nil, validUntil, nil
	}
	c := &domain.Change{}
	if p.Groups != nil {
		c.Groups = append([]ids.ID{}, *p.Groups...)
	}
	for _, l := range p.Gained {
		c.Gained = append(c.Gained, l.held())
	}
	for _, l := range p.Changed {
		c.Changed = append(c.Changed, l.held())
	}
	for _, t := range p.Lost {
		c.Lost = append(c.Lost, domain.TargetHeld{Target: t.target()})
	}
	return p.PermissionVersion, c, validUntil, nil
}

func (l accessLine) held() domain.TargetHeld {
	h := domain.Held{Caps: domain.ParseCaps(l.Capabilities)}
	if l.Level != nil {
		h.Level, _ = domain.ParseLevel(*l.Level)
	}
	if l.Passing != nil {
		h.Passes, h.Passing = true, domain.ParseCaps(*l.Passing)
	}
	return domain.TargetHeld{Target: l.Target.target(), Held: h}
}

type subjectPayload struct {
	Kind string `json:"kind"`
	ID   ids.ID `json:"id"`
}

type grantPayload struct {
	ID           ids.ID         `json:"id"`
	Subject      subjectPayload `json:"subject"`
	Target       targetPayload  `json:"target"`
	Level        string         `json:"level"`
	Capabilities []string       `json:"capabilities"`
	ExpiresAt    *stamp         `json:"expires_at,omitempty"`
	Note         string         `json:"note"`
	CreatedBy    *ids.ID        `json:"created_by"`
	CreatedAt    stamp          `json:"created_at"`
}

func grantPayloadOf(g GrantRow) *grantPayload {
	return &grantPayload{
		ID: g.ID, Subject: subjectPayload{Kind: g.SubjectKind, ID: g.SubjectID}, Target: targetPayloadOf(g.Target),
		Level: g.Level.String(), Capabilities: g.Caps.Names(), ExpiresAt: stampOf(g.ExpiresAt), Note: g.Note,
		CreatedBy: g.CreatedBy.Ptr(), CreatedAt: stamp(g.CreatedAt),
	}
}

type grantChangedPayload struct {
	Change   string        `json:"change"`
	Grant    *grantPayload `json:"grant"`
	Previous *grantPayload `json:"previous,omitempty"`
}

type groupPayload struct {
	ID          ids.ID        `json:"id"`
	Name        string        `json:"name"`
	Handle      string        `json:"handle"`
	Description string        `json:"description"`
	Kind        string        `json:"kind"`
	Claim       *claimPayload `json:"claim,omitempty"`
	Mentionable bool          `json:"mentionable"`
	Version     int64         `json:"version"`
}

type claimPayload struct {
	ProviderID ids.ID `json:"provider_id"`
	Value      string `json:"value"`
}

type memberPayload struct {
	PrincipalID ids.ID `json:"principal_id"`
	Role        string `json:"role"`
	Source      string `json:"source"`
	ExpiresAt   *stamp `json:"expires_at,omitempty"`
}

func memberPayloadOf(m MemberRow) memberPayload {
	return memberPayload{PrincipalID: m.PrincipalID, Role: m.Role, Source: m.Source, ExpiresAt: stampOf(m.ExpiresAt)}
}

type groupChangedPayload struct {
	Change  string          `json:"change"`
	Group   groupPayload    `json:"group"`
	Members []memberPayload `json:"members,omitempty"`
	// Refetch is set when the members do not tell all that has changed.
	Refetch bool `json:"refetch,omitempty"`
}

func groupPayloadOf(g GroupRow) groupPayload {
	p := groupPayload{
		ID: g.ID, Name: g.Name, Handle: g.Handle, Description: g.Description, Kind: g.Kind,
		Mentionable: g.Mentionable, Version: g.Version,
	}
	if g.Kind == groupClaim {
		p.Claim = &claimPayload{ProviderID: g.ProviderID, Value: g.ClaimValue}
	}
	return p
}

// expiringPayload is a grant, or a membership of a group, that will end.
type expiringPayload struct {
	GrantID *ids.ID `json:"grant_id,omitempty"`
	GroupID *ids.ID `json:"group_id,omitempty"`
	// PrincipalID is the member whose membership ends.
	PrincipalID *ids.ID        `json:"principal_id,omitempty"`
	Target      *targetPayload `json:"target,omitempty"`
	Level       string         `json:"level,omitempty"`
	ExpiresAt   stamp          `json:"expires_at"`
}

type accessExpiringPayload struct {
	Items []expiringPayload `json:"items"`
}
