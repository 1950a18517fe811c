// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
)

// maxFaults bounds an answer; a body with more faults is not helped by naming them.
const maxFaults = 20

// CheckBody checks a body that passed package jsonguard.
func (o *Operation) CheckBody(mediaType string, body []byte) []errs.Field {
	n, ok := o.bodies[mediaType]
	if !ok {
		return nil
	}
	w := walker{b: body}
	w.value(n)
	return w.faults
}

// CheckParams checks the parameters of path and query. Parameters that the document does
// not name are faults.
func (o *Operation) CheckParams(pathValue func(string) string, rawQuery string) []errs.Field {
	var faults []errs.Field
	for _, p := range o.path {
		if f := p.check(pathValue(p.name)); f != nil {
			faults = append(faults, *f)
		}
	}
	if rawQuery == "" && !slices.ContainsFunc(o.query, func(p *param) bool { return p.required }) {
		return faults
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return append(faults, errs.Field{Pointer: "query:", Code: "malformed", Message: "The query cannot be read."})
	}
	for name := range query {
		if _, known := o.params["query:"+name]; !known {
			faults = append(faults, errs.Field{Pointer: "query:" + clip(name), Code: "unknown_parameter", Message: "There is no such parameter."})
		}
	}
	for _, p := range o.query {
		faults = append(faults, p.checkAll(query[p.name])...)
	}
	slices.SortStableFunc(faults, func(a, b errs.Field) int { return strings.Compare(a.Pointer, b.Pointer) })
	return faults[:min(len(faults), maxFaults)]
}

// clip bounds a name that a client chose before it is sent back.
func clip(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "")
	}
	return name
}

func (p *param) pointer() string { return p.in + ":" + p.name }

func (p *param) checkAll(values []string) []errs.Field {
	switch {
	case len(values) == 0:
		if p.required {
			return []errs.Field{{Pointer: p.pointer(), Code: "required", Message: "This parameter is required."}}
		}
		return nil
	case !p.list && len(values) > 1:
		return []errs.Field{{Pointer: p.pointer(), Code: "repeated", Message: "This parameter may stand once."}}
	case p.list && p.comma && len(values) == 1:
		values = strings.Split(values[0], ",")
	}
	if p.list && p.schema.maxItems >= 0 && len(values) > p.schema.maxItems {
		return []errs.Field{{Pointer: p.pointer(), Code: "too_many", Message: fmt.Sprintf("At most %d values are allowed.", p.schema.maxItems)}}
	}
	var faults []errs.Field
	for _, v := range values {
		if f := p.check(v); f != nil {
			faults = append(faults, *f)
		}
	}
	return faults
}

// check looks at the text of a parameter as if it were a value of the schema's type.
func (p *param) check(text string) *errs.Field {
	n := p.schema
	if p.list && n.items != nil {
		n = n.items
	}
	w := walker{at: []string{p.pointer()}, param: true}
	switch {
	case n.types&typeString != 0 || n.types == typeAny:
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			w.fault("malformed", "The value must be UTF-8 without NUL.")
		} else {
			w.text(n, text)
		}
	case n.types&(typeInteger|typeNumber) != 0:
		if strings.TrimLeft(text, "-0123456789.eE") != "" || !json.Valid([]byte(text)) {
			w.fault("wrong_type", "The value must be a number.")
		} else {
			w.number(n, text)
		}
	case n.types&typeBool != 0 && text != "true" && text != "false":
		w.fault("wrong_type", "The value must be true or false.")
	}
	if len(w.faults) == 0 {
		return nil
	}
	return &w.faults[0]
}

// walker goes through a well-formed JSON text beside a schema.
type walker struct {
	b      []byte
	i      int
	at     []string
	param  bool
	faults []errs.Field
}

func (w *walker) fault(code, message string) {
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, errs.Field{Pointer: w.pointer(), Code: code, Message: message})
	}
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (w *walker) pointer() string {
	if w.param {
		return w.at[0]
	}
	var b strings.Builder
	for _, part := range w.at {
		b.WriteByte('/')
		b.WriteString(pointerEscape.Replace(part))
	}
	return b.String()
}

func (w *walker) next() byte {
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case ' ', '\t', '\n', '\r':
			w.i++
		default:
			return w.b[w.i]
		}
	}
	return 0
}

// value checks one value and leaves the position behind it.
func (w *walker) value(n *node) {
	c := w.next()
	if n.choices != nil {
		w.choose(n)
		return
	}
	got := typeOf(c)
	if got == typeNumber {
		from := w.i
		w.skip()
		w.checkNumber(n, string(w.b[from:w.i]))
		return
	}
	if n.types&got == 0 {
		w.wrongType(n)
		w.skip()
		return
	}
	switch got {
	case typeObject:
		w.object(n)
	case typeArray:
		w.array(n)
	case typeString:
		from := w.i
		w.skip()
		w.text(n, decode(w.b[from:w.i]))
	default:
		from := w.i
		w.skip()
		w.oneOf(n, string(w.b[from:w.i]))
	}
}

