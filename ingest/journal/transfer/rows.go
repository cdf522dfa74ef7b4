package transfer

import (
	"context"
	"slices"
	"strings"

	"parley/ingest/journal"
)

// row is one row: int64, string, []byte or nil for each column.
type row []any

// span are the threads after one id and up to another; nil is no bound. Rows that
// belong to no thread count as those of thread 0.
type span struct{ after, upTo *int64 }

// reader reads the tables of one store.
type reader struct {
	engine journal.Engine
	// carried reads rows as a copy has them, not as they are.
	carried bool
	// storable is the text as the copy's engine can keep it.
	storable func(string) string
	rows     int64 // of a batch, at the most
	bytes    int64 // of the texts and blobs of a batch, except where one row is larger
}

// batch is some rows of a table, in the order of its primary key.
type batch struct {
	rows    []row
	threads []int64 // whose the rows are; 0 for nobody's
	last    row     // the primary key of the last one looked at, as the source has it; nil for none
}

// next looks at the rows that follow a primary key, nil for the first ones, and
// reads those of some threads among them. How many fit is found out before any is
// read, so that memory is bounded; which threads they are of is no part of that,
// so that no transaction looks at more.
func (r reader) next(ctx context.Context, t table, after row, among span) (b batch, err error) {
	cond, args := t.where(after)
	whose, bounds := t.among(among)
	err = r.engine.Read(ctx, func(tx journal.Tx) (err error) {
		b = batch{}
		b.last, err = r.end(tx, t, cond, args)
		if err != nil || b.last == nil {
			return err
		}
		query := "SELECT " + t.whose() + ", " + t.selected(r.carried) + " FROM " + t.name +
			cond + " AND " + t.compared("<=") + whose + " ORDER BY " + names(t.keys())
		return tx.Rows(func(scan func(...any) error) error {
			cells := newCells(t)
			if err := scan(cells.dest...); err != nil {
				return err
			}
			b.rows = append(b.rows, cells.row(t, r.storable))
			b.threads = append(b.threads, cells.thread)
			return nil
		}, query, slices.Concat(args, b.last, bounds)...)
	})
	return b, err
}

// end is the primary key of the last row of a batch; nil where there is none.
func (r reader) end(tx journal.Tx, t table, cond string, args []any) (last row, err error) {
	query := "SELECT " + names(t.keys()) + ", " + t.size() + " FROM " + t.name + cond +
		" ORDER BY " + names(t.keys()) + " LIMIT CAST(? AS BIGINT)"
	var total int64
	full := false
	err = tx.Rows(func(scan func(...any) error) error {
		key, size := newKey(t), int64(0)
		if err := scan(append(key.dest, &size)...); err != nil {
			return err
		}
		total += size
		full = full || last != nil && total > r.bytes
		if !full {
			last = key.row(t, keep)
		}
		return nil
	}, query, slices.Concat(args, []any{r.rows})...)
	return last, err
}

// keep is every text as it is.
func keep(s string) string { return s }

// where is the condition of the rows after a primary key.
func (t table) where(after row) (cond string, args []any) {
	cond = " WHERE 1 = 1"
	if t.own != "" {
		cond += " AND " + t.own
	}
	if after != nil {
		cond += " AND " + t.compared(">")
		args = append(args, after...)
	}
	return cond, args
}

// among is the further condition of those that belong to some threads.
func (t table) among(among span) (cond string, args []any) {
	if among.after != nil {
		cond += " AND " + t.whose() + " > ?"
		args = append(args, *among.after)
	}
	if among.upTo != nil {
		cond += " AND " + t.whose() + " <= ?"
		args = append(args, *among.upTo)
	}
	return cond, args
}

// compared holds the primary key against arguments.
func (t table) compared(sign string) string {
	return "(" + names(t.keys()) + ") " + sign + " (" + marks(t.key) + ")"
}

// whose is the thread of a row.
func (t table) whose() string {
	if t.thread == "" {
		return "0"
	}
	return "coalesce(" + t.thread + ", 0)"
}

// size is how many bytes the texts and blobs of a row have.
func (t table) size() string {
	sum := "0"
	for _, c := range t.columns {
		if c.kind != integer {
			sum += " + coalesce(octet_length(" + c.name + "), 0)"
		}
	}
	return sum
}

// selected are a row's columns, each nullable one followed by whether it is null:
// that can't be told from what is read of it.
func (t table) selected(carried bool) string {
	var list []string
	for _, c := range t.columns {
		if carried && c.carried != "" {
			list = append(list, c.carried)
			continue
		}
		list = append(list, c.name)
		if c.nullable {
			list = append(list, "CASE WHEN "+c.name+" IS NULL THEN 1 ELSE 0 END")
		}
	}
	return strings.Join(list, ", ")
}

// cells are the variables that a row is scanned into.
type cells struct {
	thread int64
	cells  []cell
	dest   []any
}

type cell struct {
	number int64
	text   string
	bytes  []byte
	null   bool
}

func newCells(t table) *cells {
	c := &cells{cells: make([]cell, len(t.columns))}
	c.dest = append(c.dest, &c.thread)
	c.add(t.columns)
	return c
}

// newKey is for the primary key alone.
func newKey(t table) *cells {
	c := &cells{cells: make([]cell, t.key)}
	c.add(t.keys())
	return c
}

func (c *cells) add(columns []column) {
	for i, column := range columns {
		cell := &c.cells[i]
		switch column.kind {
		case integer:
			c.dest = append(c.dest, &cell.number)
		case text:
			c.dest = append(c.dest, &cell.text)
		case blob:
			c.dest = append(c.dest, &cell.bytes)
		}
		if column.nullable {
			c.dest = append(c.dest, &cell.null)
		}
	}
}

// row is what was scanned.
func (c *cells) row(t table, storable func(string) string) row {
	made := make(row, len(c.cells))
	for i, cell := range c.cells {
		switch kind := t.columns[i].kind; {
		case cell.null:
		case kind == integer:
			made[i] = cell.number
		case kind == text:
			made[i] = storable(cell.text)
		case cell.bytes == nil:
			made[i] = []byte{}
		default:
			made[i] = cell.bytes
		}
	}
	return made
}
