// SPDX-License-Identifier: Apache-2.0

package report

// Target is a promise about a figure.
type Target struct {
	Name string `json:"name"`
	// Limit is the value that must be held: at most, or with AtLeast at least.
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least,omitempty"`
	Unit    string  `json:"unit"`
	// Meaning says what somebody notices.
	Meaning string `json:"meaning"`
}

// The names of the figures.
const (
	CommitRatio      = "event_commit_ratio"
	MessageCreateP99 = "message_create_p99"
	MessagesClosed   = "messages_closed_loop"
	FanoutP99        = "fanout_p99"
	StartupReady     = "startup_ready"
	IdleMemory       = "idle_memory"
)

// Targets is the table of what the server must hold on a machine of two cores that also carries the database and the
// load generator.
var Targets = []Target{
	{CommitRatio, 0.6, true, "", "commits of message.create through the use case, per commit of the same SQL without the counter, in one run"},
	{MessageCreateP99, 25, false, "ms", "99 of 100 messages at 200 a second over HTTP are answered within this time"},
	{MessagesClosed, 1000, true, "/s", "messages that 16 writers get through over HTTP when each sends as soon as it can"},
	{FanoutP99, 15, false, "ms", "99 of 100 messages at 50 a second arrive at each of 100 sockets within this time"},
	{StartupReady, 500, false, "ms", "from the start of the process to the first answer that says ready, with the database up"},
	{IdleMemory, 80, false, "MiB", "memory of the server process 30 seconds after its start"},
}

func target(name string) (Target, bool) {
	for _, t := range Targets {
		if t.Name == name {
			return t, true
		}
	}
	return Target{}, false
}
