// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/OWNER/bothy/services/server/internal/kernel/clock/clocktest"
)

const marker = "correct-horse-battery"

func setup(t *testing.T) (*Provider, string, *clocktest.Fake, *bytes.Buffer) {
	t.Helper()
	dir, clk, log := t.TempDir(), clocktest.New(time.Unix(0, 0)), &bytes.Buffer{}
	p, err := New(Config{Dir: dir, WatchInterval: time.Minute}, slog.New(slog.NewTextHandler(log, nil)), clk)
	if err != nil {
		t.Fatal(err)
	}
	return p, dir, clk, log
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestResolveReadsFilesAndTheEnvironment(t *testing.T) {
	p, dir, _, _ := setup(t)
	put(t, filepath.Join(dir, "a"), marker+"\n", 0o600)
	put(t, filepath.Join(dir, "b"), marker+"\n\n", 0o640)
	t.Setenv("BOTHY_SECRET_X", marker)
	for ref, want := range map[string]string{
		"file:" + dir + "/a":    marker,
		"file:<secrets.dir>/a":  marker,
		"file:<secrets.dir>/b":  marker + "\n",
		"env:BOTHY_SECRET_X":    marker,
		"":                      "",
		"file:<secrets.dir>//a": "!secret_ref_invalid",
	} {
		v, err := p.Resolve("k_ref", ref)
		got := v.Reveal()
		if err != nil {
			got = "!" + string(CodeOf(err))
		}
		if got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

func TestEachFaultHasItsCode(t *testing.T) {
	p, dir, _, _ := setup(t)
	put(t, filepath.Join(dir, "others"), marker, 0o604)
	put(t, filepath.Join(dir, "group"), marker, 0o620)
	put(t, filepath.Join(dir, "large"), strings.Repeat(marker, 4000), 0o600)
	put(t, filepath.Join(dir, "empty"), "\n", 0o600)
	for ref, want := range map[string]Code{
		"file:relative":              CodeRefInvalid,
		"file:/a/../b":               CodeRefInvalid,
		"file:<secrets.dir>/../x":    CodeRefInvalid,
		"file:<other>/x":             CodeRefInvalid,
		"env:1A":                     CodeRefInvalid,
		marker:                       CodeRefInvalid,
		"http://x":                   CodeRefInvalid,
		"file:<secrets.dir>/missing": CodeNotFound,
		"env:BOTHY_SECRET_MISSING":   CodeNotFound,
		"file:<secrets.dir>/others":  CodePermissions,
		"file:<secrets.dir>/group":   CodePermissions,
		"file:" + dir:                CodeUnreadable,
		"file:<secrets.dir>/large":   CodeTooLarge,
		"file:<secrets.dir>/empty":   CodeEmpty,
	} {
		_, err := p.Resolve("k_ref", ref)
		var e *Error
		if !errors.As(err, &e) || e.Code != want || e.Key != "k_ref" {
			t.Errorf("%s: %v, want %s", ref, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), marker) || strings.Contains(err.Error(), dir)) {
			t.Errorf("the error tells more than key and code: %v", err)
		}
	}
}

func TestAValuePrintsAsAFixedWord(t *testing.T) {
	v := NewValue(marker)
	text, err := json.Marshal(map[string]any{"v": v})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	all := fmt.Sprintf("%s %v %+v %#v %q", v, v, v, v, v) + string(text) + log.String()
	if strings.Contains(all, marker) {
		t.Errorf("leaked: %s", all)
	}
}

func TestRotationSwapsAndAnUnusableValueKeepsTheOld(t *testing.T) {
	p, dir, clk, log := setup(t)
	path := filepath.Join(dir, "k")
	put(t, path, "one", 0o600)
	values := make(chan string, 8)
	if err := p.Watch("k_ref", "file:<secrets.dir>/k", func(v Value) error {
		if v.Reveal() == "bad-"+marker {
			return errors.New("not usable: " + v.Reveal())
		}
		values <- v.Reveal()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var failures []string
	p.OnFailure(func(key string) { failures = append(failures, key) })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	tick := func() {
		clk.WaitForTimers(1)
		clk.Advance(time.Minute)
		clk.WaitForTimers(1)
	}
	tick()
	put(t, path, "bad-"+marker, 0o600)
	tick()
	put(t, path, "three", 0o600)
	tick()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	close(values)
	var got []string
	for v := range values {
		got = append(got, v)
	}
	if strings.Join(failures, " ") != "k_ref" {
		t.Errorf("failures %v", failures)
	}
	if strings.Join(got, " ") != "one three" {
		t.Errorf("values %v", got)
	}
	if strings.Contains(log.String(), marker) || !strings.Contains(log.String(), "key=k_ref") {
		t.Errorf("log: %s", log)
	}
}

func TestAKeyFolderIsPrivate(t *testing.T) {
	dir := t.TempDir()
	good, open, link := filepath.Join(dir, "good"), filepath.Join(dir, "open"), filepath.Join(dir, "link")
	for path, mode := range map[string]os.FileMode{good: 0o700, open: 0o750} {
		if err := os.Mkdir(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	if err := CheckDir("k", good); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]Code{open: CodePermissions, link: CodePermissions, dir + "/none": CodeNotFound} {
		if err := CheckDir("k", path); CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func FuzzCheckRef(f *testing.F) {
	for _, s := range []string{"file:/a", "env:A", "file:<secrets.dir>/a", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		if err := CheckRef(ref); err != nil && len(ref) > 12 && strings.Contains(err.Error(), ref) {
			t.Errorf("echoed %q", ref)
		}
	})
}
