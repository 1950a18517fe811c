// SPDX-License-Identifier: Apache-2.0

// Package designkeys has the names that the design gives to colours people may choose. The
// client knows what they look like; the server only knows that they exist.
package designkeys

import "slices"

// DefaultAccent is the accent of an instance that has chosen none.
const DefaultAccent = "spruce"

// accents are the colours that may stand for the brand, as design/tokens/category.json names
// them. Ember means danger and belongs to nobody.
var accents = []string{"gorse", "heather", "loch", "rowan", "slate", "spruce"}

// Accents lists the accents in alphabetical order.
func Accents() []string { return slices.Clone(accents) }

// IsAccent reports whether the name is one of an accent.
func IsAccent(name string) bool { return slices.Contains(accents, name) }
