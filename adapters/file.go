package adapters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// File is a file that an agent made.
type File struct {
	// Name has at most 166 bytes, no control characters and no slashes, and is neither . nor ..
	Name, MimeType string
	Size           int64 // bytes
	// Open reads the file; the caller closes the reader.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Content returns the bytes of the file for a platform that takes at most limit bytes. They are in
// memory, because an agent sends a file in a message, whose size is bounded. A file without its
// declared size is a permanent failure. The errors of Content are *SendError.
func (f *File) Content(ctx context.Context, limit int64) ([]byte, error) {
	if f.Size <= 0 || f.Size > limit {
		return nil, Permanently(fmt.Sprintf("the platform takes no file of %d bytes", f.Size))
	}
	opened, err := f.Open(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a deleted file does not come back
		return nil, Permanently(fmt.Sprintf("%s no longer exists: %v", f.Name, err))
	case err != nil:
		return nil, &SendError{Failure: NotSent, Err: fmt.Errorf("open %s: %w", f.Name, err)}
	}
	defer opened.Close()
	content, err := io.ReadAll(io.LimitReader(opened, f.Size+1))
	switch {
	case err != nil:
		return nil, &SendError{Failure: NotSent, Err: fmt.Errorf("read %s: %w", f.Name, err)}
	case int64(len(content)) != f.Size:
		return nil, Permanently(f.Name + ": the file does not have the declared size")
	}
	return content, nil
}
