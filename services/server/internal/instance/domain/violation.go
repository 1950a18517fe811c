// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Violation is what a browser reports about the content security policy, as far as it is
// looked at: no path, no page and no sample of what was stopped.
type Violation struct {
	// Directive is one of the known ones, or "other".
	Directive string
	// Origin is scheme and host of what was stopped, or a word such as inline.
	Origin string
}

// maxViolations bounds what one body may report.
const maxViolations = 20

// otherDirective stands for directives that nobody knows.
const otherDirective = "other"

var directives = []string{
	"base-uri", "child-src", "connect-src", "default-src", "font-src", "form-action", "frame-ancestors", "frame-src", "img-src",
	"manifest-src", "media-src", "object-src", "require-trusted-types-for", "script-src", "script-src-attr", "script-src-elem",
	"style-src", "style-src-attr", "style-src-elem", "trusted-types", "worker-src",
}

// blockedWords are what browsers write instead of an address.
var blockedWords = []string{"inline", "eval", "wasm-eval", "self", "data", "blob", "trusted-types-policy", "trusted-types-sink"}

// ReadViolations reads a body of either form; what it cannot read is nothing.
func ReadViolations(body []byte) []Violation {
	type report struct {
		OldDirective string `json:"effective-directive"`
		Violated     string `json:"violated-directive"`
		OldBlocked   string `json:"blocked-uri"`
		Directive    string `json:"effectiveDirective"`
		Blocked      string `json:"blockedURL"`
	}
	var old struct {
		Report *report `json:"csp-report"`
	}
	if json.Unmarshal(body, &old) == nil && old.Report != nil {
		directive := old.Report.OldDirective
		if directive == "" {
			directive, _, _ = strings.Cut(old.Report.Violated, " ")
		}
		return []Violation{violation(directive, old.Report.OldBlocked)}
	}
	var list []struct {
		Type string `json:"type"`
		Body report `json:"body"`
	}
	if json.Unmarshal(body, &list) != nil {
		return nil
	}
	var out []Violation
	for _, r := range list {
		if r.Type == "csp-violation" && len(out) < maxViolations {
			out = append(out, violation(r.Body.Directive, r.Body.Blocked))
		}
	}
	return out
}

func violation(directive, blocked string) Violation {
	if !slices.Contains(directives, directive) {
		directive = otherDirective
	}
	return Violation{Directive: directive, Origin: originOf(blocked)}
}

// maxOrigin bounds an origin; longer ones are nothing a browser would write.
const maxOrigin = 255

func originOf(blocked string) string {
	if slices.Contains(blockedWords, blocked) {
		return blocked
	}
	u, err := url.Parse(blocked)
	if err != nil || u.Scheme == "" || u.Host == "" || len(u.Scheme)+len(u.Host) > maxOrigin {
		return "unknown"
	}
	return u.Scheme + "://" + u.Host
}
