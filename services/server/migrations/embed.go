// SPDX-License-Identifier: Apache-2.0

// Package migrations embeds the steps of the schema. A file belongs to the module in its
// name and is never changed once released; a correction is a new step.
package migrations

import "embed"

// Files holds the steps as goose SQL files.
//
//go:embed *.sql
var Files embed.FS
