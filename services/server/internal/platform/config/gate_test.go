// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/OWNER/bothy/services/server/internal/platform/config"
	"github.com/OWNER/bothy/services/server/internal/platform/httpserver"
	"github.com/OWNER/bothy/services/server/internal/platform/jobs"
	"github.com/OWNER/bothy/services/server/internal/platform/lifecycle"
	"github.com/OWNER/bothy/services/server/internal/platform/otel"
	"github.com/OWNER/bothy/services/server/internal/platform/pg"
	"github.com/OWNER/bothy/services/server/internal/platform/ratelimit"
	"github.com/OWNER/bothy/services/server/internal/platform/secrets"
)

// The keys of the platform packages stand in the table of the specification with the same
// defaults.
func TestThePlatformsKeysAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../../docs/spec/16-operations.md")
	if err != nil {
		t.Skip("the specification is not beside the source")
	}
	table := config.ParseTable(string(text))
	if len(table) < 200 {
		t.Fatalf("only %d keys found in the table", len(table))
	}
	s := config.NewSchema()
	limits, database := ratelimit.Defaults(), pg.Default()
	s.Bind("httpserver", &httpserver.Config{})
	s.Bind("lifecycle", &lifecycle.Config{})
	s.Bind("secrets", &secrets.Config{})
	s.Bind("otel", &otel.Config{})
	s.Bind("log", &otel.LogConfig{})
	s.Bind("jobs", &jobs.Config{})
	s.Bind("ratelimit", &limits)
	s.Bind("pg", &database)
	if d := s.Differences(table); len(d) > 0 {
		t.Error(strings.Join(d, "\n"))
	}
	if planned := s.Planned(table); len(planned) == 0 || len(planned)+len(s.Keys()) < len(table) {
		t.Errorf("%d planned, %d bound, %d documented", len(planned), len(s.Keys()), len(table))
	}
}

func TestDifferencesAreNamed(t *testing.T) {
	table := config.ParseTable("| Keys | Type | Default | Range | Owner |\n| `a.b`, `a.c` | duration | 1m; 2m | | x |\n| `a.d` | list | empty | | x |\n")
	s := config.NewSchema()
	s.Bind("x", &struct {
		B string `key:"a.b" default:"1m"`
		C string `key:"a.c" default:"3m"`
		E string `key:"a.e"`
	}{})
	got := strings.Join(s.Differences(table), "; ")
	if got != `a.c: default "3m", the table says "2m"; a.e: is not in the table` {
		t.Error(got)
	}
	if planned := s.Planned(table); len(planned) != 1 || planned[0] != "a.d" {
		t.Error(planned)
	}
}
