// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingEntriesFailByName(t *testing.T) {
	dir := t.TempDir()
	if err := run(dir, &bytes.Buffer{}); err == nil {
		t.Error("an empty folder passes")
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("registered night.watch\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := run(dir, &out)
	if err == nil || !strings.Contains(out.String(), "never seen: job night.watch\n") {
		t.Errorf("%v\n%s", err, &out)
	}
}
