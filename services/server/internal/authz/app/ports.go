// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// Config has the keys of authz.
type Config struct {
	// CacheMaxPrincipals bounds the entries in memory that no connection holds.
	CacheMaxPrincipals int `key:"authz.cache_max_principals" min:"100" max:"10000000" doc:"Principals without a connection whose rights are kept in memory at most."`
	// MaxGrantsPerTarget bounds the grants on one target, so that "who has access" stays
	// a list a person can read.
	MaxGrantsPerTarget int `key:"authz.max_grants_per_target" min:"1" max:"10000" doc:"Grants on one space, channel or other target at most, so that the list of who has access can be read."`
	// MaxGroups bounds the groups of the instance, MaxGroupMembers the members of one.
	MaxGroups       int `key:"authz.max_groups" min:"1" max:"10000" doc:"Groups of the instance at most."`
	MaxGroupMembers int `key:"authz.max_group_members" min:"1" max:"100000" doc:"Members of one group at most."`
	// ReminderBefore are the times before an end at which those concerned are told.
	ReminderBefore []time.Duration `key:"authz.expiry_reminder_before" min:"1h" max:"8760h" doc:"How long before the end of a grant or a membership those concerned are told; empty means never."`
	// ViewAsTTL is how long an owner looks at the instance as somebody else.
	ViewAsTTL time.Duration `key:"access.view_as_ttl" min:"1m" max:"4h" doc:"How long an owner may look at the instance as somebody else before she has to ask anew."`
	// ExpiryInterval is how often ended grants are removed; they count for nothing before.
	ExpiryInterval time.Duration `key:"authz.expiry_interval" min:"1s" max:"1h" doc:"How often ended grants and memberships are removed and reminders are given; what has ended counts for nothing before that."`
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// DefaultConfig is the configuration without any source.
func DefaultConfig() Config {
	return Config{
		CacheMaxPrincipals: 20000, MaxGrantsPerTarget: 500, MaxGroups: 1000, MaxGroupMembers: 5000,
		ReminderBefore: []time.Duration{week, day}, ExpiryInterval: time.Minute, ViewAsTTL: 15 * time.Minute,
	}
}

// HeldRows are the grants that have come to principals, read in one statement.
type HeldRows struct {
	// Version is the version of all rights in the snapshot of the statement.
	Version int64
	// ByPrincipal are direct grants and grants through memberships that have rows.
	ByPrincipal map[ids.ID][]domain.Counted
	// Everyone are the grants of the group of all members.
	Everyone []domain.Counted
	// Groups are the memberships that have rows, by principal.
	Groups map[ids.ID][]domain.Membership
}

// SourceRows are the grants that have come to principals, with the way they came.
type SourceRows struct {
	ByPrincipal map[ids.ID][]domain.Source
	// Everyone are the grants of the group of all members.
	Everyone []domain.Source
}

// Of gives what has come to a principal.
func (r SourceRows) Of(p domain.Principal) []domain.Source {
	out := slices.Clone(r.ByPrincipal[p.ID])
	if p.InEveryone() {
		out = append(out, r.Everyone...)
	}
	return out
}

// GrantRow is a grant as stored.
type GrantRow struct {
	ID ids.ID
	// SubjectKind is principal or group.
	SubjectKind string
	SubjectID   ids.ID
	domain.Grant
	Note      string
	CreatedBy ids.ID
	CreatedAt time.Time
	// ReminderStage is how many of the configured reminders need not be given any more.
	ReminderStage int
}

// GroupRow is a group as stored.
type GroupRow struct {
	ID                        ids.ID
	Name, Handle, Description string
	Kind                      string
	ProviderID                ids.ID
	ClaimValue                string
	Mentionable               bool
	Version                   int64
	CreatedBy                 ids.ID
	CreatedAt                 time.Time
	// MyRole is the role of the principal the list was asked for; empty for none.
	MyRole string
}

// MemberRow is a membership as stored.
type MemberRow struct {
	ID, GroupID, PrincipalID ids.ID
	// Role is member or manager, Source manual or claim.
	Role, Source string
	// ExpiresAt is zero for a membership that does not end.
	ExpiresAt     time.Time
	ReminderStage int
	AddedBy       ids.ID
	CreatedAt     time.Time
}

// GroupCounts say how much depends on a group.
type GroupCounts struct {
	// Members are those whose time is not over.
	Members, Grants int
}

// Facts that a store reports for the use cases to put into words.
var (
	// ErrGrantExists means that the subject has a grant on the target.
	ErrGrantExists = errors.New("the subject has a grant on the target")
	// ErrClaimTaken means that another group has the claim.
	ErrClaimTaken = errors.New("another group has the claim")
	// ErrNoRow means that there is no such row.
	ErrNoRow = errors.New("no such row")
)

// Targets is a set of targets of grants.
type Targets struct {
	// All are all there are; the other fields then say nothing.
	All bool
	// Instance is set when the instance belongs to the set; Places are its spaces and channels.
	Instance bool
	Places   []ids.ID
}

// Store keeps groups, memberships and grants.
type Store interface {
	TriggerStore
	// Held reads what has come to the principals, in one statement.
	Held(ctx context.Context, principals []ids.ID) (HeldRows, error)
	// Sources reads the same with the way the grants came; with targets, which then name the
	// instance too, only those on them.
	Sources(ctx context.Context, principals []ids.ID, targets []domain.Target) (SourceRows, error)
	// GroupSources reads what a group gives to a member.
	GroupSources(ctx context.Context, group ids.ID, now time.Time) ([]domain.Source, error)
	// Subjects lists the principals with a grant on one of the targets, groups resolved;
	// everyone is set when the group of all members has one.
	Subjects(ctx context.Context, targets []domain.Target) (principals []ids.ID, everyone bool, err error)
	// AllSubjects lists every principal that a grant or a membership names.
	AllSubjects(ctx context.Context) ([]ids.ID, error)
	// GroupMembers lists the members of a group that have rows.
	GroupMembers(ctx context.Context, group ids.ID) ([]ids.ID, error)

	// Grant reads one; ErrNoRow when there is none.
	Grant(ctx context.Context, id ids.ID) (GrantRow, error)
	// GrantOf reads the grant of a subject on a target; ErrNoRow when there is none.
	GrantOf(ctx context.Context, subjectKind string, subject ids.ID, t domain.Target) (GrantRow, error)
	// GrantsOn lists grants on the targets, and GrantsOf those of a subject, by ID behind after.
	GrantsOn(ctx context.Context, targets []domain.Target, after ids.ID, limit int) ([]GrantRow, error)
	// The grants of a subject are those on the given targets alone.
	GrantsOf(ctx context.Context, subject ids.ID, on Targets, after ids.ID, limit int) ([]GrantRow, error)
	CountGrantsOn(ctx context.Context, t domain.Target) (int, error)
	// InsertGrant adds one; ErrGrantExists when the pair of subject and target is taken.
	InsertGrant(ctx context.Context, g GrantRow) error
	// DeleteGrant removes one; ErrNoRow when it has gone.
	DeleteGrant(ctx context.Context, id ids.ID) error
	// DeleteGrantsOf removes all grants of a principal and gives what they were.
	DeleteGrantsOf(ctx context.Context, principal ids.ID) ([]GrantRow, error)
	// HasExpired reports whether grants and memberships have ended by the moment.
	HasExpired(ctx context.Context, now time.Time) (grants, members bool, err error)
	// LockExpired and LockExpiredMembers take grants and memberships that have ended, by ID,
	// but for those another worker holds.
	LockExpired(ctx context.Context, now time.Time, limit int) ([]GrantRow, error)
	LockExpiredMembers(ctx context.Context, now time.Time, limit int) ([]MemberRow, error)
	// LockExpiring and LockExpiringMembers take, in the same way, what will end and is due for
	// a reminder: by one of the moments, of which there are more than its stage.
	LockExpiring(ctx context.Context, now time.Time, by []time.Time, limit int) ([]GrantRow, error)
	LockExpiringMembers(ctx context.Context, now time.Time, by []time.Time, limit int) ([]MemberRow, error)
	// Reminded and MemberReminded note the stage of a grant and a membership.
	Reminded(ctx context.Context, grant ids.ID, stage int) error
	MemberReminded(ctx context.Context, membership ids.ID, stage int) error

	// Group reads one; ErrNoRow when there is none.
	Group(ctx context.Context, id ids.ID) (GroupRow, error)
	// Everyone reads the group of all members; ErrNoRow before the setup.
	Everyone(ctx context.Context) (GroupRow, error)
	// GroupsByID reads several; unknown ones are left out.
	GroupsByID(ctx context.Context, groups []ids.ID) ([]GroupRow, error)
	// InsertGroup adds one; ErrClaimTaken when another has its claim.
	InsertGroup(ctx context.Context, g GroupRow) error
	// UpdateGroup writes name, handle, description, mentionable and version.
	UpdateGroup(ctx context.Context, g GroupRow, now time.Time) error
	// DeleteGroup removes one with its grants and memberships, and gives the grants.
	DeleteGroup(ctx context.Context, id ids.ID) ([]GrantRow, error)
	CountGroups(ctx context.Context) (int, error)
	// GroupCounts counts members and grants of a group; GroupIsStrong reports whether one of
	// the grants is strong.
	GroupCounts(ctx context.Context, group ids.ID, now time.Time) (GroupCounts, error)
	GroupIsStrong(ctx context.Context, group ids.ID, now time.Time) (bool, error)
	// Member reads a membership, also one that has ended; ErrNoRow when there is none.
	Member(ctx context.Context, group, principal ids.ID) (MemberRow, error)
	// Members lists memberships that have not ended by principal, behind after.
	Members(ctx context.Context, group ids.ID, now time.Time, after ids.ID, limit int) ([]MemberRow, error)
	// PutMember adds a membership or replaces the one of the same pair.
	PutMember(ctx context.Context, m MemberRow) error
	// DeleteMember removes one; ErrNoRow when it has gone.
	DeleteMember(ctx context.Context, id ids.ID) error
	// ClaimedGroups lists the groups of a provider with one of the values, by ID;
	// ClaimMembers the memberships that the provider gave a principal.
	ClaimedGroups(ctx context.Context, provider ids.ID, values []string) ([]GroupRow, error)
	ClaimMembers(ctx context.Context, principal, provider ids.ID) ([]MemberRow, error)
	// Groups lists groups by handle behind after. With onlyOf set, only the groups in which
	// that principal has a row.
	Groups(ctx context.Context, f GroupFilter) ([]GroupRow, error)
	HandleTaken(ctx context.Context, handle string) (bool, error)
	// RoleIn is the role of a valid membership; empty without one.
	RoleIn(ctx context.Context, group, principal ids.ID, now time.Time) (string, error)
}

// GroupFilter says which groups to list.
type GroupFilter struct {
	// Query is the beginning of a name or handle, lower-cased.
	Query string
	// Kind is one of the kinds; empty for all.
	Kind string
	// Viewer is the principal whose roles are told; OwnOnly leaves out groups without one.
	Viewer  ids.ID
	OwnOnly bool
	Now     time.Time
	// After is the handle of the last group of the page before.
	After string
	Limit int
}
