// SPDX-License-Identifier: Apache-2.0

package sqlscan

import (
	"strings"
	"unicode"
)

// kind says what a token is. A literal becomes one token that no rule takes for a word; a comment becomes none.
type kind int

const (
	word kind = iota
	quoted
	literal
	mark
)

type token struct {
	kind kind
	// text is lower case for words, unescaped for quoted names, the single character of a mark, and what stands
	// between the quotes of a literal.
	text string
	line int
}

// is reports whether the token is one of these keywords or marks. A quoted name is never a keyword.
func (t token) is(texts ...string) bool {
	if t.kind != word && t.kind != mark {
		return false
	}
	for _, s := range texts {
		if t.text == s {
			return true
		}
	}
	return false
}

func (t token) isName() bool { return t.kind == word || t.kind == quoted }

type lexer struct {
	in   []rune
	at   int
	line int
	out  []token
}

func tokens(sql string) []token {
	l := &lexer{in: []rune(sql), line: 1}
	for l.at < len(l.in) {
		l.next()
	}
	return l.out
}

func (l *lexer) peek(ahead int) rune {
	if l.at+ahead < len(l.in) {
		return l.in[l.at+ahead]
	}
	return 0
}

func (l *lexer) advance(n int) {
	for ; n > 0 && l.at < len(l.in); n-- {
		if l.in[l.at] == '\n' {
			l.line++
		}
		l.at++
	}
}

func (l *lexer) emit(k kind, text string, line int) {
	l.out = append(l.out, token{kind: k, text: text, line: line})
}

func (l *lexer) next() {
	c, line := l.peek(0), l.line
	switch {
	case unicode.IsSpace(c):
		l.advance(1)
	case c == '-' && l.peek(1) == '-':
		for l.at < len(l.in) && l.peek(0) != '\n' {
			l.advance(1)
		}
	case c == '/' && l.peek(1) == '*':
		l.comment()
	case c == '\'':
		l.emit(literal, l.literal(false), line)
	case (c == 'e' || c == 'E') && l.peek(1) == '\'':
		l.advance(1)
		l.emit(literal, l.literal(true), line)
	case c == '"':
		l.emit(quoted, l.quotedName(), line)
	case c == '$' && l.dollarTag() != "":
		l.emit(literal, l.dollarLiteral(l.dollarTag()), line)
	case c == '$' || c == '@':
		// A parameter: $1, @name. The name must not look like a word of the statement.
		l.advance(1)
		for isWordRune(l.peek(0)) {
			l.advance(1)
		}
		l.emit(literal, "", line)
	case unicode.IsDigit(c):
		for isWordRune(l.peek(0)) || l.peek(0) == '.' {
			l.advance(1)
		}
		l.emit(literal, "", line)
	case isWordRune(c):
		start := l.at
		for isWordRune(l.peek(0)) {
			l.advance(1)
		}
		l.emit(word, strings.ToLower(string(l.in[start:l.at])), line)
	default:
		l.emit(mark, string(c), line)
		l.advance(1)
	}
}

func isWordRune(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

func (l *lexer) comment() {
	depth := 0
	for l.at < len(l.in) {
		switch {
		case l.peek(0) == '/' && l.peek(1) == '*':
			depth++
			l.advance(2)
		case l.peek(0) == '*' && l.peek(1) == '/':
			depth--
			l.advance(2)
			if depth == 0 {
				return
			}
		default:
			l.advance(1)
		}
	}
}

func (l *lexer) literal(backslash bool) string {
	var b strings.Builder
	l.advance(1)
	for l.at < len(l.in) {
		switch {
		case backslash && l.peek(0) == '\\':
			b.WriteRune(l.peek(1))
			l.advance(2)
		case l.peek(0) == '\'' && l.peek(1) == '\'':
			b.WriteRune('\'')
			l.advance(2)
		case l.peek(0) == '\'':
			l.advance(1)
			return b.String()
		default:
			b.WriteRune(l.peek(0))
			l.advance(1)
		}
	}
	return b.String()
}

func (l *lexer) quotedName() string {
	var b strings.Builder
	l.advance(1)
	for l.at < len(l.in) {
		switch {
		case l.peek(0) == '"' && l.peek(1) == '"':
			b.WriteRune('"')
			l.advance(2)
		case l.peek(0) == '"':
			l.advance(1)
			return b.String()
		default:
			b.WriteRune(l.peek(0))
			l.advance(1)
		}
	}
	return b.String()
}

// dollarTag returns the opening tag of a dollar-quoted literal at the position, or "".
func (l *lexer) dollarTag() string {
	if unicode.IsDigit(l.peek(1)) {
		return ""
	}
	for i := 1; ; i++ {
		c := l.peek(i)
		if c == '$' {
			return string(l.in[l.at : l.at+i+1])
		}
		if !isWordRune(c) {
			return ""
		}
	}
}

func (l *lexer) dollarLiteral(tag string) string {
	end := []rune(tag)
	l.advance(len(end))
	start := l.at
	for l.at < len(l.in) {
		if l.peek(0) == '$' && l.at+len(end) <= len(l.in) && string(l.in[l.at:l.at+len(end)]) == tag {
			body := string(l.in[start:l.at])
			l.advance(len(end))
			return body
		}
		l.advance(1)
	}
	return string(l.in[start:])
}
