package journal

import "errors"

// PageBytes bounds the texts of a page: the row that reaches it is the last one.
const PageBytes = 4 << 20

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// upTo is rows for a page: it ends when the rows so far have PageBytes. size returns the bytes of
// a row.
func upTo[T any](tx *txn, size func(row *T) int, dest func(row *T) []any, query string, args ...any) (list []T) {
	if tx.err != nil {
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
		tx.err = err
	}
	return list
}

// Size returns the bytes of a message's texts, as PageBytes counts them.
func (m *Message) Size() int { return len(m.Content) + len(m.Metadata) }

// isFull reports whether a page may have ended before the last row.
func isFull[T any](list []T, limit int, size func(row *T) int) bool {
	bytes := 0
	for i := range list {
		bytes += size(&list[i])
	}
	return len(list) >= limit || bytes >= PageBytes
}

// IsFull reports whether more messages may follow a page of them.
func IsFull(list []Listed, limit int) bool {
	return isFull(list, limit, func(m *Listed) int { return m.Size() })
}

// AreMoreThreads reports whether more threads may follow a page of them.
func AreMoreThreads(list []ThreadSummary, limit int) bool {
	return isFull(list, limit, (*ThreadSummary).size)
}

func (s *ThreadSummary) size() int { return s.First.Size() }
