// SPDX-License-Identifier: Apache-2.0

package authorize

import (
	"context"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// ResourceKind is the kind of thing an action is done to, as the catalogue names it.
type ResourceKind string

// The kinds of resources.
const (
	ResourceNone      ResourceKind = "none"
	ResourceSelf      ResourceKind = "self"
	ResourceInstance  ResourceKind = "instance"
	ResourceSpace     ResourceKind = "space"
	ResourceChannel   ResourceKind = "channel"
	ResourceThread    ResourceKind = "thread"
	ResourceMessage   ResourceKind = "message"
	ResourcePrincipal ResourceKind = "principal"
	ResourceAgent     ResourceKind = "agent"
	ResourceRun       ResourceKind = "run"
	ResourceGroup     ResourceKind = "group"
	ResourceGrant     ResourceKind = "grant"
	ResourceTarget    ResourceKind = "target"
	ResourceHost      ResourceKind = "host"
	ResourceFile      ResourceKind = "file"
)

// Resource describes the thing of a check. The use case loads the thing first and fills in
// what it knows; authz reads the structure around it itself.
type Resource struct {
	Kind ResourceKind
	ID   ids.ID
	// SpaceID and ChannelID are the place whose rights decide: the channel in which a
	// thread, message or run lies, the space of a channel to be created.
	SpaceID, ChannelID ids.ID
	// OwnerID is the principal for whom the resource is "own": the author of a message,
	// the agent of a run, the subject of a grant.
	OwnerID ids.ID
	// Related are further principals with a say by the rules of the chapter, for example
	// the person who started a run.
	Related []ids.ID
}

// Instance describes the instance itself.
func Instance() Resource { return Resource{Kind: ResourceInstance} }

// Self is the caller's own account.
func Self(principal ids.ID) Resource {
	return Resource{Kind: ResourceSelf, ID: principal, OwnerID: principal}
}

// Space describes a space.
func Space(id ids.ID) Resource { return Resource{Kind: ResourceSpace, ID: id, SpaceID: id} }

// Channel describes a channel.
func Channel(id ids.ID) Resource { return Resource{Kind: ResourceChannel, ID: id, ChannelID: id} }

// Thread describes a thread that lies in a channel.
func Thread(id, channel ids.ID) Resource {
	return Resource{Kind: ResourceThread, ID: id, ChannelID: channel}
}

// Message describes a message by its author.
func Message(id, channel, author ids.ID) Resource {
	return Resource{Kind: ResourceMessage, ID: id, ChannelID: channel, OwnerID: author}
}

// Decision is the answer of a check and what led to it.
type Decision struct {
	Allowed bool
	// Reason is empty when allowed, else one of the reasons of chapter 07, section 6.2.
	Reason string
	// Level and Capabilities are what the principal holds on the resource.
	Level        Level
	Capabilities []Capability
	// PermissionVersion is the version of all rights the decision was made with.
	PermissionVersion int64
}

// Authorizer decides for the actor of the context. Every call notes itself in the check log.
type Authorizer interface {
	// Authorize returns nil when the action is allowed. Otherwise the error has the code
	// of the first check that failed: unauthenticated, not_found (also for what exists but
	// is hidden), forbidden, scope_missing, channel_read_only, step_up_required, or
	// unavailable when a source cannot answer. Writes are decided on the rows of the
	// running unit of work.
	Authorize(ctx context.Context, action Action, r Resource) error
	// Allowed is Authorize for elements of lists: false instead of an error, without an
	// audit row for a denial. The error is for sources that cannot answer.
	Allowed(ctx context.Context, action Action, r Resource) (bool, error)
	// Scope gives the targets on which the actor may do the read action, for translation
	// into SQL.
	Scope(ctx context.Context, action Action) (Scope, error)
}

// Preparer is an Authorizer that can let what every decision of a unit needs travel with the next read of the unit.
type Preparer interface {
	// Prepare asks for it. It decides nothing; without it decisions cost one round trip more.
	Prepare(ctx context.Context) error
}

// Prepare tells an authorizer that the running unit will ask it for a decision after its next read.
func Prepare(ctx context.Context, a Authorizer) error {
	if p, ok := a.(Preparer); ok {
		return p.Prepare(ctx)
	}
	return nil
}

// Absent answers the failure to load something. For a thing that is not there it takes the steps
// of one that is hidden, so that neither the answer nor its cost tells the two apart; any other
// failure stays what it is. r stands for the missing thing and names a place that cannot exist,
// for example the channel with the identifier that was asked for.
func Absent(ctx context.Context, a Authorizer, err error, action Action, r Resource) error {
	if !errs.Is(err, errs.CodeNotFound) {
		return err
	}
	if denied := a.Authorize(ctx, action, r); denied != nil {
		return denied
	}
	return err
}

// Scope is a set of visible targets.
type Scope struct {
	// All means every space and channel except direct ones; the fields below then add the
	// direct channels alone.
	All bool
	// Spaces are fully visible: every channel in them, also one made later, but for those
	// that do not inherit and are not in Channels.
	Spaces []ids.ID
	// Channels are visible channels, inside and outside the spaces above, with direct ones.
	Channels []ids.ID
	// PassingSpaces are visible in short form because a channel of theirs is.
	PassingSpaces []ids.ID
	// PermissionVersion is the version of all rights the scope was made with.
	PermissionVersion int64
}

// Access is what a principal holds on a target.
type Access struct {
	Level        Level
	Capabilities []Capability
}

// Standing is what a principal may do in a channel. Which level or capability it takes is for
// authz to know.
type Standing struct {
	// Reads: sees the channel and what is written there.
	Reads bool
	// Orders: sets agents to work there.
	Orders bool
	// Moderates: keeps order there, and is not held back by what keeps others in order.
	Moderates bool
	// Broadcasts: calls many people at once.
	Broadcasts bool
}

// Rights tells what principals hold, for payloads that show it and for decisions about
// others than the actor. It never authorizes a request by itself.
type Rights interface {
	// AccessOf gives the actor's own access to targets (space or channel); absent targets
	// are invisible.
	AccessOf(ctx context.Context, targets []ids.ID) (map[ids.ID]Access, error)
	// Standing tells what any principal may do in a channel at this moment.
	Standing(ctx context.Context, principal, channel ids.ID) (Standing, error)
	// WithTrigger gives the people with effective trigger on the channel at this moment.
	WithTrigger(ctx context.Context, channel ids.ID) ([]ids.ID, error)
}

// TargetAccess is one entry of an access change.
type TargetAccess struct {
	// Kind is instance, space or channel.
	Kind         string
	ID           ids.ID
	Level        Level
	Capabilities []Capability
}

// PrincipalChange is how the rights of one principal changed.
type PrincipalChange struct {
	PrincipalID           ids.ID
	Gained, Changed, Lost []TargetAccess
}

// AccessChanged is published inside the transaction of a change of rights, after the
// differences are known and before the commit.
type AccessChanged struct {
	// Action is the ID of the action that changed the rights.
	Action            Action
	PermissionVersion int64
	Principals        []PrincipalChange
}
