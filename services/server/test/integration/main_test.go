// SPDX-License-Identifier: Apache-2.0

// Package integration drives every operation, op, event and job of the contract through the
// public API of a real server, in success and in each of its failures.
package integration

import (
	"os"
	"testing"

	"github.com/OWNER/bothy/services/server/test/harness"
)

var shared = harness.NewShared()

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// refusal is a call that must fail in one way.
type refusal struct {
	name string
	by   *harness.Client
	op   string
	with []any
	code string
	// reason is compared when it is given.
	reason string
}

func with(parts ...any) []any { return parts }

func refuse(t *testing.T, cases ...refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.op+"/"+c.code+"/"+c.name, func(t *testing.T) {
			r := c.by.Call(t, c.op, c.with...)
			if c.reason == "" {
				r.Refused(t, c.code)
				return
			}
			r.Refused(t, c.code, c.reason)
		})
	}
}

const (
	stale    = harness.IfMatch(99)
	badQuery = "\u00e4"
)
