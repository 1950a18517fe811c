// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/OWNER/bothy/services/server/internal/kernel/ids"
	"github.com/OWNER/bothy/services/server/internal/messaging/domain"
)

// newParser puts the dialect together. What CommonMark has and the dialect has not is left
// out here: raw HTML, setext headings, indented code and link reference definitions.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(paragraphParser{parser.NewParagraphParser()}, 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(tokenParser{}, 150),
			util.Prioritized(boundedLinks(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(boundedEmphasis(), 500),
			util.Prioritized(boundedPairs('~'), 500),
			util.Prioritized(boundedPairs('|'), 500),
			util.Prioritized(urlParser{}, 999),
		),
		parser.WithParagraphTransformers(util.Prioritized(boundedTables{extension.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// paragraphParser takes indented lines too, since they are no code.
type paragraphParser struct{ parser.BlockParser }

func (paragraphParser) CanAcceptIndentedLine() bool { return true }

// spoilerKind marks text that is hidden until somebody asks for it.
var spoilerKind = ast.NewNodeKind("Spoiler")

type spoiler struct{ ast.BaseInline }

func (*spoiler) Kind() ast.NodeKind         { return spoilerKind }
func (n *spoiler) Dump(src []byte, lvl int) { ast.DumpHelper(n, src, lvl, nil, nil) }

// pairParser reads strikethrough (~~) and spoilers (||): exactly two marks on each side.
type pairParser struct{ mark byte }

func (p pairParser) Trigger() []byte { return []byte{p.mark} }

func (p pairParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	node := parser.ScanDelimiter(line, before, 2, p)
	if node == nil {
		return nil
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	block.Advance(node.OriginalLength)
	if node.OriginalLength != 2 {
		return ast.NewTextSegment(node.Segment)
	}
	pc.PushDelimiter(node)
	return node
}

func (p pairParser) IsDelimiter(b byte) bool { return b == p.mark }

func (p pairParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

func (p pairParser) OnMatch(int) ast.Node {
	if p.mark == '~' {
		return extast.NewStrikethrough()
	}
	return &spoiler{}
}

// tokenKind is a reference in canonical form.
var tokenKind = ast.NewNodeKind("Token")

type token struct {
	ast.BaseInline
	ref domain.Ref
}

func (*token) Kind() ast.NodeKind         { return tokenKind }
func (n *token) Dump(src []byte, lvl int) { ast.DumpHelper(n, src, lvl, nil, nil) }

// tokenParser reads <@ID>, <@_ID>, <@&ID>, <@_&ID>, <#ID>, <@here>, <@channel> and <@thread>.
type tokenParser struct{}

func (tokenParser) Trigger() []byte { return []byte{'<'} }

// maxToken is the length of the longest token: <@_&ID>.
const maxToken = 41

func (tokenParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	end := bytes.IndexByte(line[:min(len(line), maxToken)], '>')
	if end < 0 {
		return nil
	}
	ref, ok := readToken(line[1:end])
	if !ok {
		return nil
	}
	ref.Start, ref.End = segment.Start, segment.Start+end+1
	block.Advance(end + 1)
	return &token{ref: ref}
}

func readToken(inner []byte) (ref domain.Ref, ok bool) {
	if len(inner) < 2 {
		return ref, false
	}
	rest := inner[1:]
	switch inner[0] {
	case '#':
		ref.Kind = domain.RefChannelRef
	case '@':
		switch string(rest) {
		case "here", "channel", "thread":
			ref.Kind = domain.RefKind(rest)
			return ref, true
		}
		ref.Kind = domain.RefPrincipal
		rest, ref.Silent = bytes.CutPrefix(rest, []byte("_"))
		if after, group := bytes.CutPrefix(rest, []byte("&")); group {
			ref.Kind, rest = domain.RefGroup, after
		}
	default:
		return ref, false
	}
	id, err := ids.Parse(string(rest))
	ref.ID = id
	return ref, err == nil && !id.IsZero()
}

// urlKind is an address that stands in the text without any mark.
var urlKind = ast.NewNodeKind("URL")

type bareURL struct {
	ast.BaseInline
	segment text.Segment
}

func (*bareURL) Kind() ast.NodeKind         { return urlKind }
func (n *bareURL) Dump(src []byte, lvl int) { ast.DumpHelper(n, src, lvl, nil, nil) }

// urlParser reads addresses with http:// or https:// behind anything but a letter or digit.
// The parser underneath asks at punctuation, at spaces and where a line or a node begins.
type urlParser struct{}

func (urlParser) Trigger() []byte { return []byte(" \"'(:;,<>=|*_~[{}!?/.)]-") }

func (urlParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if pc.IsInLinkLabel() {
		return nil
	}
	line, segment := block.PeekLine()
	skip := 0
	if len(line) > 0 && line[0] != 'h' {
		skip = 1
	} else if before := block.PrecendingCharacter(); isWord(before) {
		return nil
	}
	n := urlLength(line[skip:])
	if n == 0 {
		return nil
	}
	if skip > 0 {
		ast.MergeOrAppendTextSegment(parent, segment.WithStop(segment.Start+skip))
	}
	block.Advance(skip + n)
	start := segment.Start + skip
	return &bareURL{segment: text.NewSegment(start, start+n)}
}

// urlLength is how much of the text is an address, 0 for none. Punctuation at the end and
// brackets that were not opened inside belong to the sentence around it.
func urlLength(b []byte) int {
	scheme := 0
	switch {
	case bytes.HasPrefix(b, []byte("http://")):
		scheme = len("http://")
	case bytes.HasPrefix(b, []byte("https://")):
		scheme = len("https://")
	default:
		return 0
	}
	if len(b) == scheme || !isHostStart(b[scheme]) {
		return 0
	}
	end := scheme
	round, square := 0, 0
scan:
	for end < len(b) {
		switch c := b[end]; {
		case c <= ' ', c == '<', c == '>', c == '"', c == '`', c == '|', c == '\\':
			break scan
		case c == '(':
			round++
		case c == '[':
			square++
		case c == ')':
			if round--; round < 0 {
				break scan
			}
		case c == ']':
			if square--; square < 0 {
				break scan
			}
		}
		end++
	}
	for end > scheme {
		trimmed := bytes.TrimRight(b[scheme:end], "?!.,:;*_~'")
		for _, mark := range []string{"。", "，", "、", "！", "？", "；", "：", "）", "」", "』", "】", "…"} {
			trimmed = bytes.TrimSuffix(trimmed, []byte(mark))
		}
		if scheme+len(trimmed) == end {
			break
		}
		end = scheme + len(trimmed)
	}
	if end == scheme {
		return 0
	}
	return end
}

func isHostStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '[' || c >= 0x80
}
