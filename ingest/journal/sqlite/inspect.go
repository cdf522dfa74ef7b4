package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"parley/ingest/journal/storage"
)

// Inspection is the result of Inspect.
type Inspection struct {
	// Messages is the number of messages that were stored so far, and Since that of those since a time. Removed ones count.
	Messages, Since int64
	// Damage is the first fault that SQLite finds in the file; empty if it is sound.
	Damage string
	// Log says that the write-ahead log is damaged, and Lost what an earlier open of a damaged one has cost; empty for none.
	Log, Lost string
}

// Inspect reads a database, which an engine of another process may have open, and changes nothing. It
// reads the whole file to find damage, and ends early with the error of ctx.
func Inspect(ctx context.Context, path string, since time.Time) (found Inspection, err error) {
	log, err := damagedLog(path)
	if err != nil {
		return found, err
	}
	if found.Lost = lostAt(path); log != nil {
		found.Log = log.String()
	}
	c, err := connectAs(ctx, path, "", readOnly, "busy_timeout=1000", "query_only=ON", "cache_size=-2048")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if found.Messages, err = c.number(`SELECT coalesce(max(row), 0) FROM messages`); err != nil {
		return found, err
	}
	first, err := c.firstSince(found.Messages, storage.Millis(since))
	if err != nil {
		return found, err
	}
	found.Since = found.Messages - first + 1
	found.Damage, err = c.damage(ctx)
	return found, err
}

// firstSince returns the row of the first message that was stored since a time, in milliseconds; last+1 if there
// is none. Rows grow with time, so a search needs few of them.
func (c *conn) firstSince(last, since int64) (int64, error) {
	low, high := int64(1), last+1
	for low < high {
		middle := low + (high-low)/2
		at := int64(0) // of the next row that is left
		s, err := c.statement(`SELECT created_at FROM messages WHERE row >= $1 ORDER BY row LIMIT 1`)
		if err != nil {
			return 0, err
		}
		failed, err := c.each(s, c.bind([]any{middle}), first([]any{&at}, new(bool)))
		if err = errors.Join(failed, err); err != nil {
			return 0, err
		}
		if at >= since {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

// damage returns the first fault in the file.
func (c *conn) damage(ctx context.Context) (words string, err error) {
	s, err := c.statement(`SELECT quick_check FROM pragma_quick_check LIMIT 1`)
	if err != nil {
		return "", err
	}
	rows, err := s.QueryContext(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(values); err != nil {
		if errors.Is(err, io.EOF) {
			return "SQLite said nothing about the file", nil
		}
		return "", err
	}
	if words = fmt.Sprint(values[0]); words == "ok" {
		words = ""
	}
	return words, nil
}
