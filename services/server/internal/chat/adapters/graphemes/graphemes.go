// SPDX-License-Identifier: Apache-2.0

// Package graphemes measures texts in grapheme clusters of Unicode, which is what people see
// as characters.
package graphemes

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/OWNER/bothy/services/server/internal/chat/domain"
)

// Clusters implements domain.Clusters.
type Clusters struct{}

var _ domain.Clusters = Clusters{}

// Measure implements domain.Clusters.
func (Clusters) Measure(text string) (clusters, longest int) {
	state := -1
	for text != "" {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		clusters++
		longest = max(longest, utf8.RuneCountInString(cluster))
	}
	return clusters, longest
}
