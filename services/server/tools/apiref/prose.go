// SPDX-License-Identifier: Apache-2.0

package main

import (
	"html"
	"html/template"
	"regexp"
	"strings"
)

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	strongSpan = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// inline renders a sentence of the contract: code and strong text are marked, everything else is literal.
func inline(text string) template.HTML {
	text = html.EscapeString(strings.Join(strings.Fields(text), " "))
	text = codeSpan.ReplaceAllString(text, "<code>$1</code>")
	text = strongSpan.ReplaceAllString(text, "<strong>$1</strong>")
	return template.HTML(text) // #nosec G203 -- the text was escaped before the marks were set
}

// paragraphs renders a description of several paragraphs.
func paragraphs(text string) []template.HTML {
	var out []template.HTML
	for part := range strings.SplitSeq(text, "\n\n") {
		if strings.TrimSpace(part) != "" {
			out = append(out, inline(part))
		}
	}
	return out
}
