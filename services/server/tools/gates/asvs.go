// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

const (
	asvsTable  = "docs/security/asvs.md"
	asvsPoints = "docs/security/asvs-points.txt"
)

var (
	asvsRow       = regexp.MustCompile(`^\|\s*(\d+\.\d+\.\d+)\s*\|`)
	asvsReference = regexp.MustCompile("`([^`\\s]+?\\.[a-zA-Z0-9]+)(?:#([^`]+))?`")
)

// runASVS holds the table of security points against the list of points and the repository: every point has one row,
// and a row either says why the point does not apply or is open, or names files and tests that exist.
func runASVS(_ context.Context, p project, _ []string) ([]string, error) {
	points, err := os.ReadFile(p.path(asvsPoints))
	if err != nil {
		return nil, fmt.Errorf("read the list of points: %w", err)
	}
	table, err := os.ReadFile(p.path(asvsTable))
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	rows, violations := map[string]int{}, []string(nil)
	for n, line := range strings.Split(string(table), "\n") {
		id := asvsRow.FindStringSubmatch(line)
		if id == nil {
			continue
		}
		if at := rows[id[1]]; at > 0 {
			violations = append(violations, fmt.Sprintf("%s:%d: point %s stands at line %d already", asvsTable, n+1, id[1], at))
		}
		rows[id[1]] = n + 1
		violations = append(violations, asvsFaults(p, id[1], line, n+1)...)
	}
	wanted := map[string]bool{}
	for _, id := range strings.Fields(string(points)) {
		wanted[id] = true
		if rows[id] == 0 {
			violations = append(violations, fmt.Sprintf("%s: point %s has no row", asvsTable, id))
		}
	}
	for id, line := range rows {
		if !wanted[id] {
			violations = append(violations, fmt.Sprintf("%s:%d: there is no point %s of level 1 or 2", asvsTable, line, id))
		}
	}
	sort.Strings(violations)
	return violations, nil
}

// asvsFaults checks the last cell of a row.
func asvsFaults(p project, id, line string, number int) []string {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	met := strings.TrimSpace(cells[len(cells)-1])
	for _, excuse := range []string{"Does not apply: ", "Open: "} {
		if reason, ok := strings.CutPrefix(met, excuse); ok && len(reason) > 10 {
			return nil
		}
	}
	references := asvsReference.FindAllStringSubmatch(met, -1)
	if len(references) == 0 {
		return []string{fmt.Sprintf("%s:%d: point %s names neither a test nor a place that meets it", asvsTable, number, id)}
	}
	var out []string
	for _, r := range references {
		if fault := resolve(p, r[1], r[2]); fault != "" {
			out = append(out, fmt.Sprintf("%s:%d: point %s: %s", asvsTable, number, id, fault))
		}
	}
	return out
}

// resolve looks for a file and, in it, for a name: of a function in Go, of a heading in Markdown, of any text elsewhere.
func resolve(p project, file, name string) string {
	text, err := os.ReadFile(p.path(file))
	if err != nil {
		// Most tests are the server's; its folder need not be named.
		text, err = os.ReadFile(filepath.Join(p.server(), filepath.FromSlash(file)))
	}
	switch {
	case err != nil:
		return "there is no file " + file
	case name == "":
		return ""
	}
	found := strings.Contains(string(text), name)
	switch {
	case strings.HasSuffix(file, ".go"):
		found = regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + regexp.QuoteMeta(name) + `\b`).Match(text)
	case strings.HasSuffix(file, ".md"):
		found = regexp.MustCompile(`(?m)^#+ .*` + regexp.QuoteMeta(name)).Match(text)
	}
	if !found {
		return fmt.Sprintf("%s has no %s", file, name)
	}
	return ""
}
