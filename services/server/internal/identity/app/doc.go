// SPDX-License-Identifier: Apache-2.0

// Package app has the use cases of identity: who signs in, with which device, how long a
// session lives, who may hold which token, and how people come and go.
//
// A use case authorizes, opens a unit of work, lets the domain decide, writes through the
// Store and appends events. Hashing and signing happen outside units. Three parts have a
// life of their own:
//
//   - Authenticator verifies what every request presents. It keeps the nonces and single
//     uses of proofs (Proofs) and a short memory of verified API tokens.
//   - Seen writes when sessions, devices and tokens were last used, behind the requests.
//   - Sources answers the questions authz asks about principals and credentials. It is
//     built first, because authz needs it and Service needs authz.
//
// The database tests beside adapters/postgres notice when a promise breaks.
package app
