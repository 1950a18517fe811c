// SPDX-License-Identifier: Apache-2.0

// Package invocation verifies the token that comes with an order to an agent. The adapter does not take the
// server's word for it: the token must be signed by the pinned instance, made for this agent, this run and this
// event, be fresh and new, and agree with what the adapter itself is set up for.
//
// A token that fails is *Rejected, for good. Any other error means that it could not be decided now, because keys
// could not be fetched or the memory of used tokens could not be written: ask again later.
package invocation
