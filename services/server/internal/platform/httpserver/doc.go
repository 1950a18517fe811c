// SPDX-License-Identifier: Apache-2.0

// Package httpserver is the way of a request through the server, up to the handler of a
// module and back. A Chain is built once from the table of operations:
//
//	panics ─ span, correlation ID ─ base headers, client IP ─ router
//	   └─ per operation: operation ─ cors ─ nonce ─ authentication ─ ratelimit ─ maintenance ─
//	      setup ─ signed_in ─ idempotency ─ content ─ if_match ─ position ─ check_log ─ handler
//
// The handler is the generated one, which first checks the request against the contract.
//
// The order is a contract: limits need the route, throttling needs the principal and comes
// before everything that costs, the stage that stores answers wraps everything that decides
// one. chain_test.go holds the order as a golden list.
//
// Two promises hold for every answer. A success leaves only when the authorizer was asked
// about the action of the operation and allowed it; otherwise the answer is thrown away and
// the client gets an internal error. And every failure is one problem document written by
// one function.
//
// The package knows operations, actions and classes as words. What they mean, and who may
// do what, is decided by ports of the kernel that the composition root hands in.
package httpserver
