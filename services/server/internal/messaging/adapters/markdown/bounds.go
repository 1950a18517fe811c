// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The parser underneath looks back over all open marks of a block for every mark that closes
// one, and over the rest of the line for every link that may end there. Texts made to be slow
// repeat exactly that, so beyond these numbers, which no written block has, marks are text.
const (
	maxMarks       = 1000
	maxFailedLinks = 250
	// maxCells bounds the tables of a content: every row is filled up to the width of its
	// table, so a wide table of short rows is the square of what was written.
	maxCells = 20_000
)

// The parser underneath numbers these keys and allows it only while the program starts.
var (
	marksKey = parser.NewContextKey()
	linksKey = parser.NewContextKey()
	cellsKey = parser.NewContextKey()
	pairKeys = map[byte]parser.ContextKey{'~': parser.NewContextKey(), '|': parser.NewContextKey()}
)

// bounded lets an inline parser work a number of times in a block.
type bounded struct {
	parser.InlineParser
	key parser.ContextKey
	max int
	// spends tells whether a call counts.
	spends func(first byte, result ast.Node) bool
}

type budget struct {
	block ast.Node
	spent int
}

func boundedEmphasis() parser.InlineParser {
	return &bounded{InlineParser: parser.NewEmphasisParser(), key: marksKey, max: maxMarks, spends: func(_ byte, n ast.Node) bool {
		return n != nil
	}}
}

func boundedLinks() parser.InlineParser {
	return &bounded{InlineParser: parser.NewLinkParser(), key: linksKey, max: maxFailedLinks, spends: func(first byte, n ast.Node) bool {
		return first == ']' && n == nil
	}}
}

// Parse implements parser.InlineParser.
func (p *bounded) Parse(block ast.Node, reader text.Reader, pc parser.Context) ast.Node {
	b, _ := pc.Get(p.key).(*budget)
	if b == nil {
		b = &budget{}
		pc.Set(p.key, b)
	}
	if b.block != block {
		b.block, b.spent = block, 0
	}
	if b.spent >= p.max {
		return nil
	}
	first := reader.Peek()
	n := p.InlineParser.Parse(block, reader, pc)
	if p.spends(first, n) {
		b.spent++
	}
	return n
}

// CloseBlock implements parser.CloseBlocker for the parsers that need it.
func (p *bounded) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := p.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

func boundedPairs(mark byte) parser.InlineParser {
	return &bounded{InlineParser: pairParser{mark}, key: pairKeys[mark], max: maxMarks, spends: func(_ byte, n ast.Node) bool {
		_, isMark := n.(*parser.Delimiter)
		return isMark
	}}
}

// boundedTables leaves a paragraph as it is when its tables would have too many cells.
type boundedTables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t boundedTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, columns := node.Lines(), 0
	for i := range lines.Len() {
		segment := lines.At(i)
		if line := segment.Value(reader.Source()); len(bytes.Trim(line, "|-: \t\r\n")) == 0 {
			columns = max(columns, bytes.Count(line, []byte("|"))+1)
		}
	}
	cells, _ := pc.Get(cellsKey).(int)
	if cells += columns * lines.Len(); cells > maxCells {
		return
	}
	pc.Set(cellsKey, cells)
	t.ParagraphTransformer.Transform(node, reader, pc)
}
