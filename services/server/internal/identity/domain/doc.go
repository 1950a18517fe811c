// SPDX-License-Identifier: Apache-2.0

// Package domain has the rules of identity as pure functions and values: the forms of
// secrets and codes, what a DPoP proof must say, when a refresh token may be exchanged,
// which handles and passwords are acceptable, and when an account stops listening to
// passwords. Nothing here reads a clock, a random source beside the system's, or a store;
// the use cases in app bring facts and act on the answers.
package domain
