package adapters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// File is a file that an agent made.
type File struct {
	Name, MimeType string
	Size           int64 // bytes
	// Open reads the file; the caller closes the reader.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Fits returns a permanent failure if the file is empty or has more than limit bytes.
func (f *File) Fits(limit int64) error {
	if f.Size <= 0 || f.Size > limit {
		return Permanently(fmt.Sprintf("the platform takes no file of %d bytes", f.Size))
	}
	return nil
}

// Reader opens the file for a platform that takes at most limit bytes. The reader returns exactly
// the declared size: if the file has fewer or more bytes, it fails with ErrFileSize before it
// returns the last ones, because a platform may act once it has those. The errors of Reader are
// *SendError. The caller closes the reader.
func (f *File) Reader(ctx context.Context, limit int64) (io.ReadCloser, error) {
	if err := f.Fits(limit); err != nil {
		return nil, err
	}
	content, err := f.Open(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a deleted file does not come back
		return nil, Permanently(fmt.Sprintf("%s no longer exists: %v", f.Name, err))
	case err != nil:
		return nil, &SendError{Failure: NotSent, Err: fmt.Errorf("open %s: %w", f.Name, err)}
	}
	return &exactReader{content, bufio.NewReader(content), f.Size}, nil
}

// Content returns the bytes of the file for a platform that takes at most limit bytes. Its errors
// are *SendError.
func (f *File) Content(ctx context.Context, limit int64) ([]byte, error) {
	reader, err := f.Reader(ctx, limit)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	content, err := io.ReadAll(reader)
	switch {
	case errors.Is(err, ErrFileSize):
		return nil, Permanently(f.Name + ": " + err.Error())
	case err != nil:
		return nil, &SendError{Failure: NotSent, Err: fmt.Errorf("read %s: %w", f.Name, err)}
	}
	return content, nil
}

// ErrFileSize means that a file does not have its declared size.
var ErrFileSize = errors.New("the file does not have the declared size")

// exactReader reads exactly the declared number of bytes of a file.
type exactReader struct {
	io.Closer
	from *bufio.Reader
	left int64
}

func (s *exactReader) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.from.Read(p[:min(int64(len(p)), s.left)])
	if s.left -= int64(n); s.left == 0 {
		_, err = s.from.Peek(1)
		if err == nil {
			return 0, ErrFileSize
		}
	} else if err == io.EOF {
		return 0, ErrFileSize
	}
	if err == io.EOF {
		err = nil // the next call returns io.EOF
	}
	return n, err
}
