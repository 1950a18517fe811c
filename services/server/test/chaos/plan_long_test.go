// SPDX-License-Identifier: Apache-2.0

//go:build chaos

package chaos

import "time"

// plan is the long size.
var plan = sizes{
	size: "long", rate: 100, listeners: 6, writers: 6,
	kills: 5, betweenKills: 10 * time.Second, databaseKills: 3, rightsRounds: 20, slowMessages: 3000, agentRounds: 3,
}
