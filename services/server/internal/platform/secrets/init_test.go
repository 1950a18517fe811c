// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func outcomes(results []Result) map[string]Outcome {
	out := map[string]Outcome{}
	for _, r := range results {
		out[r.Name] = r.Outcome
	}
	return out
}

func TestInitMakesWhatIsMissingAndThenNothing(t *testing.T) {
	target := filepath.Join(t.TempDir(), "secrets")
	o := InitOptions{Target: target, Owners: []Owner{{Service: "server", UID: os.Geteuid(), GID: os.Getegid(), Secrets: []string{"database_app_password", "tls_key"}}}}
	first, err := Init(o)
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(first)
	if got["database_app_password"] != OutcomeCreated || got["tls_key"] != OutcomeSkipped || len(got) != len(Register()) {
		t.Errorf("%v", got)
	}
	store := filepath.Join(target, StoreFolder)
	if err := CheckDir("store", store); err != nil {
		t.Error(err)
	}
	before, err := os.ReadFile(filepath.Join(store, "database_app_password"))
	if err != nil || len(strings.TrimSpace(string(before))) != 43 {
		t.Fatalf("%q %v", before, err)
	}
	copied, err := os.ReadFile(filepath.Join(target, "server", "database_app_password"))
	if err != nil || string(copied) != string(before) {
		t.Errorf("copy %q %v", copied, err)
	}
	if info, err := os.Stat(filepath.Join(target, "server", "database_app_password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	second, err := Init(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, outcome := range outcomes(second) {
		if outcome != OutcomeKept && outcome != OutcomeSkipped {
			t.Errorf("%s: %s at the second run", name, outcome)
		}
	}
	if after, _ := os.ReadFile(filepath.Join(store, "database_app_password")); string(after) != string(before) {
		t.Error("changed")
	}
	if strings.Contains(fmt.Sprint(first), strings.TrimSpace(string(before))) {
		t.Error("the report holds a value")
	}
	leftovers, _ := filepath.Glob(filepath.Join(store, ".new-*"))
	if len(leftovers) > 0 {
		t.Errorf("left behind: %v", leftovers)
	}
}

func TestASourceIsAdoptedOnlyWhenAskedFor(t *testing.T) {
	target, source := filepath.Join(t.TempDir(), "secrets"), t.TempDir()
	put(t, filepath.Join(source, "tls_key"), "given", 0o600)
	results, err := Init(InitOptions{Target: target, Source: source})
	if err != nil || outcomes(results)["tls_key"] != OutcomeAdopted {
		t.Fatalf("%v %v", results, err)
	}
	put(t, filepath.Join(source, "tls_key"), marker, 0o600)
	if _, err := Init(InitOptions{Target: target, Source: source}); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "tls_key") || strings.Contains(err.Error(), marker) {
		t.Fatalf("%v", err)
	}
	if _, err := Init(InitOptions{Target: target, Source: source, AdoptSource: true}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"tls_key": marker, "tls_key.previous": "given"} {
		if got, err := os.ReadFile(filepath.Join(target, StoreFolder, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func TestALinkIsNotCopied(t *testing.T) {
	target, source := filepath.Join(t.TempDir(), "secrets"), t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(source, "tls_key")); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(InitOptions{Target: target, Source: source}); err == nil {
		t.Error("copied")
	}
}
