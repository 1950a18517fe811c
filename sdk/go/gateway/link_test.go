// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	bothy "github.com/OWNER/bothy/sdk/go"
	"github.com/OWNER/bothy/sdk/go/api"
	"github.com/OWNER/bothy/sdk/go/bothytest"
	"github.com/OWNER/bothy/sdk/go/gateway"
)

// impatient shortens every wait.
var impatient = gateway.Timing{
	Backoff: func(int) time.Duration { return time.Millisecond },
	Wait:    func(ctx context.Context, _ time.Duration) error { return bothy.Sleep(ctx, time.Millisecond) },
	Answer:  5 * time.Second,
}

// reader is a program that follows events.
type reader struct {
	mu      sync.Mutex
	seen    []gateway.Event
	changed chan struct{}
}

func newReader() *reader { return &reader{changed: make(chan struct{}, 1)} }

func (r *reader) handle(_ context.Context, e gateway.Event) error {
	r.mu.Lock()
	r.seen = append(r.seen, e)
	r.mu.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return nil
}

func (r *reader) ids() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]string, 0, len(r.seen))
	for _, e := range r.seen {
		out = append(out, e.ID)
	}
	return out
}

func (r *reader) await(t *testing.T, want []string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !slices.Equal(r.ids(), want) {
		select {
		case <-r.changed:
		case <-deadline:
			t.Fatalf("events %v, want %v", r.ids(), want)
		}
	}
}

func person(t *testing.T, s *bothytest.Server) *bothy.Client {
	t.Helper()
	c, err := bothy.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	key, err := bothy.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.LoginWithPassword(t.Context(), key, api.DeviceInfo{Name: "t", Platform: api.PlatformLinux, Client: api.ClientKindCli, ClientVersion: "1"}, "ana", bothytest.Password)
	if err != nil {
		t.Fatal(err)
	}
	return c.As(session)
}

// follow runs a link until the test ends or stop is called.
func follow(t *testing.T, cfg gateway.Config) (stop func() error) {
	t.Helper()
	cfg.Timing = impatient
	link, err := gateway.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- link.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func publish(s *bothytest.Server, n int) (ids []string) {
	for i := range n {
		_, id := s.Publish("space.created", map[string]any{"id": fmt.Sprint(i)})
		ids = append(ids, id)
	}
	return ids
}

func TestEventsOfADropArriveOnceAndInOrder(t *testing.T) {
	s := bothytest.Start(t)
	r := newReader()
	follow(t, gateway.Config{Client: person(t, s), Handle: r.handle})
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	want := publish(s, 3)
	r.await(t, want)
	s.DropConnections()
	want = append(want, publish(s, 5)...)
	r.await(t, want)
	s.CloseConnections(4013, "server_restart:1")
	want = append(want, publish(s, 4)...)
	r.await(t, want)
	s.CloseConnections(4008, "rate_limited")
	s.CloseConnections(4006, "session_unknown")
	want = append(want, publish(s, 2)...)
	r.await(t, want)
}

func TestAProgramGoesOnWhereItsFileSays(t *testing.T) {
	s := bothytest.Start(t)
	name := filepath.Join(t.TempDir(), "state", "cursor.json")
	store, err := gateway.NewFileStore(name)
	if err != nil {
		t.Fatal(err)
	}
	c := person(t, s)
	first := newReader()
	stop := follow(t, gateway.Config{Client: c, Handle: first.handle, Store: store})
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	first.await(t, publish(s, 2))
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	missed := publish(s, 3)
	second := newReader()
	follow(t, gateway.Config{Client: c, Handle: second.handle, Store: store})
	second.await(t, missed)
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of the position: %v, %v", info, err)
	}
}

func TestANewLogIsLoadedFromASnapshot(t *testing.T) {
	s := bothytest.Start(t)
	c := person(t, s)
	r := newReader()
	resyncs := make(chan struct{}, 8)
	follow(t, gateway.Config{Client: c, Handle: r.handle, Resync: func(ctx context.Context) (gateway.Position, error) {
		snapshot, err := c.Snapshot(ctx, "")
		if err != nil {
			return gateway.Position{}, err
		}
		resyncs <- struct{}{}
		return gateway.Position{SyncEpoch: snapshot.SyncEpoch, Cursor: snapshot.HeadSeq}, nil
	}})
	<-resyncs
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	want := publish(s, 2)
	r.await(t, want)
	s.NewEpoch()
	s.DropConnections()
	<-resyncs
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	want = append(want, publish(s, 1)...)
	r.await(t, want)
}

func TestAConnectionProvesItselfAnewWhenAsked(t *testing.T) {
	s := bothytest.Start(t)
	r := newReader()
	follow(t, gateway.Config{Client: person(t, s), Handle: r.handle})
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	s.Reauthenticate()
	r.await(t, publish(s, 1))
}

