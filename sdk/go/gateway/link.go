// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
)

// Config says whose events a Link follows and what becomes of them. Only Client and Handle are required.
type Config struct {
	// Client reaches the instance; its credential identifies the Link.
	Client *bothy.Client
	// Store keeps the position. Without one the Link begins at the present and knows nothing after a restart.
	Store Store
	// Handle gets every durable event, in order and one at a time. When it returns nil the event is done. When it
	// returns an error, the connection ends and the event comes again after a wait. It should return within a few
	// seconds; work that takes longer belongs to a goroutine of the program.
	Handle func(context.Context, Event) error
	// Ephemeral gets events that are stored nowhere, such as progress of a run. It may be nil.
	Ephemeral func(context.Context, Event)
	// Resync loads the state anew and returns the position it stands for, when there is no position yet or the log
	// no longer has what was missed. Without it the Link goes on from the present.
	Resync func(context.Context) (Position, error)
	// Connected hears of every new connection.
	Connected func(Connection)
	// Failed hears of frames the server refused without ending the connection. It may be nil.
	Failed func(api.ErrorFrame)

	// Consumer acknowledges every event that is done. Agents are consumers: the server keeps their position, too.
	Consumer bool
	// Heartbeat is the report of an agent's adapter, sent with each heartbeat. It is nil for people.
	Heartbeat func() *api.Heartbeat

	// Program names the program to the instance.
	Program Program
	// InstanceID, when set, is the only instance that is spoken to.
	InstanceID string
	// Log gets reconnects and refused frames; nothing when nil.
	Log *slog.Logger
	// Timing is for tests; the zero value is right otherwise.
	Timing Timing
}

// Program names a program to the instance.
type Program struct{ Name, Version string }

// Timing replaces the waits of a Link.
type Timing struct {
	// Backoff is the wait before the attempt after n failed ones.
	Backoff func(n int) time.Duration
	// Wait waits; it ends early with the error of the context.
	Wait func(context.Context, time.Duration) error
	// Answer is how long the server may take to answer a heartbeat or the first frame; 10 s when 0.
	Answer time.Duration
}

// Connection is what the server said at the beginning of a connection.
type Connection struct {
	SessionID, InstanceID, SyncEpoch, ServerVersion string
	// Principal is nil after a resume.
	Principal *api.ReadyPrincipal
	// HeadSeq is the end of the log; Cursor is where delivery begins.
	HeadSeq, Cursor int64
	// Resumed is true when an earlier session goes on.
	Resumed bool
	// HeartbeatInterval is how often the Link shows that it lives.
	HeartbeatInterval time.Duration
}

// Link follows the events of one principal. Make it with New.
type Link struct {
	cfg      Config
	position Position
	history  history
	recent   recentIDs

	mu      sync.Mutex
	current *connection
	focus   *api.FocusTarget
	session string // to be resumed, or empty
}

