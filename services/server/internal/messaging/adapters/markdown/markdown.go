// SPDX-License-Identifier: Apache-2.0

// Package markdown reads contents in the dialect of messages. It promises that every parser
// of the dialect finds the same: testdata/markdown holds the cases that bind them all.
//
// The server never makes HTML. It parses to know whom a message names, what it links to and
// what its plain text is; clients parse again to show it.
package markdown

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/OWNER/bothy/services/server/internal/kernel/errs"
	"github.com/OWNER/bothy/services/server/internal/kernel/textcheck"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// Config bounds contents.
type Config struct {
	MaxContentBytes  int64 `key:"message.max_content_bytes" type:"bytes" default:"65536" min:"1024" max:"262144" doc:"Largest content of a message; less than http.max_json_body_bytes."`
	MaxClusterPoints int   `key:"message.max_cluster_code_points" default:"32" min:"4" max:"1024" doc:"Code points of one character, against stacked marks."`
	MaxNesting       int   `key:"message.max_nesting" default:"32" min:"4" max:"100" doc:"Depth of quotes, lists and marks inside each other."`
}

// Parser implements domain.Parser.
type Parser struct {
	config Config
	parser parser.Parser
}

// New makes the parser; it is safe for concurrent use.
func New(config Config) *Parser { return &Parser{config: config, parser: newParser()} }

var _ domain.Parser = (*Parser)(nil)

const pointer = "/content"

// Parse implements domain.Parser.
func (p *Parser) Parse(content string) (domain.Document, error) {
	content = unixBreaks(content)
	if err := p.check(content); err != nil {
		return domain.Document{}, err
	}
	if isPlain(content) {
		piece := []domain.Piece{{Text: strings.TrimRight(content, " "), Ref: -1}}
		return domain.Document{Source: content, Plain: piece, Preview: piece}, nil
	}
	src := []byte(content)
	if markersDepth(content) > p.config.MaxNesting {
		return domain.Document{}, tooDeep(p.config.MaxNesting)
	}
	w := &walker{src: src, maxDeep: p.config.MaxNesting, doc: domain.Document{Source: content}}
	if err := w.document(p.parser.Parse(text.NewReader(src))); errors.Is(err, errDeep) {
		return domain.Document{}, tooDeep(p.config.MaxNesting)
	}
	clean(w.doc.Plain)
	clean(w.doc.Preview)
	return w.doc, nil
}

func tooDeep(limit int) error {
	return errs.Invalid(pointer, "too_deep", fmt.Sprintf("Quotes, lists and marks may lie %d deep inside each other.", limit))
}

// unixBreaks makes every line break a LF.
func unixBreaks(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func (p *Parser) check(content string) error {
	if int64(len(content)) > p.config.MaxContentBytes {
		return errs.New(errs.CodePayloadTooLarge, fmt.Sprintf("A message may have %d bytes, this one has %d.", p.config.MaxContentBytes, len(content))).
			With("limit", p.config.MaxContentBytes).With("actual", len(content))
	}
	if err := textcheck.Body(content); err != nil {
		return errs.Invalid(pointer, err.Error(), "The content holds characters that are not allowed.")
	}
	shown, wide := false, false
	for _, r := range content {
		wide = wide || r >= 0x300
		if r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe {
			return errs.Invalid(pointer, "noncharacter", "The content holds code points that are no characters.")
		}
		shown = shown || isVisible(r)
	}
	if !shown {
		return errs.Invalid(pointer, "empty", "A message needs a content.")
	}
	if wide && longestCluster(content) > p.config.MaxClusterPoints {
		return errs.Invalid(pointer, "cluster_too_long", fmt.Sprintf("One character may have at most %d code points.", p.config.MaxClusterPoints))
	}
	return nil
}

func isVisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' '
	}
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Mn, r) && r != 0x2800 && r != 0x3164 && r != 0x115f && r != 0x1160 && r != 0xffa0
}

func longestCluster(s string) int {
	longest, state := 0, -1
	for s != "" {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		longest = max(longest, utf8.RuneCountInString(cluster))
	}
	return longest
}

// isPlain recognises contents in which nothing can have a meaning, which most short messages
// are: one line of letters, digits and a little punctuation that begins with a letter.
func isPlain(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	if !unicode.IsLetter(first) || strings.Contains(s, "://") {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == ' ', c == '.', c == ',', c == '?', c == '\'', c == '"', c == ':', c == ';', c == '(', c == ')', c == '-', c == '/', c == '!':
		case c >= 0x80 && c != 0xe2: // Bidi controls begin with E2.
		default:
			return false
		}
	}
	return true
}

// markersDepth is how deep the marks at the beginning of one line would nest quotes and lists.
// The parser underneath opens a block for each, so too many are refused before it sees them.
func markersDepth(s string) int {
	deepest := 0
	for s != "" {
		line, rest, _ := strings.Cut(s, "\n")
		s = rest
		deepest = max(deepest, lineDepth(line))
	}
	return deepest
}

func lineDepth(line string) int {
	if isThematic(line) {
		return 0
	}
	depth := 0
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ', c == '\t':
			i++
		case c == '>':
			depth++
			i++
		case c == '-', c == '+', c == '*':
			if i+1 < len(line) && line[i+1] != ' ' && line[i+1] != '\t' {
				return depth
			}
			depth++
			i++
		case c >= '0' && c <= '9':
			n := i
			for n < len(line) && n-i < 10 && line[n] >= '0' && line[n] <= '9' {
				n++
			}
			if n+1 >= len(line) || line[n] != '.' && line[n] != ')' || line[n+1] != ' ' && line[n+1] != '\t' {
				return depth
			}
			depth++
			i = n + 1
		default:
			return depth
		}
	}
	return depth
}

// isThematic reports whether a line is a rule made of one repeated mark.
func isThematic(line string) bool {
	marks := strings.ReplaceAll(strings.ReplaceAll(line, " ", ""), "\t", "")
	if len(marks) < 3 || marks[0] != '-' && marks[0] != '*' && marks[0] != '_' {
		return false
	}
	return strings.Trim(marks, marks[:1]) == ""
}

// clean takes characters out of plain texts that reorder what stands around them.
func clean(pieces []domain.Piece) {
	for i, p := range pieces {
		if strings.IndexByte(p.Text, 0xe2) >= 0 {
			pieces[i].Text = strings.Map(func(r rune) rune {
				if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f {
					return -1
				}
				return r
			}, p.Text)
		}
	}
}

// Cut implements domain.Parser.
func (p *Parser) Cut(s string, clusters int) string {
	rest, state := s, -1
	for range clusters {
		if rest == "" {
			return s
		}
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return s[:len(s)-len(rest)]
}
