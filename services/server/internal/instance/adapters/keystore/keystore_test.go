// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/instance/app"
	"github.com/OWNER/bothy/services/server/internal/kernel/jose"
)

func TestAKeyIsStoredClosedAndFoundAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, alg := range []jose.Algorithm{jose.ES256, jose.EdDSA} {
		kid, public, err := s.Create(string(alg))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(folder, kid+".pem"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		again, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		key, err := again.Load(kid)
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := key.Public().(interface{ Equal(x any) bool }); ok && !p.Equal(public) {
			t.Error("another key was loaded")
		}
	}
	left, err := filepath.Glob(filepath.Join(folder, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestWhatOthersCouldReadOrReplaceIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	kid, _, err := s.Create("ES256")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, kid+".pem")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(kid); err == nil {
		t.Error("a key that others may read was loaded")
	}
	other, _, err := s.Create("ES256")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, other+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, raw, 0o600), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(kid); err == nil {
		t.Error("a swapped file was loaded")
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); err == nil {
		t.Error("an open folder was accepted")
	}
}

func TestNamesThatAreNoKeysHaveNoFile(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kid := range []string{"", "../../etc/passwd", "x", "0123456789012345678901234567890123456789012"} {
		if _, err := s.Load(kid); !errors.Is(err, app.ErrNoFile) {
			t.Errorf("%q: %v", kid, err)
		}
	}
}
