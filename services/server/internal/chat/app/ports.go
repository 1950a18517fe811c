// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of the module chat: the structure that people write in, and
// what other modules do with threads inside their own units of work.
package app

import (
	"context"
	"time"

	"github.com/OWNER/bothy/services/server/internal/authz"
	"github.com/OWNER/bothy/services/server/internal/chat/domain"
	"github.com/OWNER/bothy/services/server/internal/identity"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
)

// Config has the limits of the structure.
type Config struct {
	MaxSpaces       int   `key:"space.max" default:"100" min:"1" max:"1000" doc:"Spaces that are not archived."`
	MaxPerSpace     int   `key:"channel.max_per_space" default:"500" min:"1" max:"5000" doc:"Channels of one space that are not archived."`
	NameClusters    int   `key:"channel.name_max_graphemes" default:"80" min:"1" max:"200" doc:"Characters of a name of a channel or space."`
	TopicClusters   int   `key:"channel.topic_max_graphemes" default:"1024" min:"1" max:"4096" doc:"Characters of a topic or description."`
	PromptMaxBytes  int64 `key:"channel.prompt_max_bytes" type:"bytes" default:"32768" min:"1024" max:"262144" doc:"Instructions for agents of one channel."`
	MaxSkills       int   `key:"channel.max_skills" default:"50" min:"0" max:"500" doc:"Skills of one channel."`
	TitleClusters   int   `key:"thread.title_max_graphemes" default:"120" min:"1" max:"200" doc:"Characters of the title of a thread."`
	ClusterMaxRunes int   // message.max_cluster_code_points, which messaging reads; wire hands it over.
}

// Deps is what the use cases are built from.
type Deps struct {
	Config     Config
	Units      txn.UnitOfWork
	Authorizer authorize.Authorizer
	Log        eventlog.Appender
	Directory  identity.Directory
	Grants     authz.Grants
	Affected   authz.Affected
	Spaces     SpaceRepository
	Channels   ChannelRepository
	Threads    ThreadRepository
	Payloads   Payloads
	Clusters   domain.Clusters
}

func (d Deps) names() domain.Names {
	c := d.Config
	return domain.Names{Clusters: d.Clusters, Limits: domain.Limits{
		NameClusters: c.NameClusters, TopicClusters: c.TopicClusters, TitleClusters: c.TitleClusters,
		ClusterCodePoints: c.ClusterMaxRunes, PromptBytes: int(c.PromptMaxBytes),
	}}
}

// Payloads gives the form of the contract, for answers and events alike.
type Payloads interface {
	Space(s domain.Space) any
	Channel(c domain.Channel) any
	// Behavior and AgentConfig need the skills of the channel to have been read.
	Behavior(c domain.Channel) any
	AgentConfig(c domain.Channel) any
	// AgentConfigRemoved tells an agent that it no longer answers in a channel.
	AgentConfigRemoved(channel ids.ID) any
	Thread(t domain.Thread) any
}

// SpaceQuery asks for a page of visible spaces in their order.
type SpaceQuery struct {
	Visible  authorize.Scope
	Archived bool
	// AfterKey and AfterID are the position of the last item of the page before.
	AfterKey string
	AfterID  ids.ID
	Limit    int
}

// Snapshot asks for visible things by ID. Targets, when there are any, limit the answer to
// these spaces and channels.
type Snapshot struct {
	Visible authorize.Scope
	Targets []ids.ID
	After   ids.ID
	Limit   int
}

// SpaceRepository keeps spaces. Reads of a missing row are not_found; writes are queued.
type SpaceRepository interface {
	Get(ctx context.Context, id ids.ID) (domain.Space, error)
	// Lock holds the row, and with it the order and number of its channels.
	Lock(ctx context.Context, id ids.ID) (domain.Space, error)
	// LockOrder queues the lock of the order of spaces.
	LockOrder(ctx context.Context) error
	Siblings(ctx context.Context) ([]domain.Sibling, error)
	// Insert and Update fail with conflict (name_taken).
	Insert(ctx context.Context, s domain.Space) error
	Update(ctx context.Context, s domain.Space) error
	Page(ctx context.Context, q SpaceQuery) ([]domain.Space, error)
	ByID(ctx context.Context, q Snapshot) ([]domain.Space, error)
	States(ctx context.Context) ([]authz.SpaceState, error)
}

