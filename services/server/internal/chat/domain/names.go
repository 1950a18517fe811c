// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
)

// Clusters measures a text in what people see as characters.
type Clusters interface {
	// Measure gives the number of grapheme clusters and the most code points of one.
	Measure(text string) (clusters, longest int)
}

// Limits bound names and texts.
type Limits struct {
	// NameClusters and TopicClusters count grapheme clusters; descriptions share the second.
	NameClusters, TopicClusters, TitleClusters int
	// ClusterCodePoints bounds marks stacked on one character.
	ClusterCodePoints int
	// PromptBytes bounds the instructions for agents.
	PromptBytes int
}

// invisible characters would let two different names look the same.
const invisible = "\u200b\u2060\ufeff"

// Names checks display texts of one line.
type Names struct {
	Clusters Clusters
	Limits   Limits
}

// Name trims and checks the name of a space or channel; pointer names the member.
func (n Names) Name(faults *errs.Validation, pointer, text string) string {
	return n.line(faults, pointer, text, 1, n.Limits.NameClusters)
}

// Topic trims and checks a topic, which may be empty.
func (n Names) Topic(faults *errs.Validation, pointer, text string) string {
	return n.line(faults, pointer, text, 0, n.Limits.TopicClusters)
}

// Description trims and checks a description, which may have several lines.
func (n Names) Description(faults *errs.Validation, pointer, text string) string {
	text = strings.TrimSpace(text)
	if err := textcheck.Body(text); err != nil {
		faults.Add(pointer, err.Error(), "The text holds characters that are not allowed.")
		return text
	}
	n.measure(faults, pointer, text, 0, n.Limits.TopicClusters)
	return text
}

// Title trims and checks the title of a thread.
func (n Names) Title(faults *errs.Validation, pointer, text string) string {
	return n.line(faults, pointer, text, 1, n.Limits.TitleClusters)
}

func (n Names) line(faults *errs.Validation, pointer, text string, least, most int) string {
	text = strings.TrimSpace(text)
	switch err := textcheck.Name(text); {
	case err != nil:
		faults.Add(pointer, err.Error(), "The text holds characters that are not allowed.")
	case strings.ContainsAny(text, invisible):
		faults.Add(pointer, "invisible_character", "The text holds invisible characters.")
	default:
		n.measure(faults, pointer, text, least, most)
	}
	return text
}

func (n Names) measure(faults *errs.Validation, pointer, text string, least, most int) {
	clusters, longest := n.Clusters.Measure(text)
	switch {
	case clusters < least:
		faults.Add(pointer, "required", "The text must not be empty.")
	case clusters > most:
		faults.Addf(pointer, "too_long", "The text may have at most %d characters, it has %d.", most, clusters)
	case longest > n.Limits.ClusterCodePoints:
		faults.Addf(pointer, "cluster_too_long", "One character may have at most %d code points.", n.Limits.ClusterCodePoints)
	}
}

// Prompt checks the instructions for agents.
func (n Names) Prompt(faults *errs.Validation, pointer, text string) {
	if err := textcheck.Body(text); err != nil {
		faults.Add(pointer, err.Error(), "The text holds characters that are not allowed.")
	}
	if len(text) > n.Limits.PromptBytes {
		faults.Addf(pointer, "too_long", "The text may have at most %d bytes, it has %d.", n.Limits.PromptBytes, len(text))
	}
}
