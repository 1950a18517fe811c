// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/OWNER/bothy/services/server/internal/chat"
	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/flush"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/paging"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/sync/domain"
)

// SnapshotConfig bounds the snapshot.
type SnapshotConfig struct {
	PageItems     int           `key:"sync.snapshot_page_items" default:"2000" min:"50" max:"20000" doc:"Items of one page at most."`
	PageBytes     int           `key:"sync.snapshot_page_bytes" type:"bytes" default:"4194304" min:"65536" max:"67108864" doc:"Bytes of one page at most, but for a single larger item."`
	CursorTTL     time.Duration `key:"sync.snapshot_cursor_ttl" default:"15m" min:"1m" max:"24h" doc:"How long the next page can be asked for."`
	MaxConcurrent int           `key:"sync.snapshot_max_concurrent" default:"8" min:"1" max:"256" doc:"Snapshots read at once; others wait up to 5s."`
	ThreadWindow  time.Duration `key:"sync.snapshot_thread_window" default:"336h" min:"1h" max:"8760h" doc:"Side threads without activity for longer are left out."`
	MaxThreads    int           `key:"sync.snapshot_max_threads" default:"5000" min:"100" max:"100000" doc:"Threads of a snapshot at most."`
	MaxPrincipals int           `key:"sync.snapshot_max_principals" default:"2000" min:"100" max:"100000" doc:"Principals of a snapshot at most."`
}

// Item is one resource of a section.
type Item struct {
	ID      ids.ID
	Payload json.RawMessage
}

// Targets restricts a snapshot to spaces and channels; nil means everything.
type Targets []ids.ID

// Sources give the payloads of the sections, for the actor of the context. The lists come in
// ascending order of ID behind after, at most limit.
type Sources struct {
	Instance func(ctx context.Context) (json.RawMessage, error)
	Self     func(ctx context.Context) (json.RawMessage, error)
	Spaces   func(ctx context.Context, t Targets, after ids.ID, limit int) ([]Item, error)
	Channels func(ctx context.Context, t Targets, after ids.ID, limit int) ([]Item, error)
	Threads  func(ctx context.Context, t Targets, since time.Time, after ids.ID, limit int) ([]Item, error)
	// Principals gives the visible ones, at most limit; complete is false when there are more.
	Principals func(ctx context.Context, limit int) (items []Item, complete bool, err error)
	Agents     func(ctx context.Context, after ids.ID, limit int) ([]Item, error)
	Runs       func(ctx context.Context, channels []ids.ID, after ids.ID, limit int) ([]Item, error)
}

// The sections in their order.
const (
	sectionInstance   = "instance"
	sectionSelf       = "self"
	sectionSpaces     = "spaces"
	sectionChannels   = "channels"
	sectionThreads    = "threads"
	sectionPrincipals = "principals"
	sectionAgents     = "agents"
	sectionRuns       = "runs"
)

var sectionOrder = []string{sectionInstance, sectionSelf, sectionSpaces, sectionChannels, sectionThreads, sectionPrincipals, sectionAgents, sectionRuns}

// SectionNames are the sections a request can name; read states come with their threads.
func SectionNames() []string { return append(slices.Clone(sectionOrder), "read_states") }

// SnapshotRequest is what a client asks for.
type SnapshotRequest struct {
	// Sections restricts to some; nil means all.
	Sections []string
	Targets  Targets
	Cursor   string
}

// SnapshotPage is one page of a snapshot.
type SnapshotPage struct {
	SyncEpoch         ids.ID                     `json:"sync_epoch"`
	HeadSeq           int64                      `json:"head_seq"`
	PermissionVersion int64                      `json:"permission_version"`
	PageSeq           int64                      `json:"page_seq"`
	Sections          map[string]json.RawMessage `json:"sections"`
	NextCursor        *string                    `json:"next_cursor"`
}

// Snapshot reads the state a client begins with.
type Snapshot struct {
	config     SnapshotConfig
	units      txn.UnitOfWork
	barrier    flush.Barrier
	authorizer authorize.Authorizer
	rights     authorize.Rights
	instance   instance.Instance
	versions   instance.Versions
	sources    Sources
	threads    chat.Threads
	readStates *ReadStates
	clock      clock.Clock
	slots      chan struct{}
}

// SnapshotDeps are the parts a snapshot reads from.
type SnapshotDeps struct {
	Units      txn.UnitOfWork
	Barrier    flush.Barrier
	Authorizer authorize.Authorizer
	Rights     authorize.Rights
	Instance   instance.Instance
	Versions   instance.Versions
	Sources    Sources
	Threads    chat.Threads
	ReadStates *ReadStates
	Clock      clock.Clock
}

// NewSnapshot makes the use case.
func NewSnapshot(config SnapshotConfig, d SnapshotDeps) *Snapshot {
	return &Snapshot{
		config: config, units: d.Units, barrier: d.Barrier, authorizer: d.Authorizer, rights: d.Rights, instance: d.Instance,
		versions: d.Versions, sources: d.Sources, threads: d.Threads, readStates: d.ReadStates, clock: d.Clock,
		slots: make(chan struct{}, config.MaxConcurrent),
	}
}

