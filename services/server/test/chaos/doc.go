// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks things under load and holds what was promised all the same. Every scenario runs the built server
// with its embedded database as a tree of processes, keeps a ledger of what was sent, answered and heard, and compares it
// with what is there in the end. A report per scenario holds seed, plan and ledger.
//
// The same scenarios run in two sizes: a short one with the ordinary tests, and with the build tag chaos a long one.
// Nothing needs a privilege beyond starting processes, and all traffic stays on loopback.
package chaos
