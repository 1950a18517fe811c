// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/adapters/keystore"
	"github.com/OWNER/bothy/services/server/internal/instance/adapters/postgres"
	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/auditing"
	"github.com/OWNER/bothy/services/server/internal/kernel/authorize"
	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/eventlog"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
	"github.com/OWNER/bothy/services/server/internal/kernel/txn"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/pg/pgtest"
)

// above is everything that stands above instance, at its simplest.
type above struct {
	mu      sync.Mutex
	events  []eventlog.Event
	audited []auditing.Entry
	refuse  error
	// group is the one that everybody is in; asking fails with fault.
	group ids.ID
	fault error
}

func (a *above) InAnyGroup(_ context.Context, _ ids.ID, groups []ids.ID) (bool, error) {
	return slices.Contains(groups, a.group), a.fault
}

func (a *above) UnknownGroups(_ context.Context, list []ids.ID) ([]ids.ID, error) {
	return slices.DeleteFunc(slices.Clone(list), func(id ids.ID) bool { return id == a.group }), nil
}

func (a *above) UnknownPeople(context.Context, []ids.ID) ([]ids.ID, error) { return nil, nil }

func (a *above) Authorize(context.Context, authorize.Action, authorize.Resource) error {
	return a.refuse
}

func (a *above) Allowed(_ context.Context, e auditing.Entry) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.audited = append(a.audited, e)
	return nil
}

func (a *above) Denied(context.Context, auditing.Entry) {}

func (a *above) Append(_ context.Context, events ...eventlog.Event) error {
	a.events = append(a.events, events...)
	return nil
}

func (a *above) LoginOptions(context.Context) ([]instance.LoginOption, instance.PasswordPolicy, error) {
	return []instance.LoginOption{{Driver: "local", Label: "Password"}}, instance.PasswordPolicy{MinLength: 12, MaxLength: 256}, nil
}

// memoryMetrics keeps what was counted.
type memoryMetrics struct {
	mu     sync.Mutex
	failed map[string]int
}

func (m *memoryMetrics) RotationFailed(_ context.Context, purpose string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed[purpose]++
}

func (*memoryMetrics) KeyAge(context.Context, string, time.Duration) {}

func (*memoryMetrics) PolicyViolation(context.Context, string) {}

// authorizer gives the whole interface to a type that decides one way only.
type authorizer struct{ *above }

func (authorizer) Allowed(context.Context, authorize.Action, authorize.Resource) (bool, error) {
	return true, nil
}

func (authorizer) Scope(context.Context, authorize.Action) (authorize.Scope, error) {
	return authorize.Scope{}, nil
}

type bundle struct {
	db     *pgtest.DB
	units  *pg.Units
	clock  *clocktest.Fake
	folder string
	above  *above
	// metrics are those of every process.
	metrics *memoryMetrics
	cfg     app.Config
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{
		db: pgtest.New(t, pgtest.WithMigrations("0001", "0015")), clock: clocktest.New(time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)),
		folder: filepath.Join(t.TempDir(), "keys"), above: &above{}, metrics: &memoryMetrics{failed: map[string]int{}}, cfg: app.DefaultConfig(),
	}
	b.cfg.PublicURL, b.cfg.ServerVersion = "https://chat.example.org", "1.2.3"
	b.units = b.db.UnitsAt(txn.NewRegistry(), b.clock)
	return b
}

// process starts one more process on the database and the key store.
func (b *bundle) process(t *testing.T) *app.Service {
	t.Helper()
	store, err := keystore.Open(b.folder)
	if err != nil {
		t.Fatal(err)
	}
	s := app.New(b.cfg, app.Deps{
		Store: postgres.New(b.db.DB), KeyStore: store, Units: b.units, Clock: b.clock, Log: slog.New(slog.DiscardHandler), Metrics: b.metrics,
		Flags:    []instance.Flag{{Key: "new_sidebar", Module: "test", Summary: "The new sidebar"}, {Key: "old", Module: "test", Default: true}},
		Settings: []instance.Setting{{Key: "test.limit", Module: "test", Type: "duration", Default: time.Minute}},
		Checks: []instance.SettingsCheck{func(_ context.Context, v map[string]any) error {
			if v["test.limit"] == time.Duration(0) {
				return errs.Conflict("no_limit_left", "Leave a limit.")
			}
			return nil
		}},
	})
	s.SetPeers(app.Peers{Authorizer: authorizer{b.above}, Audit: b.above, Events: b.above, Login: b.above, FlagUsers: b.above, FlagGroups: b.above})
	return s
}

