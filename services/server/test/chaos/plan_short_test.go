// SPDX-License-Identifier: Apache-2.0

//go:build !chaos

package chaos

import "time"

// plan is the short size: enough to notice that something broke, and quick enough for every test run.
var plan = sizes{
	size: "short", rate: 40, listeners: 3, writers: 4,
	kills: 2, betweenKills: 1200 * time.Millisecond, databaseKills: 1, rightsRounds: 3, slowMessages: 500, agentRounds: 1,
}
