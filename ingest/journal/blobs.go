package journal

import (
	"context"
	"fmt"
	"strconv"
)

// A blob is a file's bytes in the store: part 0 is its size in decimal digits,
// parts 1, 2 … are its chunks. While it is written its chunks stand under a name
// of its own, the draft, where nobody looks for them.

// WriteChunk adds a part of a draft, the first of them part 1. The name must be
// of this draft alone.
func (j *Journal) WriteChunk(ctx context.Context, draft string, part int64, chunk []byte) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		_, err := tx.Exec(`INSERT INTO blobs (path, part, bytes) VALUES (?, ?, ?)`, draft, part, blob(chunk))
		return err
	})
}

// KeepChunks makes a draft of size bytes the blob at path, in one transaction.
// Where there is a blob already, that one stays and the draft goes: a path
// stands for its bytes. A draft that does not have its size is refused.
func (j *Journal) KeepChunks(ctx context.Context, draft, path string, size int64) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		// Whoever inserts part 0 is the only one that moves chunks to the path:
		// others wait here until that has ended.
		first, err := tx.Exec(`INSERT INTO blobs (path, part, bytes) VALUES (?, 0, ?) ON CONFLICT (path, part) DO NOTHING`,
			path, []byte(strconv.FormatInt(size, 10)))
		if err != nil {
			return err
		}
		if first == 0 {
			_, err := tx.Exec(`DELETE FROM blobs WHERE path = ?`, draft)
			return err
		}
		if _, err := tx.Exec(`UPDATE blobs SET path = ? WHERE path = ?`, path, draft); err != nil {
			return err
		}
		var kept int64
		if _, err := tx.Row([]any{&kept}, `SELECT coalesce(sum(length(bytes)), 0) FROM blobs WHERE path = ? AND part > 0`, path); err != nil {
			return err
		}
		if kept != size {
			return fmt.Errorf("the draft has %d bytes, not %d: %w", kept, size, ErrNotFound)
		}
		return nil
	})
}

// ReadChunk returns a part of the blob at path, and whether it is there.
func (j *Journal) ReadChunk(ctx context.Context, path string, part int64) (chunk []byte, found bool, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		found, err = tx.Row([]any{&chunk}, `SELECT bytes FROM blobs WHERE path = ? AND part = ?`, path, part)
		return err
	})
	return chunk, found, err
}

// DropChunks removes the blobs and drafts from one path to another, both
// included, in the order of the store's language: digits come before letters,
// and a before z. Each goes whole or not at all.
func (j *Journal) DropChunks(ctx context.Context, first, last string) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		_, err := tx.Exec(`DELETE FROM blobs WHERE path >= ? AND path <= ?`, first, last)
		return err
	})
}
