// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of the module agents without any input or output: what an
// agent may be configured to, how the report of an adapter is read, and when an agent
// counts as gone.
package domain
