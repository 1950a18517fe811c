// SPDX-License-Identifier: Apache-2.0

// Package app is the gateway without a wire: the hub that fans events out, and the life of
// a connection from hello to its close, on any transport.
package app

import "time"

// Config is how connections are kept. Sizes are bytes.
type Config struct {
	HeartbeatInterval time.Duration `key:"sync.heartbeat_interval" default:"30s" min:"10s" max:"55s" doc:"How often a client shows that it lives. Below the idle timeout of common proxies."`
	HeartbeatGrace    time.Duration `key:"gateway.heartbeat_grace" default:"15s" min:"1s" max:"5m" doc:"A connection is closed after two intervals and this without a heartbeat."`
	IdentifyTimeout   time.Duration `key:"gateway.identify_timeout" default:"10s" min:"1s" max:"2m" doc:"A connection that has not identified itself by then is closed."`
	ReauthLead        time.Duration `key:"gateway.reauth_lead" default:"60s" min:"5s" max:"10m" doc:"How long before its credential ends a client is asked for a new one."`
	ResumeWindow      time.Duration `key:"gateway.resume_window" default:"2m" min:"10s" max:"1h" doc:"How long a lost connection can be taken up again."`
	RestartSpread     time.Duration `key:"gateway.restart_spread" default:"5s" min:"0s" max:"5m" doc:"Clients of a server that goes down return within this time, at random."`
	WriteTimeout      time.Duration `key:"gateway.write_timeout" default:"10s" min:"1s" max:"60s" doc:"A write that takes longer closes the connection as too slow."`
	TypingTTL         time.Duration `key:"sync.typing_ttl" default:"8s" min:"2s" max:"60s" doc:"How long a typing signal is shown without being renewed."`
	CoalesceInterval  time.Duration `key:"sync.run_patch_coalesce_interval" default:"150ms" min:"20ms" max:"2s" doc:"Progress of a run leaves at most this often."`
	AckInterval       time.Duration `key:"agent.ack_persist_interval" default:"1s" min:"100ms" max:"1m" doc:"How often the acknowledged place of an agent is saved."`
	ConsumerWindow    int           `key:"agent.consumer_window" default:"200" min:"1" max:"10000" doc:"Events an agent may hold without having acknowledged them."`
	QueueFrames       int           `key:"sync.outbound_queue_max" default:"256" min:"64" max:"8192" doc:"Frames that may wait for a connection."`
	QueueBytes        int           `key:"gateway.outbound_queue_bytes" type:"bytes" default:"4194304" min:"262144" max:"268435456" doc:"Bytes that may wait for a connection."`
	MaxFrameBytes     int           `key:"gateway.max_frame_bytes" type:"bytes" default:"262144" min:"16384" max:"4194304" doc:"Largest frame a client may send."`
	MaxSessions       int           `key:"gateway.max_sessions" default:"20000" min:"100" max:"1000000" doc:"Lost connections that are remembered for being taken up again."`
	MaxConnections    int           `key:"gateway.max_connections" default:"10000" min:"10" max:"1000000" doc:"Connections of this process."`
	MaxPerPrincipal   int           `key:"gateway.max_connections_per_principal" default:"10" min:"1" max:"1000" doc:"Connections of one principal without a device."`
	MaxUnidentified   int           `key:"gateway.max_unidentified_per_ip" default:"200" min:"1" max:"100000" doc:"Connections of one address that have not identified themselves."`

	// The keys of these belong to other packages; the composition root copies the values.

	// RevalidateEvery is how often the credential of an open connection is checked again.
	RevalidateEvery time.Duration
	// MaxDepth bounds the nesting of a frame.
	MaxDepth int
	// OpsPerMinute and OpsBurst are the numbers of the class rl.gateway_op, as clients are told.
	OpsPerMinute, OpsBurst int
}

// heartbeatDeadline is how long a connection may be silent.
func (c Config) heartbeatDeadline() time.Duration { return 2*c.HeartbeatInterval + c.HeartbeatGrace }

// maxFocus is how many threads a connection can look at.
const maxFocus = 4
