// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestASVSGate(t *testing.T) {
	const head = "# Points\n\n| Point | What | Met by |\n| --- | --- | --- |\n"
	const good = "| 1.1.1 | input is decoded once | `services/server/x_test.go#TestDecode`, `docs/a.md#Forms` |\n"
	for name, c := range map[string]struct {
		table, want string
	}{
		"holds":          {head + good + "| 1.2.3 | mail | Does not apply: the server sends no mail |\n", ""},
		"open":           {head + good + "| 1.2.3 | mail | Open: comes with notifications by mail |\n", ""},
		"missing row":    {head + good, "docs/security/asvs.md: point 1.2.3 has no row"},
		"twice":          {head + good + "| 1.2.3 | a | Open: not yet built here |\n| 1.2.3 | a | Open: not yet built here |\n", "docs/security/asvs.md:7: point 1.2.3 stands at line 6 already"},
		"unknown point":  {head + good + "| 1.2.3 | a | Open: not yet built here |\n| 9.9.9 | a | Open: not yet built here |\n", "docs/security/asvs.md:7: there is no point 9.9.9 of level 1 or 2"},
		"no reason":      {head + good + "| 1.2.3 | a | Does not apply: |\n", "docs/security/asvs.md:6: point 1.2.3 names neither a test nor a place that meets it"},
		"no place":       {head + good + "| 1.2.3 | a | of course |\n", "docs/security/asvs.md:6: point 1.2.3 names neither a test nor a place that meets it"},
		"no such file":   {head + good + "| 1.2.3 | a | `services/server/y_test.go#TestGone` |\n", "docs/security/asvs.md:6: point 1.2.3: there is no file services/server/y_test.go"},
		"no such test":   {head + good + "| 1.2.3 | a | `services/server/x_test.go#TestDec` |\n", "docs/security/asvs.md:6: point 1.2.3: services/server/x_test.go has no TestDec"},
		"no such header": {head + good + "| 1.2.3 | a | `docs/a.md#Nothing` |\n", "docs/security/asvs.md:6: point 1.2.3: docs/a.md has no Nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			p := repository(t, map[string]string{
				"docs/security/asvs.md": c.table, "docs/security/asvs-points.txt": "1.1.1\n1.2.3\n",
				"services/server/x_test.go": "// SPDX-License-Identifier: Apache-2.0\n\npackage x\n\nfunc TestDecode(t *testing.T) {}\n",
				"docs/a.md":                 "# A\n\n## Forms\n\nNothing here.\n",
			})
			got, err := runASVS(t.Context(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
