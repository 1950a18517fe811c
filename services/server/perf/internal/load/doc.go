// SPDX-License-Identifier: Apache-2.0

// Package load makes load in two ways and keeps what it cost.
//
// In the open loop, the times of all sends are fixed before the run, and a late answer delays no later send. Latency
// counts from the time a send was due, so a stall is felt by every request that would have come meanwhile. The generator
// watches itself: when it is late on its own account, the run says nothing about the server and is invalid.
//
// In the closed loop, each writer sends as soon as its last answer has come. It finds the throughput; its latencies mean
// little, because a stall stops the clock for everyone.
package load
