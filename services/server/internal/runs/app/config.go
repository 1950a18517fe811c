// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of runs: which message sets which agent to work, what an
// agent is handed and reports, and how a run ends whatever anybody forgets.
//
// Locks are taken in one order everywhere: the row of the thread, then the row of the run.
// A use case that changes the state of a run holds both; progress holds only the run.
package app

import "time"

// Config is how runs are limited. Sizes are in bytes.
type Config struct {
	CancelGrace       time.Duration `key:"agent.cancel_grace" default:"30s" min:"1s" max:"10m" doc:"An agent has this long to end a run that was asked to stop."`
	QueuedMaxAge      time.Duration `key:"run.queued_max_age" default:"24h" min:"1m" max:"720h" doc:"A run that no agent took up ends after this time. It must be shorter than sync.event_retention."`
	StallAfter        time.Duration `key:"run.stall_after" default:"5m" min:"10s" max:"24h" doc:"After this time without progress a run is shown as stalled."`
	InterruptGrace    time.Duration `key:"run.interrupt_grace" default:"2m" min:"0s" max:"24h" doc:"A run of an agent that went away ends this long after the agent counts as offline."`
	LateFinishWindow  time.Duration `key:"run.late_finish_window" default:"1h" min:"0s" max:"24h" doc:"The answer of a run that was given up is still taken for this long."`
	TokenTTL          time.Duration `key:"run.token_ttl" default:"15m" min:"2m" max:"24h" doc:"Life of an invocation token."`
	EditTriggerWindow time.Duration `key:"run.edit_trigger_window" default:"15m" min:"0s" max:"24h" doc:"An edit that adds a mention sets an agent to work only this long after the message was posted."`
	MaxChainDepth     int           `key:"run.max_chain_depth" default:"3" min:"0" max:"8" doc:"How many agents may set each other to work in a row."`
	MaxChildren       int           `key:"run.max_children" default:"8" min:"0" max:"100" doc:"How many runs one run may begin."`
	MaxChainRuns      int           `key:"run.max_chain_runs" default:"20" min:"1" max:"1000" doc:"How many runs one order of a person may lead to."`
	MaxAgents         int           `key:"run.max_agents_per_message" default:"3" min:"1" max:"20" doc:"How many agents one message sets to work."`
	MaxQueued         int           `key:"run.max_queued_per_agent" default:"50" min:"1" max:"10000" doc:"How many runs may wait for one agent."`
	ContextMessages   int           `key:"run.context_max_messages" default:"50" min:"1" max:"200" doc:"Messages in one page of the context of a run."`
	ContextBytes      int           `key:"run.context_max_bytes" default:"262144" min:"4096" max:"4194304" doc:"Text in one page of the context of a run, in bytes."`
	PatchBytes        int           `key:"run.patch_max_bytes" default:"65536" min:"1024" max:"1048576" doc:"Size of one update of a run, in bytes. It must be below gateway.max_frame_bytes."`
	DocumentBytes     int           `key:"run.document_max_bytes" default:"262144" min:"4096" max:"4194304" doc:"Size of plan, artifacts and usage of a run together, in bytes."`
	OutputBytes       int           `key:"run.output_max_bytes" default:"262144" min:"4096" max:"4194304" doc:"Size of the streamed text of a run, in bytes."`
	MaxSteps          int           `key:"run.max_steps" default:"1000" min:"1" max:"10000" doc:"How many steps a run reports."`

	// Values of other owners that the wiring fills in: agent.presence_timeout,
	// agent.heartbeat_persist_interval, message.max_content_bytes and server.public_url.
	PresenceTimeout time.Duration
	PersistInterval time.Duration
	MessageBytes    int
	PublicURL       string
}
