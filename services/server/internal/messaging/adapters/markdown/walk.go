// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// errDeep means that the nesting goes beyond the limit.
var errDeep = errors.New("nested too deeply")

// What stands in a preview for what it does not show.
const (
	hiddenCode    = "[code]"
	hiddenSpoiler = "▮▮▮"
)

// state is where in the tree the walker is.
type state struct {
	depth                  int
	quoted, linked, hidden bool
	// marked says that the text begins directly behind an opening mark or its block.
	marked bool
}

// walker collects references and texts in the order of the source.
type walker struct {
	src     []byte
	maxDeep int
	doc     domain.Document
	plain   strings.Builder
	preview strings.Builder
	first   bool
}

func (w *walker) document(root ast.Node) error {
	w.first = true
	if err := w.blocks(root, state{}); err != nil {
		return err
	}
	w.flushPlain()
	w.flushPreview()
	return nil
}

func (w *walker) blocks(parent ast.Node, s state) error {
	if s.depth > w.maxDeep {
		return errDeep
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if err := w.block(n, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) block(n ast.Node, s state) error {
	inner := s
	switch n.Kind() {
	case ast.KindBlockquote:
		inner.depth, inner.quoted = s.depth+1, true
		return w.blocks(n, inner)
	case ast.KindList:
		inner.depth++
		return w.blocks(n, inner)
	case ast.KindListItem, extast.KindTable:
		return w.blocks(n, inner)
	case extast.KindTableHeader, extast.KindTableRow:
		w.separate(s, "\n")
		return w.row(n, s)
	case ast.KindFencedCodeBlock:
		w.separate(s, "\n")
		w.code(n.(*ast.FencedCodeBlock), s)
		return nil
	case ast.KindThematicBreak:
		return nil
	default:
		w.separate(s, "\n")
		inner.marked = true
		return w.inlines(n, inner)
	}
}

func (w *walker) row(row ast.Node, s state) error {
	for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
		if cell.PreviousSibling() != nil {
			w.text("\t", s)
		}
		inner := s
		inner.marked = true
		if err := w.inlines(cell, inner); err != nil {
			return err
		}
	}
	return nil
}

// separate puts something between two blocks.
func (w *walker) separate(s state, with string) {
	if w.first {
		w.first = false
		return
	}
	w.text(with, s)
}

func (w *walker) code(n *ast.FencedCodeBlock, s state) {
	w.doc.Code = true
	lines := n.Lines()
	var b strings.Builder
	for i := range lines.Len() {
		line := lines.At(i)
		b.Write(line.Value(w.src))
	}
	w.plain.WriteString(strings.TrimSuffix(b.String(), "\n"))
	if !s.quoted && !s.hidden {
		w.preview.WriteString(hiddenCode)
	}
}

// text adds to both texts, where the preview shows it.
func (w *walker) text(t string, s state) {
	w.plain.WriteString(t)
	if !s.quoted && !s.hidden {
		w.preview.WriteString(t)
	}
}

func (w *walker) flushPlain() {
	if w.plain.Len() > 0 {
		w.doc.Plain = append(w.doc.Plain, domain.Piece{Text: w.plain.String(), Ref: -1})
		w.plain.Reset()
	}
}

func (w *walker) flushPreview() {
	if w.preview.Len() > 0 {
		w.doc.Preview = append(w.doc.Preview, domain.Piece{Text: w.preview.String(), Ref: -1})
		w.preview.Reset()
	}
}

// ref adds a reference to the document and its label to the texts.
func (w *walker) ref(r domain.Ref, s state) {
	r.Quoted = s.quoted
	w.doc.Refs = append(w.doc.Refs, r)
	at := len(w.doc.Refs) - 1
	w.flushPlain()
	w.doc.Plain = append(w.doc.Plain, domain.Piece{Ref: at})
	if !s.quoted && !s.hidden {
		w.flushPreview()
		w.doc.Preview = append(w.doc.Preview, domain.Piece{Ref: at})
	}
}

// run is text of one parent without a break in it.
type run struct {
	start, stop int
	// marked says that it begins directly behind an opening mark or its block, named that it
	// begins directly behind a reference, which then counts like the name it stands for.
	marked, named bool
}

func (w *walker) inlines(parent ast.Node, s state) error {
	if s.depth > w.maxDeep {
		return errDeep
	}
	var r run
	broken := false
	flush := func() {
		if r.stop > r.start {
			w.scan(r, s)
		}
		r = run{}
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		t, isText := n.(*ast.Text)
		if !isText {
			flush()
			broken = false
			if err := w.inline(n, s); err != nil {
				return err
			}
			continue
		}
		if t.Segment.Start == r.stop && r.stop > r.start {
			r.stop = t.Segment.Stop
		} else {
			flush()
			r = run{start: t.Segment.Start, stop: t.Segment.Stop}
			r.marked = broken || s.marked && n.PreviousSibling() == nil
			_, r.named = n.PreviousSibling().(*token)
			broken = false
		}
		if t.SoftLineBreak() || t.HardLineBreak() {
			flush()
			w.text("\n", s)
			broken = true
		}
	}
	flush()
	return nil
}

func (w *walker) inline(n ast.Node, s state) error {
	inner := s
	// A mark that opens directly behind a reference was text when the reference was a typed
	// name, so what follows it is no more a name now than it was then.
	_, named := n.PreviousSibling().(*token)
	inner.depth, inner.marked = s.depth+1, !named
	switch n := n.(type) {
	case *ast.CodeSpan:
		w.doc.Code = true
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				w.text(strings.ReplaceAll(string(t.Segment.Value(w.src)), "\n", " "), s)
			}
		}
	case *ast.Link:
		return w.link(n, string(n.Destination), inner)
	case *ast.Image:
		return w.link(n, string(n.Destination), inner)
	case *ast.AutoLink:
		w.url(string(n.URL(w.src)), s)
	case *bareURL:
		w.url(string(n.segment.Value(w.src)), s)
	case *token:
		if s.linked {
			w.text(string(w.src[n.ref.Start:n.ref.End]), s)
		} else {
			w.ref(n.ref, s)
		}
	case *spoiler:
		if !s.quoted && !s.hidden {
			w.preview.WriteString(hiddenSpoiler)
		}
		inner.hidden = true
		return w.inlines(n, inner)
	case *extast.TaskCheckBox:
	default:
		return w.inlines(n, inner)
	}
	return nil
}