// position is where a page begins. It is bound to the caller, so it is of no use to others.
type position struct {
	Principal ids.ID    `json:"p"`
	Epoch     ids.ID    `json:"e"`
	Head      int64     `json:"h"`
	Issued    time.Time `json:"t"`
	Section   int       `json:"s"`
	After     ids.ID    `json:"a"`
	Threads   int       `json:"n"`
	Targets   Targets   `json:"g,omitempty"`
	Sections  []string  `json:"w,omitempty"`
}

const cursorName = "snapshot"

// Read gives one page. All of it is the state after the events up to the page's position:
// counters and data are read in one snapshot of the database.
func (s *Snapshot) Read(ctx context.Context, req SnapshotRequest) (SnapshotPage, error) {
	if err := s.authorizer.Authorize(ctx, authorize.ActionSyncSnapshotRead, authorize.Self(actor.From(ctx).ID)); err != nil {
		return SnapshotPage{}, err
	}
	release, err := s.slot(ctx)
	if err != nil {
		return SnapshotPage{}, err
	}
	defer release()
	generation := s.barrier.Generation()
	var page SnapshotPage
	var baseline []domain.ReadState
	err = s.units.View(ctx, func(ctx context.Context) error {
		page, baseline, err = s.read(ctx, req)
		return err
	})
	if err != nil {
		return SnapshotPage{}, err
	}
	if err := s.barrier.Wait(ctx, generation); err != nil {
		return SnapshotPage{}, err
	}
	s.baseline(ctx, baseline)
	return page, nil
}

// slot bounds how many snapshots are read at once; who waits too long comes back later, at
// a random moment, so that a crowd does not return as one.
func (s *Snapshot) slot(ctx context.Context) (release func(), err error) {
	const patience = 5 * time.Second
	timer := s.clock.NewTimer(patience)
	defer timer.Stop()
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C():
		after := 5*time.Second + time.Duration(rand.Int64N(int64(25*time.Second)))
		return nil, errs.Unavailable(nil).WithRetryAfter(after)
	}
}

func (s *Snapshot) read(ctx context.Context, req SnapshotRequest) (SnapshotPage, []domain.ReadState, error) {
	head, err := s.versions.Current(ctx, instance.CounterEventSeq)
	if err != nil {
		return SnapshotPage{}, nil, err
	}
	version, err := s.versions.Current(ctx, instance.CounterPermissionVersion)
	if err != nil {
		return SnapshotPage{}, nil, err
	}
	info, err := s.instance.Info(ctx)
	if err != nil {
		return SnapshotPage{}, nil, err
	}
	pos, err := s.begin(ctx, req, info.SyncEpoch, head)
	if err != nil {
		return SnapshotPage{}, nil, err
	}
	b := &pageBuilder{snapshot: s, pos: pos, sections: map[string][]json.RawMessage{}, single: map[string]json.RawMessage{}}
	if err := b.fill(ctx); err != nil {
		return SnapshotPage{}, nil, err
	}
	page := SnapshotPage{SyncEpoch: info.SyncEpoch, HeadSeq: pos.Head, PermissionVersion: version, PageSeq: head}
	if page.Sections, err = b.encode(); err != nil {
		return SnapshotPage{}, nil, err
	}
	if b.pos.Section < len(sectionOrder) {
		next, err := paging.Encode(cursorName, b.pos)
		if err != nil {
			return SnapshotPage{}, nil, fmt.Errorf("encode the cursor: %w", err)
		}
		page.NextCursor = &next
	}
	return page, b.baseline, nil
}

func (s *Snapshot) begin(ctx context.Context, req SnapshotRequest, epoch ids.ID, head int64) (position, error) {
	me, now := actor.From(ctx).ID, s.clock.Now()
	if req.Cursor == "" {
		return position{Principal: me, Epoch: epoch, Head: head, Issued: now, Targets: req.Targets, Sections: req.Sections}, nil
	}
	pos, err := paging.Decode[position](cursorName, req.Cursor)
	if err != nil || pos.Principal != me || now.Sub(pos.Issued) > s.config.CursorTTL || pos.Section < 0 {
		return position{}, errs.New(errs.CodeCursorInvalid, "Start the snapshot again without a cursor.")
	}
	if pos.Epoch != epoch {
		return position{}, resync(domain.ResyncEpoch)
	}
	return pos, nil
}

// baseline notes that threads which were there before the person looked are read. It is a
// convenience: when it fails, the next snapshot does it.
func (s *Snapshot) baseline(ctx context.Context, states []domain.ReadState) {
	if len(states) == 0 {
		return
	}
	_ = s.units.Do(ctx, func(ctx context.Context) error {
		return s.readStates.rows.Baseline(ctx, actor.From(ctx).ID, states, txn.Current(ctx).Now())
	})
}
