// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/OWNER/bothy/services/server/tools/internal/apidoc"
)

// module is a page of operations.
type module struct {
	Name, File  string
	Description template.HTML
	Operations  []operation
}

// operation is one entry of a page.
type operation struct {
	ID, Method, Path, Link string
	Summary                string
	Description            []template.HTML
	Credentials            string
	Who, Right, Scope      string
	Rate                   string
	Notes                  []string
	Parameters             []parameter
	Request                *field
	Responses              []response
	Curl                   string
	Answer                 template.HTML
	AnswerStatus           string
	Codes                  []string
}

type parameter struct {
	field
	In string
}

// response is an answer; the ones with the same body stand together.
type response struct {
	Status      string
	Description template.HTML
	Headers     []field
	Body        *field
}

func (c *contract) operation(o apidoc.Operation, n node, file string) operation {
	action := c.actions[o.Action]
	op := operation{
		ID: o.ID, Method: o.Method, Path: o.Path, Link: file + "#" + o.ID, Rate: o.RateLimit, Codes: o.ErrorCodes,
		Summary: n.at("summary").text(), Description: paragraphs(n.at("description").text()), Credentials: credentials(n),
		Who: words(action.Callers), Right: right(action), Scope: action.Scope,
	}
	if len(n.at("security").items()) == 0 || op.Scope == "none" || strings.Contains(op.Credentials, "proof of the device alone") {
		op.Scope = ""
	}
	if action.StepUp != "never" && action.StepUp != "" {
		op.Notes = append(op.Notes, map[string]string{"always": "Asks for a fresh login.", "conditional": "May ask for a fresh login."}[action.StepUp])
	}
	if o.Match {
		op.Notes = append(op.Notes, "Takes the version it was made from in If-Match.")
	}
	if o.IgnoresKey {
		op.Notes = append(op.Notes, "Repeatable by its own means; ignores Idempotency-Key.")
	}
	for _, p := range n.at("parameters").items() {
		p = c.resolve(p)
		f := c.field(p.at("name").text(), p.at("schema"), p.at("required").text() == "true", maxDepth, nil)
		if d := p.at("description").text(); d != "" {
			f.Description = inline(d)
		}
		op.Parameters = append(op.Parameters, parameter{f, p.at("in").text()})
	}
	if body := n.at("requestBody", "content", "application/json", "schema"); body.ok() {
		f := c.field("", body, true, 0, nil)
		op.Request = &f
	}
	for status, r := range n.at("responses").members() {
		if status != "default" {
			op.addResponse(c.response(status, c.resolve(r)))
		}
	}
	op.Curl = c.curl(o, n)
	op.AnswerStatus, op.Answer = c.answer(n)
	return op
}

// addResponse joins answers that differ in their status alone.
func (op *operation) addResponse(r response) {
	for i, other := range op.Responses {
		if other.Body != nil && r.Body != nil && slices.Equal(other.Body.Type, r.Body.Type) && len(other.Headers) == len(r.Headers) {
			op.Responses[i].Status += ", " + r.Status
			op.Responses[i].Description += " " + r.Description
			return
		}
	}
	op.Responses = append(op.Responses, r)
}

func (c *contract) response(status string, n node) response {
	r := response{Status: status, Description: inline(n.at("description").text())}
	for name, h := range n.at("headers").members() {
		h = c.resolve(h)
		f := c.field(name, h.at("schema"), h.at("required").text() == "true", maxDepth, nil)
		f.Description = inline(h.at("description").text())
		r.Headers = append(r.Headers, f)
	}
	if body := n.at("content", "application/json", "schema"); body.ok() {
		f := c.field("", body, true, 0, nil)
		r.Body = &f
	}
	return r
}

// The forms of credentials an operation takes.
const (
	noCredentials    = "None"
	proofAlone       = "The proof of the device alone (DPoP)"
	sessionAlone     = "A session (DPoP)"
	sessionOrToken   = "A session (DPoP) or an API token"
	tokenPlaceholder = `"Authorization: Bearer $TOKEN"`
)

