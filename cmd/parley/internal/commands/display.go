package commands

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// display is the output of a command for people.
type display struct {
	io.Writer
	colour bool
	width  int // of the terminal, in cells; 0 without a terminal, where nothing is cut
}

// displayOf returns the standard output of a command. It has colours on a terminal, or if --color asks for them.
func displayOf(c *cobra.Command) display {
	d := display{Writer: c.OutOrStdout(), colour: os.Getenv(forceColor) != ""}
	if f, ok := d.Writer.(*os.File); ok && isTerminal(f) {
		d.colour = colored()
		d.width, _, _ = term.GetSize(int(f.Fd())) // 0 if the terminal does not tell
	}
	return d
}

// style is how a text is shown where there are colours: a code of ECMA-48, chapter 8.3.117.
type style string

// The styles. Colours only repeat what a word or a sign says.
const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// paint returns a text in a style.
func (d display) paint(as style, text string) string {
	if !d.colour || as == plain || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// stateStyles are the styles of the states of workspaces, agents, runs, deliveries, dead letters and schedules. Other states are plain.
var stateStyles = map[string]style{
	"up": green, "idle": green, "done": green, "sent": green, "posted": green, "stored": green, "answered": green,
	"down": yellow, "starting": yellow, "unknown": yellow, "paused": yellow, "canceled": yellow, "cancelled": yellow, "interrupted": yellow, "pending": yellow,
	"refused": red, "failing": red, "failed": red, "dead": red,
	"stopped": dim, "quiet": dim, "standby": dim, "skipped": dim, "dropped": dim, "discarded": dim,
}

// cell is a text in a table.
type cell struct {
	text string
	as   style
}

// state returns the cell of a state.
func state(word string) cell { return cell{cmp.Or(word, "-"), stateStyles[word]} }

// table lays cells out in columns.
type table struct {
	display
	rows [][]cell
}

// minColumn is the width below which a column is not cut.
const minColumn = 8

// table returns a table with a header. On a terminal its widest columns are cut until it fits, but never the first one, by which a row is named.
func (d display) table(header ...string) *table {
	t := &table{display: d}
	row := make([]cell, len(header))
	for i, h := range header {
		row[i] = cell{h, dim}
	}
	t.rows = append(t.rows, row)
	return t
}

// facts returns a table of names and values. Nothing in it is cut.
func (d display) facts() *table {
	d.width = 0
	return &table{display: d}
}

// fact adds a name and its value.
func (t *table) fact(name string, value any) { t.add(cell{name, dim}, value) }

// add adds a row of texts, cells, or values as fmt prints them.
func (t *table) add(values ...any) {
	row := make([]cell, len(values))
	for i, v := range values {
		row[i] = cellOf(v)
	}
	t.rows = append(t.rows, row)
}

// end prints the table.
func (t *table) end() error {
	widths := t.widths()
	var b strings.Builder
	for _, row := range t.rows {
		for len(row) > 0 && row[len(row)-1].text == "" {
			row = row[:len(row)-1]
		}
		for i, c := range row {
			text := cut(c.text, widths[i])
			b.WriteString(t.paint(c.as, text))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(text)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(t, b.String())
	return err
}

// widths returns the widths of the columns, in cells.
func (t *table) widths() (widths []int) {
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(c.text))
		}
	}
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; t.width > 0 && total > t.width; total-- {
		widest := 0
		for i := 1; i < len(widths); i++ {
			if widest == 0 || widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumn || widest == 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// cut returns the beginning of a text that is wider than a column, with an ellipsis.
func cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	for left, g := width-1, uniseg.NewGraphemes(text); g.Next() && g.Width() <= left; left -= g.Width() {
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// cellOf returns the cell of a value.
func cellOf(v any) cell {
	switch v := v.(type) {
	case cell:
		return v
	case string:
		return cell{text: cmp.Or(v, "-")}
	}
	return cell{text: fmt.Sprint(v)}
}
