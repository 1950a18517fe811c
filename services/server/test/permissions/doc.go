// SPDX-License-Identifier: Apache-2.0

// Package permissions tells the rules of access a second time: slowly, without a cache, without
// SQL and without anything of the module that decides in production. It is written from the
// specification alone, so that the two agree only where both have understood it.
//
// A World is lists. Every answer walks through all of them from the beginning; nothing is
// prepared, indexed or remembered between two questions. What the package takes from the product
// are identifiers and the catalogue of actions, which is generated from the specification.
//
// The rules are named as in docs/spec/07-access.md, for example AC-2.
package permissions