func (b *bundle) migrated(t *testing.T) *app.Service {
	t.Helper()
	s := b.process(t)
	if _, _, err := s.EnsureInstance(context.Background(), app.EnsureInput{SchemaVersion: 1, MinServerVersion: "0.1.0"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func owner(stepUp time.Time) context.Context {
	return actor.With(context.Background(), actor.Actor{ID: ids.New(), Kind: actor.KindPerson, Owner: true, StepUpUntil: stepUp})
}

func TestTheRowIsMadeOnceAndNotesTheSchema(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.process(t), context.Background()
	if _, err := s.Info(ctx); err == nil || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("before the first migration: %v", err)
	}
	first, created, err := s.EnsureInstance(ctx, app.EnsureInput{SchemaVersion: 3, MinServerVersion: "0.1.0"})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	again, created, err := s.EnsureInstance(ctx, app.EnsureInput{
		SchemaVersion: 5, MinServerVersion: "0.2.0", DBSystemIdentifier: "77", DBTimelineID: 2,
	})
	if err != nil || created || again.ID != first.ID || again.SyncEpoch != first.SyncEpoch || again.SchemaVersion != 5 ||
		again.MinServerVersion != "0.2.0" || again.DBSystemIdentifier != "77" || again.DBTimelineID != 2 {
		t.Errorf("%+v, %v, %v", again, created, err)
	}
	if done, err := s.SetupComplete(ctx); err != nil || done {
		t.Errorf("set up %v, %v", done, err)
	}
	for range 2 {
		if err := b.units.Do(ctx, s.CompleteSetup); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := s.SetupComplete(ctx); err != nil || !done {
		t.Errorf("set up %v, %v", done, err)
	}
}

func TestCountersRiseInTheirPhaseAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.WithMigrations("0001"))
	b := &bundle{db: db, clock: clocktest.New(time.Now()), folder: filepath.Join(t.TempDir(), "keys"), above: &above{}, cfg: app.DefaultConfig()}
	var s *app.Service
	counters := []instance.Counter{instance.CounterPermissionVersion, instance.CounterEventSeq, instance.CounterAuditSeq}
	got := map[instance.Counter]int64{}
	probe := func(legal instance.Counter) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			for _, c := range counters {
				err := s.Raise(ctx, c, 2, func(v int64) { got[c] = v })
				if (err == nil) != (c == legal) {
					return errors.Join(err, errors.New("wrong phase for "+string(c)))
				}
			}
			return nil
		}
	}
	begin, log, audit := probe(instance.CounterPermissionVersion), probe(instance.CounterEventSeq), probe(instance.CounterAuditSeq)
	registry := txn.NewRegistry()
	registry.SetHooks(txn.Hooks{
		RightsBegin: func(ctx context.Context, _ txn.RightsChange) error { return begin(ctx) },
		RightsCheck: func(ctx context.Context, _ txn.RightsChange) error { return probe("")(ctx) },
		Log:         log, Audit: audit,
	})
	b.units = db.UnitsAt(registry, b.clock)
	s = b.process(t)
	err := b.units.Do(context.Background(), probe(""), txn.WithRightsChange(txn.RightsChange{Action: "test"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counters {
		if v, err := s.Current(context.Background(), c); err != nil || v != 2 || got[c] != 2 {
			t.Errorf("%s: %d, told %d, %v", c, v, got[c], err)
		}
	}
}

func TestSettingsChangeTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.migrated(t)
	ctx := owner(time.Time{})
	set := func(ctx context.Context, version int64, document string) error {
		var changes map[string]json.RawMessage
		if err := json.Unmarshal([]byte(document), &changes); err != nil {
			t.Fatal(err)
		}
		_, err := s.UpdateSettings(ctx, changes, version)
		return err
	}
	code := func(err error) errs.Code {
		if err == nil {
			return ""
		}
		return errs.As(err).Code
	}
	if got := code(set(ctx, 1, `{"instance.name":"Atelier","nothing.at_all":1}`)); got != errs.CodeValidationFailed {
		t.Errorf("unknown key: %s", got)
	}
	for _, bad := range []string{
		`{"instance.name":7}`, `{"instance.name":""}`, `{"instance.name":"a\u0007b"}`, `{"instance.time_zone":"Mars/Olympus"}`,
		`{"test.limit":-1}`, `{"directory.email_visible":"yes"}`,
	} {
		if got := code(set(ctx, 1, bad)); got != errs.CodeValidationFailed {
			t.Errorf("%s: %q", bad, got)
		}
	}
	if got := code(set(ctx, 1, `{"access.view_as_enabled":false}`)); got != errs.CodeStepUpRequired {
		t.Errorf("sensitive: %s", got)
	}
	if got := code(set(ctx, 1, `{"test.limit":0}`)); got != errs.CodeConflict {
		t.Errorf("across keys: %s", got)
	}
	if name, err := s.String(context.Background(), instance.SettingName); err != nil || name != "Bothy" {
		t.Errorf("after refusals: %q, %v", name, err)
	}
	if err := set(owner(b.clock.Now().Add(time.Minute)), 1, `{"instance.name":"Atelier","test.limit":90000,"access.view_as_enabled":false}`); err != nil {
		t.Fatal(err)
	}
	if got := code(set(ctx, 1, `{"instance.name":"Other"}`)); got != errs.CodeVersionConflict {
		t.Errorf("an old version: %s", got)
	}
	name, err1 := s.String(context.Background(), instance.SettingName)
	limit, err2 := s.Duration(context.Background(), "test.limit")
	if err := errors.Join(err1, err2); err != nil || name != "Atelier" || limit != 90*time.Second {
		t.Errorf("%q %s %v", name, limit, err)
	}
	if err := set(ctx, 2, `{"instance.name":null}`); err != nil {
		t.Fatal(err)
	}
	if view, err := s.ReadSettings(ctx); err != nil || view.Values["instance.name"] != "Bothy" || view.Version != 3 {
		t.Errorf("%+v, %v", view, err)
	}
	if len(b.above.events) != 2 || b.above.events[0].Type != app.EventInstanceUpdated || len(b.above.audited) != 2 {
		t.Errorf("%d events, %d audit rows", len(b.above.events), len(b.above.audited))
	}
}

func TestConcurrentChangesOfSettingsExcludeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.migrated(t)
	var wg sync.WaitGroup
	results := make([]error, 4)
	for i := range results {
		wg.Go(func() {
			_, results[i] = s.UpdateSettings(owner(time.Time{}), map[string]json.RawMessage{"instance.name": json.RawMessage(`"N"`)}, 1)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errs.Is(err, errs.CodeVersionConflict) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of 4 changes of one version succeeded", won)
	}
}

func TestAnotherProcessSeesASettingWithinItsTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.migrated(t)
	other, ctx := b.process(t), context.Background()
	read := func() string {
		name, err := other.String(ctx, instance.SettingName)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	read()
	if _, err := s.UpdateSettings(owner(time.Time{}), map[string]json.RawMessage{"instance.name": json.RawMessage(`"N"`)}, 1); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(b.cfg.SettingsTTL)
	if got := read(); got != "N" {
		t.Errorf("after the time: %q", got)
	}
	other.Invalidate()
	if got := read(); got != "N" {
		t.Errorf("after the event: %q", got)
	}
}

func TestKeysSignForTheirPurposeAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), context.Background()
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	token, err := s.Sign(ctx, instance.PurposeInvocation, []byte(`{"run":1}`))
	if err != nil {
		t.Fatal(err)
	}
	// A second process finds the key of the first.
	other := b.process(t)
	if err := other.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	if payload, err := other.Verify(ctx, instance.PurposeInvocation, token); err != nil || string(payload) != `{"run":1}` {
		t.Errorf("%s, %v", payload, err)
	}
	if _, err := other.Verify(ctx, instance.PurposeAccess, token); !errs.Is(err, errs.CodeUnauthenticated) {
		t.Errorf("for another purpose: %v", err)
	}
	for _, forged := range []string{"", "a.b.c", token[:len(token)-4] + "AAAA", strings.Replace(token, ".", ".e", 1)} {
		if _, err := s.Verify(ctx, instance.PurposeInvocation, forged); !errs.Is(err, errs.CodeUnauthenticated) {
			t.Errorf("%q: %v", forged, err)
		}
	}
	jwks, err := s.JWKS(ctx)
	if err != nil || len(jwks) != 3 || jwks[0].KeyID == "" || jwks[0].Algorithm != jose.ES256 || jwks[0].D != "" {
		t.Errorf("%+v, %v", jwks, err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE state = 'active'"); n != 3 {
		t.Errorf("%d active keys", n)
	}
	if len(b.above.audited) != 3 {
		t.Errorf("%d transitions were recorded", len(b.above.audited))
	}
}

func TestAKeyOfAnotherProcessIsFoundByItsName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), context.Background()
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	other := b.process(t)
	if err := other.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	var kid string
	if err := b.db.Pool.QueryRow(ctx, "SELECT kid FROM server_signing_keys WHERE purpose = 'access'").Scan(&kid); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.folder, kid+".pem")); err != nil {
		t.Fatal(err)
	}
	// A restart makes a new key; the old one is accepted until its last token has ended.
	old, err := s.Sign(ctx, instance.PurposeAccess, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	restarted := b.process(t)
	if err := restarted.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	fresh, err := restarted.Sign(ctx, instance.PurposeAccess, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Second)
	for name, token := range map[string]string{"new": fresh, "old": old} {
		if _, err := other.Verify(ctx, instance.PurposeAccess, token); err != nil {
			t.Errorf("%s key: %v", name, err)
		}
	}
	b.clock.Advance(b.cfg.AccessTokenTTL + 10*time.Minute)
	if _, err := other.Verify(ctx, instance.PurposeAccess, old); !errs.Is(err, errs.CodeUnauthenticated) {
		t.Errorf("the retired key is still accepted: %v", err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE retire_reason = 'lost'"); n != 1 {
		t.Errorf("%d lost keys", n)
	}
}

func TestAnEmptyKeyStoreStopsTheStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	if err := b.migrated(t).EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	b.folder = filepath.Join(t.TempDir(), "another")
	if err := b.process(t).EnsureKeys(ctx); err == nil || !strings.Contains(err.Error(), "accept_lost_keys") {
		t.Errorf("a wrong volume: %v", err)
	}
	b.cfg.AcceptLostKeys = true
	if err := b.process(t).EnsureKeys(ctx); err != nil {
		t.Errorf("accepted: %v", err)
	}
}

// A process that cannot sign for a purpose is not ready, although what it has still verifies.
func TestEveryPurposeNeedsAnActiveKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := context.Background()
	if err := b.migrated(t).EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.process(t).CheckKeys(ctx); err != nil {
		t.Errorf("all keys are there: %v", err)
	}
	b.db.Exec(t, "DELETE FROM server_signing_keys WHERE purpose = 'invocation'")
	if err := b.process(t).CheckKeys(ctx); err == nil || !strings.Contains(err.Error(), "invocation") {
		t.Errorf("without a key for invocations: %v", err)
	}
}

func TestDiscoveryNamesAddressesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d, err := b.migrated(t).ReadDiscovery(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if d.APIBase != "https://chat.example.org/api/v1" || d.GatewayURL != "wss://chat.example.org/api/v1/gateway" ||
		d.JWKSURL != "https://chat.example.org/.well-known/jwks.json" || d.SetupComplete || len(d.LoginOptions) != 1 {
		t.Errorf("%+v", d)
	}
	b.above.refuse = errs.NotFound()
	if _, _, err := b.process(t).ReadInstance(context.Background()); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("a refused read: %v", err)
	}
}
