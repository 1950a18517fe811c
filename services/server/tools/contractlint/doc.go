// SPDX-License-Identifier: Apache-2.0

// Package contractlint has no code of its own: its tests hold the contract documents, what is generated from them and
// each other together. They stand here because they read the documents the way the generators do.
package contractlint
