// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strconv"
	"strings"
)

// ServerAccepted reports whether a server of the version running may work on a schema that
// asks for the version needed. A version that cannot be read is not accepted: the row comes
// from another server, and a guess could write what that one cannot read. A preview of a
// version counts as that version, because it brought the schema that asks for it.
func ServerAccepted(needed, running string) bool {
	want, ok := versionNumbers(needed)
	if !ok {
		return false
	}
	have, ok := versionNumbers(running)
	if !ok {
		return false
	}
	for i, n := range have {
		if n != want[i] {
			return n > want[i]
		}
	}
	return true
}

// versionNumbers reads major, minor and patch of a semantic version.
func versionNumbers(version string) (numbers [3]uint64, ok bool) {
	version, _, _ = strings.Cut(version, "+")
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(version, ".")
	if len(parts) != len(numbers) {
		return numbers, false
	}
	for i, part := range parts {
		var err error
		if numbers[i], err = strconv.ParseUint(part, 10, 32); err != nil {
			return numbers, false
		}
	}
	return numbers, true
}
