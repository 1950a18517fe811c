// SPDX-License-Identifier: Apache-2.0

// Package harness runs a real server inside the test process and speaks with it as a client
// does: over TCP, with device keys and proofs, over REST and the WebSocket. It knows the
// modules through the public API alone.
//
//	s := harness.Start(t)
//	owner := s.Owner(t)
//	space := owner.Call(t, "createSpace", harness.Body{"name": "Lab"}).OK(t)
//	ana := s.Person(t, "ana")
//	ana.Call(t, "getSpace", space.Str("id")).Refused(t, "not_found")
//
// It watches what no single test would look at: every answer and every event is held against
// the contract, every identifier in a path must have been authorized, a success that nobody
// authorized and an internal error fail the test, and the books of package accounting are kept.
package harness
