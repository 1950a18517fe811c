// SPDX-License-Identifier: Apache-2.0

package filesink

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/audit/app"
)

func TestACheckpointIsWrittenOnceAndForGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, ctx := New(dir), context.Background()
	for range 2 { // A repetition finds what lies there.
		if err := s.Deposit(ctx, 7, "a.b.c"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Deposit(ctx, 7, "x.y.z"); !errors.Is(err, app.ErrSinkConflict) {
		t.Errorf("another checkpoint of the number: %v", err)
	}
	info, err := os.Stat(filepath.Join(dir, "7.jws"))
	if err != nil || info.Mode().Perm() != fileMode {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "9.jws"), []byte("d.e"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Deposit(ctx, 9, "d.e.f"); err != nil {
		t.Errorf("half a file of a crash: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if want := map[int64]string{7: "a.b.c", 9: "d.e.f"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAFolderThatIsNotThereIsNotMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "volume")
	if err := New(dir).Deposit(context.Background(), 1, "a.b.c"); err == nil {
		t.Error("deposited into nothing")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "", "none": "", "file:/var/lib/checkpoints": "/var/lib/checkpoints", "file:/a/../b": "/b"} {
		if got, err := Parse(value); err != nil || got != want {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
	for _, value := range []string{"file:", "file:relative", "https://example.org", "/var/lib"} {
		if _, err := Parse(value); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
}