func TestAnExpiredTokenIsRenewedAndAnEndedSessionStops(t *testing.T) {
	s := bothytest.Start(t)
	link, err := gateway.New(gateway.Config{Client: person(t, s), Handle: newReader().handle, Timing: impatient})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- link.Run(t.Context()) }()
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	s.ExpireAccess()
	s.CloseConnections(4010, "credentials_ended")
	s.Wait("the old connection to end", func() bool { return s.Connected() == 0 })
	s.Wait("a connection with a fresh token", func() bool { return s.Connected() == 1 })
	s.EndSession()
	s.CloseConnections(4010, "credentials_ended")
	if err := <-done; !errors.Is(err, gateway.ErrCredentials) || !errors.Is(err, bothy.ErrSignedOut) {
		t.Error(err)
	}
}

func TestEndsThatNoReconnectHeals(t *testing.T) {
	for _, test := range []struct {
		code int
		want error
	}{{4015, gateway.ErrConsumerTaken}, {4017, gateway.ErrDeviceElsewhere}, {4018, gateway.ErrForbidden}, {4011, gateway.ErrProtocol}} {
		s := bothytest.Start(t)
		link, err := gateway.New(gateway.Config{Client: person(t, s), Handle: newReader().handle, Timing: impatient})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- link.Run(t.Context()) }()
		s.Wait("a connection", func() bool { return s.Connected() == 1 })
		s.CloseConnections(test.code, "x")
		var closed *gateway.CloseError
		if err := <-done; !errors.Is(err, test.want) || !errors.As(err, &closed) {
			t.Errorf("%d: %v, want %v", test.code, err, test.want)
		}
	}
}

func TestARevokedTokenOfAnAgentStops(t *testing.T) {
	s := bothytest.Start(t)
	c, err := bothy.New(s.URL, bothy.WithCredential(bothy.APIToken("bothy_agent_other")))
	if err != nil {
		t.Fatal(err)
	}
	link, err := gateway.New(gateway.Config{Client: c, Consumer: true, Handle: newReader().handle, Timing: impatient})
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Run(t.Context()); !errors.Is(err, gateway.ErrCredentials) {
		t.Error(err)
	}
}

func TestAnotherInstanceIsNotSpokenTo(t *testing.T) {
	s := bothytest.Start(t)
	c, err := bothy.New(s.URL, bothy.WithCredential(bothy.APIToken(s.Token)))
	if err != nil {
		t.Fatal(err)
	}
	link, err := gateway.New(gateway.Config{Client: c, Consumer: true, Handle: newReader().handle, InstanceID: bothy.NewID(), Timing: impatient})
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Run(t.Context()); !errors.Is(err, gateway.ErrForeign) {
		t.Error(err)
	}
}

func TestAnEventWhoseHandlingFailedComesAgain(t *testing.T) {
	s := bothytest.Start(t)
	r := newReader()
	failures := 3
	follow(t, gateway.Config{Client: person(t, s), Handle: func(ctx context.Context, e gateway.Event) error {
		if failures > 0 {
			failures--
			return errors.New("disk full")
		}
		return r.handle(ctx, e)
	}})
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	r.await(t, publish(s, 3))
}

func TestTheFocusIsKeptOverReconnects(t *testing.T) {
	s := bothytest.Start(t)
	link, err := gateway.New(gateway.Config{Client: person(t, s), Handle: newReader().handle, Timing: impatient})
	if err != nil {
		t.Fatal(err)
	}
	focus := func(thread string) {
		t.Helper()
		if err := link.Focus(t.Context(), api.FocusTarget{ThreadIds: []string{thread}}); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(thread string) func() bool {
		return func() bool { return slices.Equal(s.Focused(), []string{thread}) }
	}
	focus("before the first connection")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- link.Run(ctx) }()
	s.Wait("the focus of the first connection", shown("before the first connection"))
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	focus("while connected")
	s.Wait("the focus", shown("while connected"))
	s.CloseConnections(4013, "server_restart:1") // identifies anew
	s.Wait("the focus of the next connection", shown("while connected"))
	cancel()
	<-done //nolint:errcheck // Only that it ended.
}

func TestEphemeralEventsDoNotMoveThePosition(t *testing.T) {
	s := bothytest.Start(t)
	r, store := newReader(), &gateway.MemoryStore{}
	seen := make(chan gateway.Event, 1)
	follow(t, gateway.Config{Client: person(t, s), Handle: r.handle, Store: store, Ephemeral: func(_ context.Context, e gateway.Event) { seen <- e }})
	s.Wait("a connection", func() bool { return s.Connected() == 1 })
	s.Ephemeral("typing.started", api.TypingStartedData{ThreadID: "t"})
	e := <-seen
	data, err := gateway.Data[api.TypingStartedData](e)
	if err != nil || data.ThreadID != "t" || e.Seq != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if after, err := store.Load(t.Context()); err != nil || after.Cursor != 0 {
		t.Errorf("position %+v, %v", after, err)
	}
}

