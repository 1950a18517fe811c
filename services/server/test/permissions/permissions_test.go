// SPDX-License-Identifier: Apache-2.0

package permissions_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/test/permissions"
)

// The model would prove nothing if it used what it is compared with.
func TestTheModelKnowsNothingOfProduction(t *testing.T) {
	allowed := []string{"/internal/kernel/ids", "/internal/kernel/authorize"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, raw, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range f.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			_, inside, ours := strings.Cut(path, "services/server")
			if ours && !slices.Contains(allowed, inside) && inside != "/test/permissions" {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}

func draw(t *rapid.T) (*permissions.World, []ids.ID) {
	w := &permissions.World{Now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	for range 2 {
		w.Spaces = append(w.Spaces, &permissions.Space{ID: ids.New()})
	}
	for i := range 4 {
		w.Channels = append(w.Channels, &permissions.Channel{ID: ids.New(), Space: w.Spaces[i%2].ID, Inherits: i < 2})
	}
	var who []ids.ID
	for i := range 3 {
		p := &permissions.Principal{ID: ids.New(), Kind: "person", Active: true, Guest: i == 2}
		w.Principals = append(w.Principals, p)
		who = append(who, p.ID)
	}
	group := &permissions.Group{ID: ids.New()}
	w.Groups = []*permissions.Group{group, {ID: ids.New(), Everyone: true}}
	w.Memberships = []*permissions.Membership{{Group: group.ID, Principal: who[1]}}
	for range rapid.IntRange(0, 8).Draw(t, "grants") {
		w.Grants = append(w.Grants, grant(t, w))
	}
	return w, who
}

func grant(t *rapid.T, w *permissions.World) *permissions.Grant {
	g := &permissions.Grant{
		Target: rapid.SampledFrom(w.Targets()).Draw(t, "target"),
		Level:  rapid.SampledFrom([]string{"read", "write", "trigger", "manage"}).Draw(t, "level"),
	}
	g.Capabilities = rapid.SliceOfDistinct(rapid.SampledFrom(permissions.Capabilities), rapid.ID[string]).Draw(t, "capabilities")
	if n := rapid.IntRange(0, 4).Draw(t, "subject"); n < 3 {
		g.Principal = w.Principals[n].ID
	} else {
		g.Group = w.Groups[n-3].ID
	}
	return g
}

// Rights only add: a further grant takes nothing from anybody anywhere, and so removing one gives
// nothing.
func TestAGrantNeverTakesAnythingAway(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, people := draw(t)
		more := *w
		more.Grants = append(slices.Clone(w.Grants), grant(t, w))
		for _, who := range people {
			for _, target := range w.Targets() {
				before, after := w.Held(who, target), more.Held(who, target)
				if !after.AtLeast(before.Level) {
					t.Fatalf("the level on %v fell from %q to %q", target, before.Level, after.Level)
				}
				for _, c := range before.Capabilities {
					if !after.Has(c) {
						t.Fatalf("%s on %v is gone", c, target)
					}
				}
			}
		}
	})
}

// The order of grants, memberships and places never matters.
func TestTheOrderOfGrantsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, people := draw(t)
		other := *w
		other.Grants = rapid.Permutation(w.Grants).Draw(t, "order")
		for _, who := range people {
			for _, target := range w.Targets() {
				a, b := w.Held(who, target), other.Held(who, target)
				if a.Level != b.Level || !slices.Equal(a.Capabilities, b.Capabilities) {
					t.Fatalf("%v: %+v, in another order %+v", target, a, b)
				}
			}
		}
	})
}
