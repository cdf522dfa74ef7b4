package transfer

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"

	"parley/ingest/journal/storage"
)

// row is one row: an int64, string, []byte or nil for each column.
type row []any

// checksum is the number of a table's rows and a digest of them in any order, because
// engines order texts differently.
type checksum struct {
	rows int64
	// digest is the exclusive or of the SHA-256 of each row. No two rows are equal,
	// since each contains its primary key.
	digest [sha256.Size]byte
}

// add adds one row. Two different rows of a table have different encodings.
func (s *checksum) add(r row) {
	var encoded []byte
	for _, value := range r {
		switch value := value.(type) {
		case nil:
			encoded = append(encoded, 'n')
		case int64:
			encoded = fmt.Appendf(encoded, "i%d,", value)
		case string:
			encoded = fmt.Appendf(encoded, "t%d,%s", len(value), value)
		case []byte:
			encoded = fmt.Appendf(encoded, "b%d,%s", len(value), value)
		}
	}
	one := sha256.Sum256(encoded)
	subtle.XORBytes(s.digest[:], s.digest[:], one[:])
	s.rows++
}

// walk reads a table in batches, calls visit for each, and returns the table's checksum.
func (c *copier) walk(ctx context.Context, store Store, t table, p Progress, visit func(rows []row) error) (sum checksum, err error) {
	p.Table = t.Name
	for after := row(nil); !p.Done; {
		rows, err := c.batch(ctx, store, t, after)
		if err == nil && len(rows) > 0 {
			after = slices.Clone(rows[len(rows)-1][:t.Key])
			err = visit(rows)
		}
		if err != nil {
			return checksum{}, err
		}
		for _, r := range rows {
			sum.add(r)
		}
		p.Rows, p.Done = sum.rows, len(rows) == 0
		c.options.Progress(p)
	}
	return sum, nil
}

// batch reads the rows after a primary key, as many as the options permit and at
// least one. It reads the sizes of rows before the rows themselves, so that memory
// is bounded.
func (c *copier) batch(ctx context.Context, store Store, t table, after row) (rows []row, err error) {
	end, args := t.following(after)
	err = store.Read(ctx, func(tx storage.Tx) error {
		rows = nil
		var fit, bytes int64
		err := tx.Rows(func(scan func(...any) error) error {
			var size int64
			err := scan(&size)
			if bytes += size; fit == 0 || bytes <= int64(c.options.Bytes) {
				fit++
			}
			return err
		}, "SELECT "+t.size()+end, append(args, int64(c.options.Rows))...)
		if err != nil || fit == 0 {
			return err
		}
		return tx.Rows(func(scan func(...any) error) error {
			r := make(row, len(t.Columns))
			cells := make([]any, len(r))
			for i := range r {
				cells[i] = &r[i]
			}
			rows = append(rows, r)
			return scan(cells...)
		}, "SELECT "+t.list(len(t.Columns))+end, append(args, fit)...)
	})
	return rows, err
}
