// SPDX-License-Identifier: Apache-2.0

// Package gateway follows the events of an instance over its WebSocket, across lost connections and restarts of
// the program.
//
// A Link keeps one logical connection. It identifies or resumes, sends heartbeats, proves itself anew when asked,
// and after an end of the connection does what the close code asks for: come back at once, later, with a fresh
// token, from a fresh snapshot, or never. Durable events reach Config.Handle one at a time, in order. Once Handle has
// returned nil the position is stored, and an agent acknowledges; an event whose handling failed, or whose
// position was not stored, comes again. So Handle sees every event at least once, and exactly once if what it
// stores can tell a repeated event by its ID.
//
// Two goroutines belong to a connection, for reading and for heartbeats; both end with it, and Run returns only
// after they have.
package gateway
