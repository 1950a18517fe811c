// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/tools/internal/register"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestExampleMatchesGenerator holds the small register of the documentation and what the generator makes of it.
func TestExampleMatchesGenerator(t *testing.T) {
	data, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reg, err := register.Parse(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/example.go-arch-lint.yml", archLint(reg))
	golden(t, "testdata/example.md", markdown(reg))
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s is not what the generator writes now (go test -update rewrites it):\n%s", path, got)
	}
}

func TestRunWritesNothingForARefusedRegister(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "architecture"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nsurprise: true\n"
	if err := os.WriteFile(filepath.Join(dir, "architecture/modules.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run([]string{"-module", dir})
	if err == nil || !strings.Contains(err.Error(), `no field "surprise"`) {
		t.Errorf("got error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".go-arch-lint.yml")); !os.IsNotExist(err) {
		t.Errorf("a configuration was written: %v", err)
	}
}

func TestRunIsRepeatable(t *testing.T) {
	render := func() string {
		reg, err := register.Load("../..")
		if err != nil {
			t.Fatal(err)
		}
		return string(archLint(reg)) + string(markdown(reg))
	}
	if first, second := render(), render(); first != second {
		t.Error("two runs over one register differ")
	}
}
