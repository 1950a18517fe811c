// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of runs without any input or output: the state machine, the
// document that an agent writes, which messages set which agents to work, and whom an agent
// may believe.
package domain
