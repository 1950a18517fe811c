// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/api/routes"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatNobodyExercisedIsNamed(t *testing.T) {
	dir := t.TempDir()
	if _, err := Missing(dir); !errors.Is(err, ErrNoBooks) {
		t.Fatalf("without books: %v", err)
	}
	write(t, dir, "a-1.txt", "registered night.watch\nregistered day.watch\njob day.watch\noperation getSpace success\n")
	write(t, dir, "b-2.txt", "operation getSpace not_found\nevent space.created\nop focus success\nevent thread.updated\n")
	missing, err := Missing(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"job night.watch", "operation getThread success", "operation getThread not_found", "op ack success", "event message.created"} {
		if !slices.Contains(missing, line) {
			t.Errorf("not named: %s", line)
		}
	}
	for _, line := range []string{"job day.watch", "operation getSpace success", "operation getSpace not_found", "event space.created", "op focus success", "operation openGateway success"} {
		if slices.Contains(missing, line) {
			t.Errorf("named although it was seen: %s", line)
		}
	}
	if !slices.ContainsFunc(missing, func(line string) bool { return strings.HasPrefix(line, "event thread.updated (it was seen") }) {
		t.Error("an entry that was excused and seen is not named")
	}
	for line := range pending {
		if slices.Contains(missing, line) {
			t.Errorf("an excused entry is named: %s", line)
		}
	}
	if !slices.IsSorted(missing) || len(missing) < len(routes.Operations) {
		t.Errorf("%d lines", len(missing))
	}
}

func TestABookNotesEveryLineOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "book.txt")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	b := &Book{file: f, seen: map[string]bool{}}
	b.Answer("getSpace", 200, "")
	b.Answer("getSpace", 404, "not_found")
	b.Answer("getSpace", 200, "")
	b.Answer("", 404, "not_found")
	b.Op("focus", "")
	b.Event("space.created")
	b.Job("day.watch")
	b.Closed(4010)
	(*Book)(nil).Event("nothing")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	want := "operation getSpace success\noperation getSpace not_found\nop focus success\nevent space.created\njob day.watch\nclose 4010\n"
	if err != nil || string(text) != want {
		t.Errorf("the book: %v\n%s", err, text)
	}
}
