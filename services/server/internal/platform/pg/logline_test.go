// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"log/slog"
	"strings"
	"testing"
)

func TestLogLinesKeepTheirLevel(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		level slog.Level
		text  string
	}{
		"2026-03-29 01:30:00.000 UTC [12] LOG:  database system is ready":      {slog.LevelInfo, "database system is ready"},
		"2026-03-29 01:30:00.000 UTC [12] PANIC:  could not write":             {slog.LevelError, "could not write"},
		"2026-03-29 01:30:00.000 UTC [12] ERROR:  relation LOG:  is not there": {slog.LevelWarn, "relation LOG:  is not there"},
		"\tat character 12": {slog.LevelInfo, "\tat character 12"},
		"":                  {slog.LevelInfo, ""},
	} {
		if level, text := mapLine(line); level != want.level || text != want.text {
			t.Errorf("%q gave %v %q", line, level, text)
		}
	}
}

func FuzzLogLine(f *testing.F) {
	f.Add("2026-03-29 01:30:00.000 UTC [12] LOG:  text")
	f.Fuzz(func(t *testing.T, line string) {
		if _, text := mapLine(line); !strings.HasSuffix(line, text) {
			t.Errorf("%q gave %q, which is not its end", line, text)
		}
	})
}
