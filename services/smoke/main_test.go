// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryStepIsTriedAndToldUnlessItsBasisIsMissing(t *testing.T) {
	fine := func(context.Context) error { return nil }
	var out bytes.Buffer
	result := play(t.Context(), &out, []step{
		{"works", fine, true},
		{"fails", func(context.Context) error { return errors.New("no <answer>") }, false},
		{"relies on it", func(context.Context) error { var none *story; _ = none.code; return nil }, false},
		{"works, too", fine, true},
		{"is the basis", func(context.Context) error { return errors.New("down") }, true},
		{"is not tried", fine, false},
	})
	if result.Tests != 5 || result.Failures != 3 || strings.Contains(out.String(), "is not tried") {
		t.Errorf("%d tests, %d failures:\n%s", result.Tests, result.Failures, out.String())
	}
	name := filepath.Join(t.TempDir(), "smoke.xml")
	if err := result.write(name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var back report
	if err := xml.Unmarshal(text, &back); err != nil || len(back.Cases) != 5 || back.Cases[1].Failure.Message != "no <answer>" || back.Cases[0].Failure != nil {
		t.Errorf("report %+v, %v", back, err)
	}
}

func TestAMissingProgramIsAWrongCall(t *testing.T) {
	for _, args := range [][]string{{}, {"-nonsense"}, {"-binary", filepath.Join(t.TempDir(), "bothy")}} {
		var problems bytes.Buffer
		if code := run(t.Context(), args, &problems, &problems); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
