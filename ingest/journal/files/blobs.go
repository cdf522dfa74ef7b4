package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"parley/ingest/journal/storage"
)

// chunkSize is the number of bytes in one transaction of a blob. Other transactions wait
// for it.
const chunkSize = 256 << 10

// A blob is the bytes of an attachment's copy in the store. Parts 1, 2 … are its chunks.
// Part 0, which is empty, exists once they are complete. The path is a checksum of the
// bytes, so that concurrent writers of one path write the same chunks.

// PutBlob stores size bytes at a path, which HoldCopy holds. OpenBlob finds them all or none
// of them. A failed PutBlob leaves chunks, which the next one uses, or which are removed later.
func (f *Files) PutBlob(ctx context.Context, path string, content io.ReaderAt, size int64) error {
	for at := int64(0); at < size; at += chunkSize {
		chunk := make([]byte, min(chunkSize, size-at))
		if n, err := content.ReadAt(chunk, at); n < len(chunk) {
			return fmt.Errorf("read chunk: %w", err)
		}
		if err := f.db.Change(ctx, "", func(tx *storage.Txn) {
			tx.Do(`INSERT INTO blobs (path, part, bytes) VALUES ($1, $2, $3) ON CONFLICT (path, part) DO NOTHING`, path, at/chunkSize+1, chunk)
		}); err != nil {
			return err
		}
	}
	return f.db.Change(ctx, "", func(tx *storage.Txn) {
		lockBlob(tx, path)
		var stored int64
		tx.Row([]any{&stored}, `SELECT sum(length(bytes)) FROM blobs WHERE path = $1`, path)
		if stored != size {
			tx.Fail(fmt.Errorf("the blob has %d bytes, not %d: another node removed it meanwhile", stored, size))
		}
	})
}

// lockBlob writes part 0 of a blob. Until the transaction ends, no other transaction
// completes or removes the blob.
func lockBlob(tx *storage.Txn, path string) {
	tx.Do(`INSERT INTO blobs (path, part, bytes) VALUES ($1, 0, $2)
		ON CONFLICT (path, part) DO UPDATE SET bytes = excluded.bytes`, path, []byte{})
}

// OpenBlob returns a reader of the blob at a path, which works while ctx lasts. A missing
// blob is fs.ErrNotExist. If the blob is removed meanwhile, the reader ends early.
func (f *Files) OpenBlob(ctx context.Context, path string) (io.ReadSeekCloser, error) {
	var chunks, last int64
	found, err := f.db.Row(ctx, []any{&chunks, &last}, `SELECT part, length(bytes) FROM blobs WHERE path = $1
		AND EXISTS (SELECT 1 FROM blobs WHERE path = $1 AND part = 0) ORDER BY part DESC LIMIT 1`, path)
	if err == nil && !found {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", path, err)
	}
	size := max(0, chunks-1)*chunkSize + last
	b := &blobReader{chunk: -1, read: func(part int64) (chunk []byte, err error) {
		_, err = f.db.Row(ctx, []any{&chunk}, `SELECT bytes FROM blobs WHERE path = $1 AND part = $2`, path, part)
		return chunk, err
	}}
	return struct {
		*io.SectionReader
		io.Closer
	}{io.NewSectionReader(b, 0, size), io.NopCloser(nil)}, nil
}

// blobReader reads a blob chunk by chunk.
type blobReader struct {
	read  func(part int64) ([]byte, error) // returns no bytes of a missing part
	chunk int64                            // the number of the chunk in bytes; -1 for none
	bytes []byte
}

// ReadAt implements io.ReaderAt, for one reader.
func (b *blobReader) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if chunk := at / chunkSize; chunk != b.chunk {
			bytes, err := b.read(chunk + 1)
			if err != nil {
				return n, err
			}
			b.chunk, b.bytes = chunk, bytes
		}
		copied := copy(p[n:], b.bytes[min(at%chunkSize, int64(len(b.bytes))):])
		if copied == 0 {
			return n, io.EOF // the blob was removed meanwhile
		}
		n, at = n+copied, at+int64(copied)
	}
	return n, nil
}

// RemoveBlob removes the blob at a path, complete or not. A missing blob is no error.
func (f *Files) RemoveBlob(ctx context.Context, path string) error {
	return f.db.Change(ctx, "", func(tx *storage.Txn) {
		lockBlob(tx, path)
		tx.Do(`DELETE FROM blobs WHERE path = $1`, path)
	})
}

// BlobBytes returns the bytes of all blobs.
func (f *Files) BlobBytes(ctx context.Context) (bytes int64, err error) {
	err = f.db.One(ctx, []any{&bytes}, `SELECT coalesce(CAST(sum(length(bytes)) AS BIGINT), 0) FROM blobs`)
	return bytes, err
}
