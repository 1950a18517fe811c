// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/instance"
	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/instance/domain"
	"github.com/OWNER/bothy/services/server/internal/kernel/actor"
	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

func (b *bundle) files(t *testing.T) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(b.folder, "*.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestKeysRotateWithoutATokenFailing follows a year: another process that only verifies accepts
// every token until its end, and knows each key before it signs.
func TestKeysRotateWithoutATokenFailing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.RotationInterval, b.cfg.NextLead = 30*24*time.Hour, 24*time.Hour
	s, ctx := b.migrated(t), context.Background()
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	other := b.process(t)
	seen := map[string]bool{}
	for range 400 { // A hundred days in steps of six hours.
		if err := s.RotateKeys(ctx); err != nil {
			t.Fatal(err)
		}
		token, err := s.Sign(ctx, instance.PurposeAccess, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Verify(ctx, instance.PurposeAccess, token); err != nil {
			t.Fatalf("a token is refused: %v", err)
		}
		jwks, err := other.JWKS(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range jwks {
			seen[k.KeyID] = true
		}
		b.clock.Advance(b.cfg.AccessTokenTTL)
		if _, err := other.Verify(ctx, instance.PurposeAccess, token); err != nil {
			t.Fatalf("a token is refused before its end: %v", err)
		}
		b.clock.Advance(6*time.Hour - b.cfg.AccessTokenTTL)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE retire_reason = 'rotation'"); n != 9 {
		t.Errorf("%d keys retired; three for each purpose should have", n)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE state = 'retired' AND published AND purpose = 'access'"); n != 0 {
		t.Errorf("%d retired keys are still published", n)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE state = 'retired' AND NOT published AND purpose = 'checkpoint'"); n != 0 {
		t.Errorf("%d keys of checkpoints are not published", n)
	}
	if have, rows := b.files(t), b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE state <> 'retired'"); int64(have) != rows {
		t.Errorf("%d private halves for %d keys", have, rows)
	}
}

func TestOneOfTwoWorkersRotates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), context.Background()
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(b.cfg.RotationInterval)
	workers := []*app.Service{b.process(t), b.process(t)}
	for range 2 {
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() {
				if err := w.RotateKeys(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		b.clock.Advance(b.cfg.NextLead)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys"); n != 6 {
		t.Errorf("%d keys", n)
	}
}

func TestARotationThatCannotBeDoneIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), context.Background()
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(b.cfg.RotationInterval)
	if err := s.RotateKeys(ctx); err != nil {
		t.Fatal(err)
	}
	var kid string
	if err := b.db.Pool.QueryRow(ctx, "SELECT kid FROM server_signing_keys WHERE state = 'next' AND purpose = 'access'").Scan(&kid); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.folder, kid+".pem")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(b.cfg.NextLead)
	fresh := b.process(t)
	if err := fresh.RotateKeys(ctx); err == nil {
		t.Error("a key that others may read signs")
	}
	if got := b.metrics.failed["access"]; got != 1 || b.metrics.failed["invocation"] != 0 {
		t.Errorf("%v failures", b.metrics.failed)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE purpose = 'invocation' AND retire_reason = 'rotation'"); n != 1 {
		t.Error("one purpose kept another from rotating")
	}
	// A next key that is gone is replaced at once.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := fresh.RotateKeys(ctx); err != nil {
		t.Fatal(err)
	}
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE purpose = 'access' AND retire_reason = 'lost'"); n != 1 {
		t.Error("the lost key did not retire")
	}
}

func TestOwnersRotateKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), owner(time.Time{})
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	other := b.process(t)
	sign := func() string {
		t.Helper()
		token, err := s.Sign(ctx, instance.PurposeAccess, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Verify(ctx, instance.PurposeAccess, token); err != nil {
			t.Fatal(err)
		}
		return token
	}
	rotate := func(mode domain.RotationMode) []domain.SigningKey {
		t.Helper()
		b.clock.Advance(time.Second) // The list is in the order of time.
		keys, err := s.RotateKey(ctx, "access", mode)
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	first := sign()
	if keys := rotate(domain.RotateScheduled); len(keys) != 2 || keys[0].State != domain.KeyNext {
		t.Fatalf("%+v", keys)
	}
	if _, err := s.RotateKey(ctx, "access", domain.RotateScheduled); errs.As(err).Reason != "next_exists" {
		t.Errorf("a second next key: %v", err)
	}
	next := rotate(domain.RotateNow)
	if len(next) != 2 || next[0].State != domain.KeyActive || next[1].RetireReason != domain.RetiredManually {
		t.Fatalf("the next key does not sign: %+v", next)
	}
	b.clock.Advance(time.Second) // The other process looks at most once a second.
	second := sign()
	rotate(domain.RotateScheduled)
	rotate(domain.RotateCompromised)
	other.Invalidate() // The event does that.
	for name, c := range map[string]struct {
		token string
		ok    bool
	}{"retired in order": {first, true}, "compromised": {second, false}} {
		if _, err := other.Verify(ctx, instance.PurposeAccess, c.token); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	sign()
	if n := b.db.Count(t, "SELECT count(*) FROM server_signing_keys WHERE retire_reason = 'compromised'"); n != 2 {
		t.Errorf("%d keys are compromised; the next one lay beside the active one", n)
	}
	if _, err := s.RotateKey(ctx, "dance", domain.RotateNow); !errs.Is(err, errs.CodeNotFound) {
		t.Errorf("an unknown purpose: %v", err)
	}
	events := 0
	for _, e := range b.above.events {
		if e.Type == app.EventInstanceUpdated {
			events++
		}
	}
	if events != 4 {
		t.Errorf("%d events for four changes", events)
	}
	b.above.refuse = errs.New(errs.CodeForbidden, "no")
	if _, err := s.RotateKey(ctx, "access", domain.RotateNow); !errs.Is(err, errs.CodeForbidden) {
		t.Errorf("without the right: %v", err)
	}
}

func TestFilesWithoutARowAreRemovedAfterAnHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), context.Background()
	if err := s.EnsureKeys(ctx); err != nil {
		t.Fatal(err)
	}
	b.above.fault = nil
	before := b.files(t)
	orphan := filepath.Join(b.folder, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ.pem")
	if err := os.WriteFile(orphan, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	made := b.clock.Now()
	if err := os.Chtimes(orphan, made, made); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{before + 1, before} {
		if err := s.RotateKeys(ctx); err != nil {
			t.Fatal(err)
		}
		if n := b.files(t); n != want {
			t.Errorf("%d files, want %d", n, want)
		}
		b.clock.Advance(time.Hour)
	}
}

func person(id ids.ID) context.Context {
	return actor.With(context.Background(), actor.Actor{ID: id, Kind: actor.KindPerson})
}

func TestFlagsReachThoseTheyName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), owner(time.Time{})
	me := ids.New()
	if s.Enabled(person(me), "new_sidebar") || !s.Enabled(person(me), "old") || s.Enabled(person(me), "dance") {
		t.Error("untouched flags do not have their defaults")
	}
	rollout := domain.FlagRollout
	f, err := s.UpdateFlag(ctx, "new_sidebar", app.FlagChange{State: &rollout, People: &[]ids.ID{me, me}}, 1)
	if err != nil || f.Version != 2 || len(f.People) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	if !s.Enabled(person(me), "new_sidebar") || s.Enabled(person(ids.New()), "new_sidebar") {
		t.Error("the rollout reaches the wrong people")
	}
	if _, flags, err := s.ReadInstance(person(me)); err != nil || !flags["new_sidebar"] || !flags["old"] {
		t.Errorf("%v, %v", flags, err)
	}
	b.above.group = ids.New()
	if _, err := s.UpdateFlag(ctx, "new_sidebar", app.FlagChange{Groups: &[]ids.ID{b.above.group}}, 2); err != nil {
		t.Fatal(err)
	}
	if !s.Enabled(person(ids.New()), "new_sidebar") {
		t.Error("a member of the group is left out")
	}
	b.above.fault = errors.New("away")
	if s.Enabled(person(ids.New()), "new_sidebar") {
		t.Error("what cannot be evaluated does not have its default")
	}
	for name, c := range map[string]struct {
		key     string
		change  app.FlagChange
		version int64
		code    errs.Code
	}{
		"old version":   {"new_sidebar", app.FlagChange{}, 2, errs.CodeVersionConflict},
		"unknown flag":  {"dance", app.FlagChange{}, 1, errs.CodeNotFound},
		"unknown group": {"new_sidebar", app.FlagChange{Groups: &[]ids.ID{ids.New()}}, 3, errs.CodeValidationFailed},
	} {
		if _, err := s.UpdateFlag(ctx, c.key, c.change, c.version); !errs.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := s.ListFlags(ctx)
	if err != nil || len(list) != 2 || list[0].Flag.Key != "new_sidebar" || list[1].State != domain.FlagOn {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestBrandingChangesTogetherOrNotAtAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, ctx := b.migrated(t), owner(time.Time{})
	text := func(v string) *string { return &v }
	out, err := s.UpdateBranding(ctx, map[string]*string{"product_name": text("Harbour"), "accent": text("loch")}, 1)
	if err != nil || out.ProductName != "Harbour" || out.Accent != "loch" || out.Version != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	if d, err := s.ReadDiscovery(context.Background()); err != nil || d.Public.Branding.ProductName != "Harbour" {
		t.Errorf("%+v, %v", d.Public.Branding, err)
	}
	_, err = s.UpdateBranding(ctx, map[string]*string{"product_name": text("Quay"), "support_url": text("http://x")}, 2)
	if !errs.Is(err, errs.CodeValidationFailed) {
		t.Errorf("an address without TLS: %v", err)
	}
	if _, err := s.UpdateBranding(ctx, nil, 1); !errs.Is(err, errs.CodeVersionConflict) {
		t.Errorf("an old version: %v", err)
	}
	out, err = s.UpdateBranding(ctx, map[string]*string{"product_name": nil}, 2)
	if err != nil || out.ProductName != "Bothy" || out.Accent != "loch" || out.SupportURL != nil {
		t.Errorf("%+v, %v", out, err)
	}
}
