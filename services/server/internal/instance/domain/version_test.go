// SPDX-License-Identifier: Apache-2.0

package domain

import "testing"

func TestASchemaSaysWhichServersItAccepts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		needed, running string
		accepted        bool
	}{
		{"0.1.0", "0.1.0", true},
		{"0.1.0", "0.1.1", true},
		{"0.9.0", "0.10.0", true},
		{"0.10.0", "0.9.9", false},
		{"1.0.0", "0.99.99", false},
		{"1.2.3", "1.2.2", false},
		{"1.2.0", "1.2.0-rc.1", true},
		{"1.2.0", "1.2.0+commit", true},
		{"", "1.0.0", false},
		{"1.0.0", "next", false},
		{"1.0", "1.0.0", false},
		{"1.-1.0", "1.0.0", false},
	} {
		if got := ServerAccepted(tc.needed, tc.running); got != tc.accepted {
			t.Errorf("needed %q, running %q: accepted %v", tc.needed, tc.running, got)
		}
	}
}