// New checks the configuration.
func New(cfg Config) (*Link, error) {
	if cfg.Client == nil || cfg.Client.Credential() == nil || cfg.Handle == nil {
		return nil, errors.New("gateway: Client with a credential and Handle are required")
	}
	if cfg.Store == nil {
		cfg.Store = &MemoryStore{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Timing.Backoff == nil {
		cfg.Timing.Backoff = func(n int) time.Duration { return bothy.Backoff(n, 0, 0) }
	}
	if cfg.Timing.Wait == nil {
		cfg.Timing.Wait = bothy.Sleep
	}
	if cfg.Timing.Answer == 0 {
		const standard = 10 * time.Second
		cfg.Timing.Answer = standard
	}
	if cfg.Program.Name == "" {
		cfg.Program = Program{Name: "bothy-sdk-go", Version: "1"}
	}
	return &Link{cfg: cfg}, nil
}

// Run follows the events until the context ends, whose error it then returns, or until an end that no reconnect
// heals: ErrCredentials, ErrConsumerTaken, ErrDeviceElsewhere, ErrForbidden, ErrProtocol, ErrForeign, or a fault of
// the Store.
func (l *Link) Run(ctx context.Context) error {
	var err error
	if l.position, err = l.cfg.Store.Load(ctx); err != nil {
		return fmt.Errorf("load the position: %w", err)
	}
	next := reaction{resync: l.position.SyncEpoch == "" && l.cfg.Resync != nil}
	for {
		if err := l.prepare(ctx, next); err != nil {
			return err
		}
		end := l.connect(ctx, next)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var fault *storeError
		if errors.As(end.err, &fault) {
			return end.err
		}
		next = l.history.react(end, time.Now(), l.cfg.Timing.Backoff)
		if next.stop != nil {
			return next.stop
		}
		l.cfg.Log.InfoContext(ctx, "gateway connection ended", "code", int(end.code), "reason", end.reason, "error", end.err, "wait", next.delay)
		if err := l.cfg.Timing.Wait(ctx, next.delay); err != nil {
			return err
		}
	}
}

// storeError is a position that could not be stored: going on would lose the promise of Handle.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// prepare does what must be done before the next connection. Calls that fail for a while are repeated by the client
// and then once more here, so that only the context ends them.
func (l *Link) prepare(ctx context.Context, next reaction) error {
	for n := 0; ; n++ {
		err := l.prepareOnce(ctx, next)
		var fault *storeError
		if err == nil || ctx.Err() != nil || errors.As(err, &fault) || errors.Is(err, bothy.ErrSignedOut) {
			return err
		}
		l.cfg.Log.WarnContext(ctx, "state cannot be loaded", "error", err)
		if err := l.cfg.Timing.Wait(ctx, l.cfg.Timing.Backoff(n)); err != nil {
			return err
		}
	}
}

func (l *Link) prepareOnce(ctx context.Context, next reaction) error {
	switch {
	case next.resync && l.cfg.Consumer:
		// The server knows where a consumer stands; only what was seen here means nothing any more.
		return l.store(ctx, Position{InstanceID: l.position.InstanceID, PrincipalID: l.position.PrincipalID})
	case next.resync && l.cfg.Resync != nil:
		p, err := l.cfg.Resync(ctx)
		if err != nil {
			return err
		}
		p.InstanceID, p.PrincipalID = l.position.InstanceID, l.position.PrincipalID
		l.forgetSession()
		return l.store(ctx, p)
	case next.resync:
		l.forgetSession()
		return l.store(ctx, Position{InstanceID: l.position.InstanceID, PrincipalID: l.position.PrincipalID})
	case next.catchUp && !l.cfg.Consumer:
		return l.readMissed(ctx)
	}
	return nil
}

// readMissed reads the log over REST up to its end, for a program that is too slow for the gateway's queue.
func (l *Link) readMissed(ctx context.Context) error {
	const page = 200
	for {
		events, err := l.cfg.Client.Events(ctx, l.position.Cursor, l.position.SyncEpoch, page)
		if err != nil {
			return err
		}
		for _, e := range events.Events {
			if err := l.handle(ctx, durableEvent(e)); err != nil {
				return err
			}
		}
		if err := l.advance(ctx, events.ThroughSeq); err != nil || events.Complete {
			return err
		}
	}
}

// handle gives a durable event to the program and stores the position behind it. Repeated events are dropped.
func (l *Link) handle(ctx context.Context, e Event) error {
	if e.Seq <= l.position.Cursor {
		return nil
	}
	if !l.recent.has(e.ID) {
		if err := l.cfg.Handle(ctx, e); err != nil {
			return fmt.Errorf("handle event %s of type %s: %w", e.ID, e.Type, err)
		}
		l.recent.add(e.ID)
	}
	return l.advance(ctx, e.Seq)
}

// advance raises the cursor; it never falls within an epoch.
func (l *Link) advance(ctx context.Context, cursor int64) error {
	if cursor <= l.position.Cursor {
		return nil
	}
	p := l.position
	p.Cursor = cursor
	return l.store(ctx, p)
}

func (l *Link) store(ctx context.Context, p Position) error {
	if p == l.position {
		return nil
	}
	if err := l.cfg.Store.Save(ctx, p); err != nil {
		return &storeError{fmt.Errorf("store the position: %w", err)}
	}
	l.position = p
	return nil
}

func (l *Link) forgetSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = ""
}

// Focus says which threads the program shows, at most four; only for these come ephemeral events. It is kept over
// reconnects. Without a connection it is sent with the next one.
func (l *Link) Focus(ctx context.Context, target api.FocusTarget) error {
	if target.ThreadIds == nil {
		target.ThreadIds = []string{}
	}
	l.mu.Lock()
	l.focus = &target
	current := l.current
	l.mu.Unlock()
	if current == nil {
		return nil
	}
	return current.write(ctx, "focus", "", target)
}

// Beat sends a heartbeat soon instead of at the next interval, because the report changed.
func (l *Link) Beat() {
	l.mu.Lock()
	current := l.current
	l.mu.Unlock()
	if current != nil {
		current.beatSoon()
	}
}

func platform() api.Platform {
	switch runtime.GOOS {
	case "linux":
		return api.PlatformLinux
	case "darwin":
		return api.PlatformMacos
	case "windows":
		return api.PlatformWindows
	case "android":
		return api.PlatformAndroid
	case "ios":
		return api.PlatformIos
	}
	return api.PlatformOther
}

// recentIDs remembers the newest events that were handled, so that an event that comes under a new number, after
// the log began anew, is not handled twice.
type recentIDs struct {
	known map[string]struct{}
	order []string
	next  int
}

func (r *recentIDs) has(id string) bool {
	_, ok := r.known[id]
	return ok
}

func (r *recentIDs) add(id string) {
	const keep = 4096
	if r.known == nil {
		r.known = make(map[string]struct{}, keep)
	}
	if len(r.order) < keep {
		r.order = append(r.order, id)
	} else {
		delete(r.known, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % keep
	}
	r.known[id] = struct{}{}
}
