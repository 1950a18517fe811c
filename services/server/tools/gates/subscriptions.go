// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// subscriptionList is written by the test of internal/wire from the sealed registry, so it says what is really wired.
// A line reads "event publisher subscriber function", the packages below internal/.
const subscriptionList = "services/server/internal/wire/testdata/subscriptions.txt"

// runSubscriptions checks that in-transaction events flow upwards only: a module subscribes to modules it may use, or
// to the kernel. The other direction would be a dependency that no import shows.
func runSubscriptions(_ context.Context, p project, _ []string) ([]string, error) {
	reg, err := p.register()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(p.path(subscriptionList))
	if err != nil {
		return nil, err
	}
	var bad []string
	for n, line := range strings.Split(string(data), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		at := fmt.Sprintf("%s:%d", subscriptionList, n+1)
		if len(fields) != 4 {
			bad = append(bad, at+": not \"event publisher subscriber function\"")
			continue
		}
		event, publisher, subscriber := fields[0], firstElement(fields[1]), firstElement(fields[2])
		m, known := reg.Module(subscriber)
		switch {
		case !known:
			bad = append(bad, fmt.Sprintf("%s: the subscriber %s is in no module", at, fields[2]))
		case publisher == "kernel" || publisher == subscriber || slices.Contains(m.DependsOn, publisher):
		default:
			bad = append(bad, fmt.Sprintf("%s: %s subscribes to %s of %s, which it may not use", at, subscriber, event, publisher))
		}
	}
	return bad, nil
}
