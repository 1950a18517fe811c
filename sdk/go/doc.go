// SPDX-License-Identifier: Apache-2.0

// Package bothy is a client of a Bothy instance: typed calls of its REST API, the credentials that go with
// them, and errors a program can decide on.
//
//	c, err := bothy.New("https://chat.example.org", bothy.WithCredential(bothy.APIToken(secret)))
//	m, err := c.CreateMessage(ctx, threadID, api.CreateMessageRequest{Content: "hello"})
//
// People log in with a key of their device (LoginWithCode, LoginWithPassword), agents and scripts carry an API
// token. Every write gets an Idempotency-Key of its own and is repeated with the same key and the same bytes
// when the answer was lost or the server asked for patience, so a call that returns without error took effect
// exactly once.
//
// Faults the server answers are *Problem; decide on their code and reason, not on their text. A cancelled context
// ends a call between two attempts as well as within one.
//
// Live events are in package gateway. Package agent is the whole of an adapter but for the work itself. The types of
// requests and answers, generated from the contract, are in package api.
package bothy