// TestExactlyOnce plays a program whose effect and position lie in one store, against a network that drops and
// repeats, a server that forgets acknowledgements and begins its log anew, and crashes of the program itself.
func TestExactlyOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := bothytest.Start(t)
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		store, err := gateway.NewFileStore(filepath.Join(dir, "cursor.json"))
		if err != nil {
			rt.Fatal(err)
		}
		c, err := bothy.New(s.URL, bothy.WithCredential(bothy.APIToken(s.Token)))
		if err != nil {
			rt.Fatal(err)
		}
		effects := &effects{known: map[string]int{}, changed: make(chan struct{}, 1)}
		thread := s.Thread()
		var want []string
		stop := func() {}
		start := func() { stop = effects.program(rt, c, store) }
		start()
		defer func() { stop() }()
		for range rapid.IntRange(5, 25).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"event", "event", "event", "drop", "repeat", "forget", "restart", "crash"}).Draw(rt, "step") {
			case "event":
				want = append(want, s.State(s.Invoke(thread, "x")).EventID)
			case "drop":
				s.DropConnections()
			case "repeat":
				s.RepeatEvents()
			case "forget":
				s.ForgetAcks(0)
				s.DropConnections()
			case "restart":
				stop()
				start()
			case "crash":
				effects.crashNext()
			}
			if effects.crashed() {
				stop()
				start()
			}
		}
		for deadline := time.After(20 * time.Second); effects.count() < len(want); {
			if effects.crashed() {
				stop()
				start()
			}
			select {
			case <-effects.changed:
			case <-deadline:
				rt.Fatalf("%d of %d events arrived", effects.count(), len(want))
			}
		}
		for _, id := range want {
			if n := effects.times(id); n != 1 {
				rt.Fatalf("event %s had %d effects", id, n)
			}
		}
	})
}

// effects is what a program did, by event, as a table with a unique key would hold it. A crash loses what the program
// was about to do or to store behind it.
type effects struct {
	mu    sync.Mutex
	known map[string]int
	crash bool
	down  bool
	// changed tells of an effect or a crash.
	changed chan struct{}
}

func (f *effects) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

var errCrash = errors.New("crash")

func (f *effects) program(rt *rapid.T, c *bothy.Client, store gateway.Store) (stop func()) {
	f.mu.Lock()
	f.down = false
	f.mu.Unlock()
	link, err := gateway.New(gateway.Config{Client: c, Store: crashing{store, f}, Consumer: true, Handle: f.handle, Timing: impatient})
	if err != nil {
		rt.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = link.Run(ctx) }()
	return func() { cancel(); <-done }
}

func (f *effects) handle(_ context.Context, e gateway.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known[e.ID] == 0 {
		f.known[e.ID]++
	}
	f.signal()
	return nil
}

// crashing fails to store a position, after which the program is down.
type crashing struct {
	gateway.Store
	effects *effects
}

func (c crashing) Save(ctx context.Context, p gateway.Position) error {
	c.effects.mu.Lock()
	if c.effects.crash {
		c.effects.crash, c.effects.down = false, true
		c.effects.signal()
		c.effects.mu.Unlock()
		return errCrash
	}
	c.effects.mu.Unlock()
	return c.Store.Save(ctx, p)
}

func (f *effects) crashNext() { f.mu.Lock(); defer f.mu.Unlock(); f.crash = true }

func (f *effects) crashed() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.down }

func (f *effects) count() int { f.mu.Lock(); defer f.mu.Unlock(); return len(f.known) }

func (f *effects) times(id string) int { f.mu.Lock(); defer f.mu.Unlock(); return f.known[id] }

func TestEveryEventOfTheContractHasAType(t *testing.T) {
	text, err := os.ReadFile("../../../docs/api/asyncapi.yaml")
	if err != nil {
		t.Skip("the contract is not beside the module")
	}
	_, events, _ := strings.Cut(string(text), "\nx-events:\n")
	names := regexp.MustCompile(`(?m)^  ([a-z_.]+):$`).FindAllStringSubmatch(events, -1)
	if len(names) < 20 {
		t.Fatalf("%d events found in the contract", len(names))
	}
	for _, name := range names {
		payload, err := gateway.Event{Type: name[1], Data: []byte("{}")}.Payload()
		if err != nil {
			t.Error(err)
		}
		if _, unknown := payload.([]byte); unknown || fmt.Sprintf("%T", payload) == "json.RawMessage" {
			t.Errorf("%s has no type", name[1])
		}
	}
}
