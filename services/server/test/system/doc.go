// SPDX-License-Identifier: Apache-2.0

// Package system runs the built server as a child process, the way an operator would, and speaks to it over the network
// alone. Measurements and chaos tests stand on it.
//
//	inst, err := system.Install(ctx, system.Options{Dir: dir, Binary: binary})   // secrets, schema, first owner
//	srv, err := inst.Start(ctx)                                                    // a life of the server
//	team, err := inst.Populate(ctx, 50)                                            // people with API tokens, a channel
//	srv.Kill()                                                                     // kill -9
//
// Nothing here reaches into the server: what a test arranges, it arranges through the API, and what it believes, it has
// read from an answer or a socket. The client here is small on purpose; it shares no code with the SDK, so that a fault
// of the one does not hide behind the same fault of the other.
package system
