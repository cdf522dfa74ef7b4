package attach

import (
	"context"
	"io"
	"os"
)

// Blobs stores the bytes of copies in a store that several daemons share; a
// *journal.Journal implements it. It is an interface because the two packages have the
// same rank. Its methods keep the contract of a place.
type Blobs interface {
	PutBlob(ctx context.Context, path string, content io.ReaderAt, size int64) error
	OpenBlob(ctx context.Context, path string) (io.ReadSeekCloser, error)
	RemoveBlob(ctx context.Context, path string) error
	// BlobBytes returns the bytes of all copies.
	BlobBytes(ctx context.Context) (int64, error)
}

var _ place = blobs{}

// blobs stores each copy in a blob of the store.
type blobs struct{ store Blobs }

func (b blobs) put(ctx context.Context, draft *os.File, size int64, path string) error {
	return b.store.PutBlob(ctx, path, draft, size)
}

func (b blobs) open(ctx context.Context, path string) (io.ReadSeekCloser, error) {
	return b.store.OpenBlob(ctx, path)
}

func (b blobs) remove(ctx context.Context, path string) error { return b.store.RemoveBlob(ctx, path) }