// link gives the text of a link and then its target, which the preview leaves out.
func (w *walker) link(n ast.Node, target string, s state) error {
	s.linked = true
	if err := w.inlines(n, s); err != nil {
		return err
	}
	w.plain.WriteString(" " + target)
	if allowedTarget(target) {
		w.doc.URLs = append(w.doc.URLs, target)
	}
	return nil
}

func (w *walker) url(target string, s state) {
	w.text(target, s)
	if allowedTarget(target) {
		w.doc.URLs = append(w.doc.URLs, target)
	}
}

// allowedTarget tells what may be a link; anything else is text with a target nobody follows.
func allowedTarget(target string) bool {
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if len(target) > len(scheme) && strings.EqualFold(target[:len(scheme)], scheme) {
			return true
		}
	}
	// Browsers read a backslash as a slash, so both would begin another host.
	return strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "//") && !strings.HasPrefix(target, `/\`)
}

// scan looks for typed names in a run of text and adds the run to the texts.
func (w *walker) scan(r run, s state) {
	src := w.src[:r.stop]
	from, escaped := r.start, false
	for i := r.start; i < r.stop; i++ {
		c := src[i]
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case (c == '@' || c == '#') && !s.linked && (i == r.start && r.marked || opens(src, i) && !(i == r.start && r.named)):
			ref, ok := typedName(src, i)
			if !ok || c == '#' && i > 0 && src[i-1] == '&' { // A character reference like &#65;.
				continue
			}
			w.text(visible(src[from:i]), s)
			w.ref(ref, s)
			from, i = ref.End, ref.End-1
		}
	}
	w.text(visible(src[from:]), s)
}

// opens reports whether a name may begin at i, judged by the character in front of it.
func opens(src []byte, i int) bool {
	before, _ := utf8.DecodeLastRune(src[:i])
	return i == 0 || !isWord(before) && !strings.ContainsRune("_.-/@#", before)
}

// isWord reports whether a character is a letter or digit of any script.
func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// typedName reads @name, @_name or #name at i.
func typedName(src []byte, i int) (domain.Ref, bool) {
	ref := domain.Ref{Kind: domain.RefTyped, Start: i}
	if src[i] == '#' {
		ref.Kind = domain.RefTypedChannel
	}
	i++
	if ref.Kind == domain.RefTyped && i+1 < len(src) && src[i] == '_' && isNameStart(src[i+1]) {
		ref.Silent = true
		i++
	}
	if i >= len(src) || !isNameStart(src[i]) {
		return ref, false
	}
	end := i
	for end < len(src) && (isNameStart(src[end]) || strings.IndexByte("._-", src[end]) >= 0) {
		end++
	}
	ref.Name, ref.End = string(src[i:end]), end
	return ref, true
}

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// visible is a text as it is shown: without the backslashes of escapes and with entities as
// the characters they stand for.
func visible(b []byte) string {
	if strings.IndexByte(util.BytesToReadOnlyString(b), '\\') < 0 && strings.IndexByte(util.BytesToReadOnlyString(b), '&') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch {
		case b[i] == '\\' && i+1 < len(b) && util.IsPunct(b[i+1]):
			i++
			out = append(out, b[i])
		case b[i] == '&':
			n, text := entity(b[i:])
			out = append(out, text...)
			i += n - 1
		default:
			out = append(out, b[i])
		}
	}
	return string(out)
}

// entity reads a character reference; what is none stays as it is.
func entity(b []byte) (n int, text []byte) {
	const longest = 34
	for n = 1; n < len(b) && n < longest; n++ {
		if b[n] == ';' {
			raw := b[:n+1]
			if text = util.ResolveEntityNames(raw); len(text) == len(raw) {
				text = util.ResolveNumericReferences(raw)
			}
			return n + 1, text
		}
	}
	return 1, b[:1]
}