// ChannelQuery asks for a page of visible channels in their order.
type ChannelQuery struct {
	Visible  authorize.Scope
	SpaceID  ids.ID
	Kind     string
	Archived bool
	AfterKey string
	AfterID  ids.ID
	Limit    int
}

// ChannelRepository keeps channels. Reads of a missing row are not_found; writes and locks
// are queued and travel with the next read, which then sees what they waited for.
type ChannelRepository interface {
	// LockExclusive queues the place lock against everybody who writes in the channel,
	// LockShared the one they take.
	LockExclusive(ctx context.Context, id ids.ID) error
	LockShared(ctx context.Context, id ids.ID) error
	// LockRow queues the lock of the row against others who change the channel.
	LockRow(ctx context.Context, id ids.ID) error
	// Get reads a channel without its skills.
	Get(ctx context.Context, id ids.ID) (domain.Channel, error)
	In(ctx context.Context, list []ids.ID) ([]domain.Channel, error)
	// Named finds channels of a space that are not archived, by lower-cased name.
	Named(ctx context.Context, space ids.ID, names []string) (map[string]ids.ID, error)
	Siblings(ctx context.Context, space ids.ID) ([]domain.Sibling, error)
	// Insert and Update fail with conflict (name_taken).
	Insert(ctx context.Context, c domain.Channel) error
	Update(ctx context.Context, c domain.Channel) error
	Skills(ctx context.Context, id ids.ID) ([]domain.Skill, error)
	ReplaceSkills(ctx context.Context, id ids.ID, skills []domain.Skill) error
	Page(ctx context.Context, q ChannelQuery) ([]domain.Channel, error)
	ByID(ctx context.Context, q Snapshot) ([]domain.Channel, error)
	States(ctx context.Context) ([]authz.ChannelState, error)
	OfOperator(ctx context.Context, agent ids.ID) ([]ids.ID, error)
}

// ThreadQuery asks for a page of the threads of a channel, newest first.
type ThreadQuery struct {
	ChannelID ids.ID
	// Kind and State limit the answer; empty means any. Kind main asks for the main thread.
	Kind, State string
	// ByCreation orders by creation instead of the last message.
	ByCreation bool
	WithEmpty  bool
	// BeforeAt and BeforeID are the position of the last item of the page before.
	BeforeAt *time.Time
	BeforeID ids.ID
	Limit    int
}

// ThreadRepository keeps threads. Reads of a missing row are not_found; writes and locks are
// queued where they return nothing.
type ThreadRepository interface {
	// LockPlace queues the shared place lock of the channel the thread lies in.
	LockPlace(ctx context.Context, id ids.ID) error
	// LockRow queues the lock of the thread's row.
	LockRow(ctx context.Context, id ids.ID) error
	// Place reads a thread with its channel; the channel lacks its texts and skills.
	Place(ctx context.Context, id ids.ID) (domain.Thread, domain.Channel, error)
	Get(ctx context.Context, id ids.ID) (domain.Thread, error)
	In(ctx context.Context, list []ids.ID) ([]domain.Thread, error)
	Channel(ctx context.Context, id ids.ID) (ids.ID, error)
	// Insert fails with conflict (thread_exists) when a thread begins at the same message.
	Insert(ctx context.Context, t domain.Thread) error
	// Append gives the next number and holds the row; wasClosed is the state before.
	Append(ctx context.Context, id ids.ID, countable, reopen bool, at time.Time) (t domain.Thread, wasClosed bool, err error)
	// Forget takes one countable message out of the counters.
	Forget(ctx context.Context, id ids.ID, lastCountable int64) (domain.Thread, error)
	Main(ctx context.Context, channel ids.ID) (domain.Thread, error)
	List(ctx context.Context, q ThreadQuery) ([]domain.Thread, error)
	ByID(ctx context.Context, q Snapshot, since time.Time) ([]domain.Thread, error)
	// OfChannels lists threads with countable messages.
	OfChannels(ctx context.Context, channels []ids.ID, limit int) ([]domain.Thread, error)
}
