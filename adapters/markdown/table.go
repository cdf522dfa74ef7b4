package markdown

import (
	"strings"

	"github.com/rivo/uniseg"
	extast "github.com/yuin/goldmark/extension/ast"
)

// aligned returns a table as aligned text, because no chat dialect has tables.
func (b *builder) aligned(n *extast.Table) string {
	var rows [][]string
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, b.plain(cell, true))
		}
		rows = append(rows, cells)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
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
		room := widths[i] - uniseg.StringWidth(cell)
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
