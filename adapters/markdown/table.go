package markdown

import (
	"bytes"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// maxCells bounds the cells of a table. Each row of a table has as many cells as its first
	// one, so a short text can have millions. A larger table stays a text.
	maxCells = 10_000
	// maxWidth is the width up to which a column is aligned. A wider cell moves the rest of its
	// row, because otherwise one long cell would fill every row with spaces.
	maxWidth = 60
)

// smallTables makes tables of paragraphs that are not too large.
type smallTables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (s smallTables) Transform(paragraph *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, columns := paragraph.Lines(), 0
	for i := range lines.Len() {
		line := lines.At(i)
		columns = max(columns, bytes.Count(line.Value(reader.Source()), []byte("|")))
	}
	if columns*lines.Len() <= maxCells {
		s.ParagraphTransformer.Transform(paragraph, reader, pc)
	}
}

// aligned returns a table as aligned text, because no chat dialect has tables.
func (b *builder) aligned(n *extast.Table) string {
	var rows [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, b.plain(cell, true))
		}
		for len(cells) > 0 && cells[len(cells)-1] == "" {
			cells = cells[:len(cells)-1]
		}
		rows = append(rows, cells)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = min(max(widths[i], uniseg.StringWidth(cell)), maxWidth)
		}
	}
	var out strings.Builder
	for i, row := range rows {
		writeRow(&out, row, widths, n.Alignments)
		if i == 0 {
			writeRule(&out, widths)
		}
	}
	return out.String()
}

func writeRow(out *strings.Builder, row []string, widths []int, alignments []extast.Alignment) {
	var line strings.Builder
	for i, cell := range row {
		if i > 0 {
			line.WriteString(" | ")
		}
		room := max(widths[i]-uniseg.StringWidth(cell), 0)
		left := 0
		switch {
		case i < len(alignments) && alignments[i] == extast.AlignRight:
			left = room
		case i < len(alignments) && alignments[i] == extast.AlignCenter:
			left = room / 2
		}
		line.WriteString(strings.Repeat(" ", left) + cell + strings.Repeat(" ", room-left))
	}
	out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

func writeRule(out *strings.Builder, widths []int) {
	for i, width := range widths {
		if i > 0 {
			out.WriteString("-+-")
		}
		out.WriteString(strings.Repeat("-", width))
	}
	out.WriteString("\n")
}