func typeOf(c byte) types {
	switch c {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBool
	case 'n':
		return typeNull
	default:
		return typeNumber
	}
}

func (w *walker) wrongType(n *node) {
	var names []string
	for _, t := range typeNames {
		if n.types&t.bit != 0 {
			names = append(names, t.name)
		}
	}
	w.fault("wrong_type", "The value must be of type "+strings.Join(names, " or ")+".")
}

func (w *walker) checkNumber(n *node, text string) {
	if n.types&(typeNumber|typeInteger) == 0 {
		w.wrongType(n)
		return
	}
	w.number(n, text)
}

func (w *walker) number(n *node, text string) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		w.fault("out_of_range", "The number is too large.")
		return
	}
	if n.types&typeNumber == 0 {
		// An integer is written without point and exponent and fits into 64 bits: what a
		// handler decodes it into.
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			w.fault("wrong_type", "The value must be a whole number.")
			return
		}
	}
	switch {
	case n.minimum != nil && f < *n.minimum:
		w.fault("out_of_range", fmt.Sprintf("The number must be at least %v.", *n.minimum))
	case n.maximum != nil && f > *n.maximum:
		w.fault("out_of_range", fmt.Sprintf("The number must be at most %v.", *n.maximum))
	case n.exclusiveMin != nil && f <= *n.exclusiveMin:
		w.fault("out_of_range", fmt.Sprintf("The number must be above %v.", *n.exclusiveMin))
	case n.exclusiveMax != nil && f >= *n.exclusiveMax:
		w.fault("out_of_range", fmt.Sprintf("The number must be below %v.", *n.exclusiveMax))
	default:
		w.oneOf(n, text)
	}
}

func (w *walker) oneOf(n *node, scalar string) {
	if n.enum == nil || slices.Contains(n.enum, scalar) {
		return
	}
	words := make([]string, len(n.enum))
	for i, e := range n.enum {
		words[i] = strings.TrimPrefix(e, `"`)
	}
	w.fault("not_allowed", "The value must be one of "+strings.Join(words, ", ")+".")
}

func (w *walker) text(n *node, s string) {
	if n.minLength >= 0 || n.maxLength >= 0 {
		// Bytes bound characters from above, so most texts need no counting.
		if n.minLength > 0 || len(s) > n.maxLength {
			length := utf8.RuneCountInString(s)
			if n.maxLength >= 0 && length > n.maxLength {
				w.fault("too_long", fmt.Sprintf("The text may have at most %d characters.", n.maxLength))
				return
			}
			if length < n.minLength {
				w.fault("too_short", fmt.Sprintf("The text must have at least %d characters.", n.minLength))
				return
			}
		}
	}
	if n.enum != nil {
		w.oneOf(n, `"`+s)
		return
	}
	if n.pattern != nil && !n.pattern.MatchString(s) {
		w.fault("bad_format", "The text does not have the documented form.")
		return
	}
	if want := formatFault(n.format, s); want != "" {
		w.fault("bad_format", "The text must be "+want+".")
	}
}

func formatFault(format, s string) string {
	switch format {
	case "uuid":
		if _, err := ids.Parse(s); err != nil {
			return "a UUID in lower case"
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return "a time as in RFC 3339"
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return "a date"
		}
	case "uri":
		if u, err := url.Parse(s); err != nil || u.Scheme == "" {
			return "an absolute URI"
		}
	}
	return ""
}

func (w *walker) array(n *node) {
	w.i++
	count := 0
	var seen map[string]struct{}
	for w.next() != ']' && w.i < len(w.b) {
		from := w.i
		if n.items != nil {
			w.at = append(w.at, strconv.Itoa(count))
			w.value(n.items)
			w.at = w.at[:len(w.at)-1]
		} else {
			w.skip()
		}
		count++
		if n.unique {
			if seen == nil {
				seen = map[string]struct{}{}
			}
			key := string(bytes.TrimSpace(w.b[from:w.i]))
			if _, twice := seen[key]; twice {
				w.fault("not_unique", "An entry stands twice.")
			}
			seen[key] = struct{}{}
		}
		if w.next() == ',' {
			w.i++
		}
	}
	w.i++
	switch {
	case n.minItems >= 0 && count < n.minItems:
		w.fault("too_few", fmt.Sprintf("At least %d entries are needed.", n.minItems))
	case n.maxItems >= 0 && count > n.maxItems:
		w.fault("too_many", fmt.Sprintf("At most %d entries are allowed.", n.maxItems))
	}
}

