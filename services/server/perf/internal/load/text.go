// SPDX-License-Identifier: Apache-2.0

package load

import (
	"math/rand/v2"
	"strings"
)

// Texts gives the texts of messages from a seed: most are short, a few are long, some are not ASCII, and one in twenty
// names somebody.
type Texts struct {
	seed   uint64
	people []string
}

// NewTexts names people by their principals.
func NewTexts(seed uint64, people []string) Texts { return Texts{seed, people} }

var words = strings.Fields(`the build is green again since this morning and the release notes wait for one more look before lunch
tomorrow we talk about the roadmap über Größe café naïve 東京 новости please check whether the second server answers faster now`)

// sizes are lengths in bytes with their weights in percent.
var sizes = []struct{ bytes, percent int }{{20, 30}, {60, 30}, {160, 20}, {400, 12}, {900, 6}, {2000, 2}}

const mentionPercent = 5

// Text is the text of message n, the same in every run.
func (t Texts) Text(n int) string {
	r := rand.New(rand.NewPCG(t.seed, uint64(n))) // #nosec G404 -- texts of a load, not secrets
	size := 0
	for roll, i := r.IntN(100), 0; i < len(sizes); i++ {
		size = sizes[i].bytes
		if roll -= sizes[i].percent; roll < 0 {
			break
		}
	}
	var b strings.Builder
	if len(t.people) > 0 && r.IntN(100) < mentionPercent {
		b.WriteString("<@" + t.people[r.IntN(len(t.people))] + "> ")
	}
	for b.Len() < size {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}