func credentials(n node) string {
	var bearer, dpop bool
	alternatives := n.at("security").items()
	for _, a := range alternatives {
		bearer = bearer || a.at("apiToken").ok()
		dpop = dpop || a.at("dpop").ok()
	}
	switch {
	case len(alternatives) == 0:
		return noCredentials
	case bearer:
		return sessionOrToken
	case dpop:
		return sessionAlone
	default:
		return proofAlone
	}
}

// right says what the caller needs on the thing.
func right(a apidoc.Action) string {
	var parts []string
	one := func(level, capability string) string {
		switch {
		case level != "" && capability != "":
			return level + " with " + capability
		case capability != "":
			return "capability " + capability
		default:
			return level
		}
	}
	for _, alt := range a.AnyOf {
		parts = append(parts, one(alt.Level, alt.Capability))
	}
	if w := one(a.Level, a.Capability); w != "" {
		parts = append(parts, w)
	}
	text := strings.Join(parts, " or ")
	switch {
	case a.OwnerOnly:
		return "owner of the instance"
	case text != "" && a.Resource != "" && a.Resource != "none":
		return text + " on the " + a.Resource
	case a.Self:
		return "one's own"
	}
	return text
}

func words(list []string) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// curl is a command that can be run once BOTHY holds the address of the instance and TOKEN a credential.
func (c *contract) curl(o apidoc.Operation, n node) string {
	path := o.Path
	var query, headers []string
	for _, p := range n.at("parameters").items() {
		p = c.resolve(p)
		name, required := p.at("name").text(), p.at("required").text() == "true"
		switch p.at("in").text() {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", c.sample(name, p))
		case "query":
			if required {
				query = append(query, name+"="+c.sample(name, p))
			}
		case "header":
			if required {
				headers = append(headers, fmt.Sprintf("'%s: %s'", name, c.sample(name, p)))
			}
		}
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	lines := []string{`curl "$BOTHY/api/v1` + path + `"`}
	if n.at("responses", "101").ok() {
		lines = append(lines, "--http1.1 --include --no-buffer", "-H 'Connection: Upgrade' -H 'Upgrade: websocket'",
			"-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: Qm90aHlHYXRld2F5S2V5IQ=='", "-H 'Sec-WebSocket-Protocol: bothy.v1'")
		return strings.Join(lines, " \\\n  ")
	}
	if o.Method != "GET" {
		lines = append(lines, "-X "+o.Method)
	}
	switch credentials(n) {
	case sessionOrToken:
		lines = append(lines, "-H "+tokenPlaceholder)
	case sessionAlone:
		lines = append(lines, `-H "Authorization: DPoP $TOKEN"`, `-H "DPoP: $PROOF"`)
	case proofAlone:
		lines = append(lines, `-H "DPoP: $PROOF"`)
	}
	for _, h := range headers {
		lines = append(lines, "-H "+h)
	}
	if body := n.at("requestBody", "content", "application/json"); body.ok() {
		lines = append(lines, "-H 'Content-Type: application/json'")
		if e := c.exampleOf(body); e.ok() {
			lines = append(lines, "-d '"+strings.ReplaceAll(e.json(), "'", `'\''`)+"'")
		}
	}
	return strings.Join(lines, " \\\n  ")
}

// sample is a value for a parameter: its own example, or the identifier that the examples of the contract use.
func (c *contract) sample(name string, p node) string {
	if e := p.at("example"); e.ok() {
		return e.text()
	}
	examples := c.rest.at("components", "examples")
	if s := examples.find(name); s != "" {
		return s
	}
	if owner, isID := strings.CutSuffix(name, "_id"); isID {
		if s := examples.at(title(owner), "value", "id").text(); s != "" {
			return s
		}
	}
	if v := p.at("schema", "enum").texts(); len(v) > 0 {
		return v[0]
	}
	if d := p.at("schema", "default").text(); d != "" {
		return d
	}
	return "0"
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (c *contract) exampleOf(content node) node {
	for _, e := range content.at("examples").members() {
		return c.resolve(e).at("value")
	}
	return node{}
}

// answer is the example of the first response that has one.
func (c *contract) answer(n node) (status string, text template.HTML) {
	for s, r := range n.at("responses").members() {
		if s == "default" {
			continue
		}
		if e := c.exampleOf(c.resolve(r).at("content", "application/json")); e.ok() {
			return s, e.markup()
		}
	}
	return "", ""
}