func (w *walker) object(n *node) {
	w.i++
	var seen [maxNamedProps / 64]uint64
	count := 0
	for w.next() != '}' && w.i < len(w.b) {
		from := w.i
		w.skip()
		w.member(n, w.b[from:w.i], &seen)
		count++
		if w.next() == ',' {
			w.i++
		}
	}
	w.i++
	for _, p := range n.required {
		if seen[p.index/64]&(1<<(p.index%64)) == 0 {
			w.at = append(w.at, p.name)
			w.fault("required", "This member is required.")
			w.at = w.at[:len(w.at)-1]
		}
	}
	switch {
	case n.minProps >= 0 && count < n.minProps:
		w.fault("too_few", fmt.Sprintf("At least %d members are needed.", n.minProps))
	case n.maxProps >= 0 && count > n.maxProps:
		w.fault("too_many", fmt.Sprintf("At most %d members are allowed.", n.maxProps))
	}
}

// member checks one member; the position stands behind its name.
func (w *walker) member(n *node, rawName []byte, seen *[maxNamedProps / 64]uint64) {
	if w.next() == ':' {
		w.i++
	}
	name := rawName[1 : len(rawName)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(decode(rawName))
	}
	if p, known := n.props[string(name)]; known {
		seen[p.index/64] |= 1 << (p.index % 64)
		w.at = append(w.at, p.name)
		w.value(p.node)
		w.at = w.at[:len(w.at)-1]
		return
	}
	w.at = append(w.at, clip(string(name)))
	defer func() { w.at = w.at[:len(w.at)-1] }()
	if n.propertyNames != nil {
		w.text(n.propertyNames, string(name))
	}
	switch {
	case n.additional != nil:
		w.value(n.additional)
	case n.closed:
		w.fault("unknown_member", "There is no such member.")
		w.skip()
	default:
		w.skip()
	}
}

// choose checks against the alternative that the value means: the one its discriminator
// names, else the first that fits, else the one with the fewest faults.
func (w *walker) choose(n *node) {
	from := w.i
	if n.discriminator != "" {
		if chosen := n.mapping[w.discriminator(n.discriminator)]; chosen != nil {
			w.value(chosen)
			return
		}
		w.at = append(w.at, n.discriminator)
		w.fault("not_allowed", "The member must name one of the documented kinds.")
		w.at = w.at[:len(w.at)-1]
		w.skip()
		return
	}
	got, before := typeOf(w.next()), len(w.faults)
	var best []errs.Field
	for _, choice := range n.choices {
		if choice.choices == nil && choice.types&got == 0 && (got != typeNumber || choice.types&typeInteger == 0) {
			continue
		}
		w.i = from
		w.value(choice)
		faults := w.faults[before:]
		if len(faults) == 0 {
			return
		}
		if best == nil || len(faults) < len(best) {
			best = slices.Clone(faults)
		}
		w.faults = w.faults[:before]
	}
	w.i = from
	w.skip()
	if best == nil {
		w.fault("wrong_type", "The value is of none of the documented types.")
		return
	}
	w.faults = append(w.faults, best...)
}

// discriminator reads a string member of the object ahead and leaves the position.
func (w *walker) discriminator(name string) string {
	from := w.i
	defer func() { w.i = from }()
	if w.next() != '{' {
		return ""
	}
	w.i++
	for w.next() == '"' {
		start := w.i
		w.skip()
		member := decode(w.b[start:w.i])
		if w.next() == ':' {
			w.i++
		}
		w.next()
		start = w.i
		w.skip()
		if member == name && w.b[start] == '"' {
			return decode(w.b[start:w.i])
		}
		if w.next() == ',' {
			w.i++
		}
	}
	return ""
}

// skip moves behind one value of a well-formed text.
func (w *walker) skip() {
	depth := 0
	w.next()
	for w.i < len(w.b) {
		switch w.b[w.i] {
		case '"':
			w.skipString()
		case '{', '[':
			depth++
			w.i++
			continue
		case '}', ']':
			depth--
			w.i++
		case ',', ':', ' ', '\t', '\n', '\r':
			w.i++
			continue
		default:
			for w.i < len(w.b) && bytes.IndexByte([]byte(",]} \t\n\r"), w.b[w.i]) < 0 {
				w.i++
			}
		}
		if depth <= 0 {
			return
		}
	}
}

func (w *walker) skipString() {
	for w.i++; w.i < len(w.b); w.i++ {
		switch w.b[w.i] {
		case '\\':
			w.i++
		case '"':
			w.i++
			return
		}
	}
}

// decode gives the text of a JSON string.
func decode(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	// The guard has seen the text, so this cannot fail.
	_ = json.Unmarshal(raw, &s)
	return s
}
