package markdown

import (
	"bytes"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxWork bounds the bytes that the parser of inlines may read in one text. Each sign of syntax
	// may read its whole block, so the work can grow as the square of the text. An answer of a model
	// with 100 KiB needs about a tenth of it. Signs behind the bound are text.
	maxWork = 32 << 20
	// maxDepth bounds the quotes and lists inside each other, because the parser reads each of them
	// again on every line. Deeper signs are text.
	maxDepth = 32
)

// workKey is the key of the work in a context of the parser: an *int of bytes.
var workKey = parser.NewContextKey()

// parse parses CommonMark within the bounds, and returns the work of its inlines in bytes.
func parse(source []byte) (document ast.Node, work int) {
	pc := parser.NewContext()
	pc.Set(workKey, &work)
	document = commonMark().Parse(text.NewReader(source), parser.WithContext(pc))
	return document, work
}

// commonMark parses CommonMark with tables, strikethrough and bare links. It does not
// parse link reference definitions: CommonMark does not show them, and in a chat
// "[Bob]: hello" is ordinary text. It is safe for concurrent use.
var commonMark = sync.OnceValue(func() parser.Parser {
	blocks, inlines := parser.DefaultBlockParsers(), parser.DefaultInlineParsers()
	inlines = append(inlines, util.Prioritized(flanked{doubleTildes{extension.NewStrikethroughParser()}}, 500))
	for i, p := range blocks {
		switch inner := p.Value.(parser.BlockParser); inner {
		case parser.NewBlockquoteParser(), parser.NewListParser():
			blocks[i].Value = boundedBlock{inner}
		case parser.NewHTMLBlockParser():
			blocks[i].Value = strangeBlock{inner}
		}
	}
	for i, p := range inlines {
		inner := p.Value.(parser.InlineParser)
		if inner == parser.NewEmphasisParser() {
			inner = flanked{inner}
		}
		inlines[i].Value = boundedInline{inner, readsBlock}
	}
	inlines = append(inlines, util.Prioritized(boundedInline{extension.NewLinkifyParser(), readsWord}, 999))
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inlines...),
		parser.WithParagraphTransformers(util.Prioritized(smallTables{extension.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
})

// doubleTildes is the parser of strikethrough without single tildes. They stand between numbers or mean "about",
// so that "10~15 or 20~30" strikes nothing out.
type doubleTildes struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (d doubleTildes) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if line, _ := block.PeekLine(); !bytes.HasPrefix(line, []byte("~~")) {
		return nil
	}
	return d.InlineParser.Parse(parent, block, pc)
}

// strangeBlock is the parser of blocks of HTML. A line that begins with an element which people see in another form
// begins a paragraph, so that the Markdown behind it is read.
type strangeBlock struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (s strangeBlock) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); knownTag.Match(bytes.TrimLeft(line, " ")) {
		return nil, parser.NoChildren
	}
	return s.BlockParser.Open(parent, reader, pc)
}

// boundedInline is a parser of inlines whose work is counted.
type boundedInline struct {
	parser.InlineParser
	// cost is the number of bytes that one call may read.
	cost func(parent ast.Node, block text.Reader) int
}

// Parse implements parser.InlineParser.
func (b boundedInline) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	work := pc.Get(workKey).(*int)
	if *work >= maxWork {
		return nil
	}
	*work += b.cost(parent, block)
	return b.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements parser.CloseBlocker.
func (b boundedInline) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if closer, ok := b.InlineParser.(parser.CloseBlocker); ok {
		closer.CloseBlock(parent, block, pc)
	}
}

// readsBlock is the cost of a sign that may read the rest of its block.
func readsBlock(parent ast.Node, block text.Reader) int {
	lines := parent.Lines()
	if lines.Len() == 0 {
		return len(block.Source())
	}
	_, at := block.Position()
	return lines.At(lines.Len()-1).Stop - at.Start
}

// readsWord is the cost of a bare link.
func readsWord(_ ast.Node, block text.Reader) int {
	line, _ := block.PeekLine()
	if len(line) > 0 { // the sign before the link
		line = line[1:]
	}
	if end := bytes.IndexAny(line, " \t\n"); end >= 0 {
		return end
	}
	return len(line)
}

// boundedBlock is a parser of quotes or lists that opens none too deep.
type boundedBlock struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (b boundedBlock) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		switch n.Kind() {
		case ast.KindBlockquote, ast.KindList:
			depth++
		}
	}
	if depth >= maxDepth {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}
