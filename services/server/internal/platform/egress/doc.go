// SPDX-License-Identifier: Apache-2.0

// Package egress is the one way out of the server: every request to a foreign host goes
// through its Client. It promises that such a request
//
//   - goes to https on port 443, or to a host and port that the operator named;
//   - reaches public addresses only, unless the operator opened a private one. All addresses
//     of a name are judged before the first is dialled, the dialler connects to the judged
//     address and no other, so an answer that changes between the look and the connection
//     changes nothing;
//   - follows no redirect, sends no cookie, uses no proxy of the environment;
//   - ends: dial, TLS, headers, body and the whole exchange have limits;
//   - never runs while the calling unit of work holds a transaction open.
//
// Failures carry one of the codes of this package and never the resolved address.
package egress
