// SPDX-License-Identifier: Apache-2.0

package graphemes_test

import (
	"testing"

	"github.com/OWNER/bothy/services/server/internal/chat/adapters/graphemes"
)

func TestMeasureCountsWhatPeopleSee(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"": {0, 0}, "abc": {3, 1}, "👩‍👩‍👧‍👦": {1, 7}, "👍🏽👍": {2, 2}, "e\u0301a": {2, 2}, "한국": {2, 1}, "🇩🇪🇫🇷": {2, 2},
	} {
		if clusters, longest := (graphemes.Clusters{}).Measure(text); clusters != want[0] || longest != want[1] {
			t.Errorf("%q: %d clusters, longest %d", text, clusters, longest)
		}
	}
}
