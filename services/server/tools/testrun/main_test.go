// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const report = `<?xml version="1.0"?>
<testsuites><testsuite name="a"><testcase name="1"/><testcase name="2"><failure message="x">y</failure></testcase>
<testsuite name="inner"><testcase name="3"><skipped/></testcase><testcase name="4"/></testsuite></testsuite></testsuites>`

func TestSteps(t *testing.T) {
	errStep := errors.New("exit status 1")
	cases := map[string]struct {
		steps   map[string]error
		order   []string
		reports map[string]string
		failed  int
		last    string
		says    string
	}{
		"all green":                 {nil, []string{"setup", "gates"}, nil, 0, "2 passed, 0 failed", ""},
		"cases are counted":         {map[string]error{"test-go": errStep}, []string{"test-go"}, map[string]string{"test-go": report}, 1, "2 passed, 1 failed", "1 skipped"},
		"red step with green cases": {map[string]error{"a": errStep}, []string{"a"}, map[string]string{"a": `<testsuites><testsuite><testcase/></testsuite></testsuites>`}, 1, "1 passed, 1 failed", ""},
		"goes on after a failure":   {map[string]error{"gates": errStep}, []string{"gates", "web"}, nil, 1, "1 passed, 1 failed", ""},
		"stops without its setup":   {map[string]error{"setup": errStep}, []string{"setup", "web"}, nil, 1, "0 passed, 1 failed", "did not run: web"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			r := runner{results: filepath.Join(t.TempDir(), "r"), vital: "setup", out: &out, make: func(_ context.Context, target, dir string) error {
				if text, ok := c.reports[target]; ok {
					if err := os.WriteFile(filepath.Join(dir, "x.xml"), []byte(text), 0o644); err != nil {
						t.Error(err)
					}
				}
				return c.steps[target]
			}}
			failed, err := r.run(context.Background(), c.order)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if failed != c.failed || lines[len(lines)-1] != c.last || !strings.Contains(out.String(), c.says) {
				t.Errorf("%d failures and:\n%s", failed, out.String())
			}
		})
	}
}

func TestAnUnreadableReportIsAnError(t *testing.T) {
	r := runner{results: t.TempDir(), out: &bytes.Buffer{}, make: func(_ context.Context, _, dir string) error {
		return os.WriteFile(filepath.Join(dir, "x.xml"), []byte("<testsuites>"), 0o644)
	}}
	if _, err := r.run(context.Background(), []string{"a"}); err == nil {
		t.Error("a cut report counted as a pass")
	}
}
