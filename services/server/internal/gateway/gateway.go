// SPDX-License-Identifier: Apache-2.0

// Package gateway is the root of the module gateway: one WebSocket per device, over which a
// client follows the event log as far as it may see it. The module offers no port to other
// modules; it implements kernel/eventlog.EphemeralPublisher and follows sync.Tail.
//
// domain has the rules of frames and close codes, app the hub and the life of a connection
// on any transport, adapters/ws the WebSocket.
package gateway
