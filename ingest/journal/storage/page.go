package storage

import "errors"

// PageBytes bounds the texts of a page: the row that reaches it is the last one.
const PageBytes = 4 << 20

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// UpTo is Rows for a page: it ends when the rows so far have PageBytes. size returns the bytes of
// a row.
func UpTo[T any](tx *Txn, size func(row *T) int, dest func(row *T) []any, query string, args ...any) (list []T) {
	if tx.Err != nil {
		return nil
	}
	var row T
	into, bytes := dest(&row), 0
	err := tx.engine.Rows(func(scan func(...any) error) error {
		if bytes >= PageBytes {
			return errPageFull
		}
		err := scan(into...)
		list, bytes = append(list, row), bytes+size(&row)
		return err
	}, query, args...)
	if !errors.Is(err, errPageFull) {
		tx.Err = err
	}
	return list
}

// IsFull reports whether a page may have ended before the last row.
func IsFull[T any](list []T, limit int, size func(row *T) int) bool {
	bytes := 0
	for i := range list {
		bytes += size(&list[i])
	}
	return len(list) >= limit || bytes >= PageBytes
}
