// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of the module agents: keeping agents, hearing from their
// adapters and remembering how far each has taken its events over.
package app

import "time"

// Config is how the presence of agents is judged.
type Config struct {
	PresenceTimeout    time.Duration `key:"agent.presence_timeout" default:"90s" min:"5s" max:"1h" doc:"After this time without a report an agent counts as offline. It must be longer than sync.heartbeat_interval."`
	MismatchAlertAfter time.Duration `key:"billing.mismatch_alert_after" default:"10m" min:"1m" max:"24h" doc:"A warning appears when the adapter of an agent has reported another billing mode than the configured one for this time."`
	PersistInterval    time.Duration `key:"agent.heartbeat_persist_interval" default:"30s" min:"1s" max:"10m" doc:"Reports of an agent are written to the database at most this often."`
}
