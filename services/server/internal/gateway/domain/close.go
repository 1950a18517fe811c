// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of the gateway protocol that need no connection: frames,
// close codes, and how progress of a run is gathered.
package domain

// CloseCode ends a connection and tells the client how to go on (chapter 04, section 9.3).
type CloseCode int

// The close codes.
const (
	CloseInternal         CloseCode = 4000
	CloseMalformed        CloseCode = 4001
	CloseUnknownOp        CloseCode = 4002
	CloseIdentifyTimeout  CloseCode = 4003
	CloseAuthentication   CloseCode = 4004
	CloseIdentified       CloseCode = 4005
	CloseSessionUnknown   CloseCode = 4006
	CloseCursor           CloseCode = 4007
	CloseRateLimited      CloseCode = 4008
	CloseHeartbeatMissed  CloseCode = 4009
	CloseCredentialsEnded CloseCode = 4010
	CloseProtocolVersion  CloseCode = 4011
	CloseNotAvailable     CloseCode = 4012
	CloseServerRestart    CloseCode = 4013
	CloseTooSlow          CloseCode = 4014
	CloseConsumerTaken    CloseCode = 4015
	CloseFrameTooLarge    CloseCode = 4016
	CloseDeviceElsewhere  CloseCode = 4017
	CloseForbidden        CloseCode = 4018
)

var closeNames = map[CloseCode]string{
	CloseInternal: "internal_error", CloseMalformed: "malformed", CloseUnknownOp: "unknown_op",
	CloseIdentifyTimeout: "identify_timeout", CloseAuthentication: "authentication_failed", CloseIdentified: "already_identified",
	CloseSessionUnknown: "session_unknown", CloseCursor: "cursor_out_of_range", CloseRateLimited: "rate_limited",
	CloseHeartbeatMissed: "heartbeat_missed", CloseCredentialsEnded: "credentials_ended", CloseProtocolVersion: "protocol_version",
	CloseNotAvailable: "not_available", CloseServerRestart: "server_restart", CloseTooSlow: "too_slow",
	CloseConsumerTaken: "consumer_taken", CloseFrameTooLarge: "frame_too_large", CloseDeviceElsewhere: "device_elsewhere",
	CloseForbidden: "forbidden",
}

// Name is the stable word of a code.
func (c CloseCode) Name() string { return closeNames[c] }

// maxReason is what a close frame has room for behind its code.
const maxReason = 123

// Close is an end of a connection.
type Close struct {
	Code CloseCode
	// Detail narrows the code; it is optional.
	Detail string
}

// Reason is the text of the close frame: the name, and the detail behind a colon.
func (c Close) Reason() string {
	reason := c.Code.Name()
	if c.Detail != "" {
		reason += ":" + c.Detail
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return reason
}

// Error implements error, so that an op can end its connection by returning the close.
func (c Close) Error() string { return "close: " + c.Reason() }
