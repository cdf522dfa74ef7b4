package attach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"time"
)

// chunkSize is how many bytes one transaction of the store carries: others wait
// behind it, and it is all that is held in memory of a file.
const chunkSize = 256 << 10

// discarding bounds how long a Put that failed waits until its chunks are gone.
const discarding = 5 * time.Second

// Chunks is a store that several daemons share, as far as copies are kept in it:
// a *journal.Journal. It is an interface so that the two packages need not know
// each other.
type Chunks interface {
	// WriteChunk adds part 1, 2 … to a draft, a name of this writer's own.
	WriteChunk(ctx context.Context, draft string, part int64, chunk []byte) error
	// KeepChunks makes a draft of size bytes what is read at path, in one step.
	// Where something stands there already, the draft goes instead.
	KeepChunks(ctx context.Context, draft, path string, size int64) error
	// ReadChunk returns a part of what was kept at path, and whether it is there.
	// Part 0 is the size in decimal digits.
	ReadChunk(ctx context.Context, path string, part int64) (chunk []byte, found bool, err error)
	// DropChunks removes what stands at the paths and drafts between two names,
	// both included; digits sort before letters, and a before z.
	DropChunks(ctx context.Context, first, last string) error
}

var _ place = chunks{}

// chunks keeps copies in the store.
type chunks struct{ store Chunks }

// draftsOf begins the names of the drafts of one millisecond. They sort by their
// time, and behind all copies, whose names begin with a hexadecimal digit.
func draftsOf(t time.Time) string { return fmt.Sprintf("%s/%013d", incoming, t.UnixMilli()) }

func (c chunks) write(ctx context.Context, source io.Reader, path func() string) error {
	draft := draftsOf(time.Now()) + "-" + rand.Text()
	size, err := c.fill(ctx, draft, source)
	if err == nil {
		err = inStore(c.store.KeepChunks(ctx, draft, path(), size))
	}
	if err != nil {
		// What is left even so is swept later.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discarding)
		defer cancel()
		err = errors.Join(err, c.remove(ctx, draft))
	}
	return err
}

// fill writes source to a draft and returns its size.
func (c chunks) fill(ctx context.Context, draft string, source io.Reader) (size int64, err error) {
	buffer := make([]byte, chunkSize)
	for part := int64(1); ; part++ {
		n, end := io.ReadFull(source, buffer)
		if end != nil && end != io.EOF && end != io.ErrUnexpectedEOF { // a source's own comes wrapped
			return 0, end
		}
		if n > 0 {
			if err := c.store.WriteChunk(ctx, draft, part, buffer[:n]); err != nil {
				return 0, inStore(err)
			}
		}
		if size += int64(n); end != nil {
			return size, nil
		}
	}
}

func (c chunks) open(ctx context.Context, path string) (io.ReadCloser, error) {
	digits, found, err := c.store.ReadChunk(ctx, path, 0)
	if err != nil {
		return nil, inStore(err)
	}
	if !found {
		return nil, inStore(fmt.Errorf("%s: %w", path, fs.ErrNotExist))
	}
	size, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return nil, inStore(fmt.Errorf("%s: %w", path, ErrDamaged))
	}
	return &chunked{left: size, read: func(part int64) ([]byte, bool, error) { return c.store.ReadChunk(ctx, path, part) }}, nil
}

func (c chunks) remove(ctx context.Context, path string) error {
	return inStore(c.store.DropChunks(ctx, path, path))
}

func (c chunks) sweep(ctx context.Context, before time.Time) error {
	return inStore(c.store.DropChunks(ctx, draftsOf(time.UnixMilli(0)), draftsOf(before)))
}

// inStore says where an error comes from.
func inStore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("in the store: %w", err)
}

// chunked reads a copy chunk by chunk.
type chunked struct {
	read  func(part int64) (chunk []byte, found bool, err error)
	part  int64  // of chunk
	left  int64  // bytes after chunk
	chunk []byte // what is not given out yet
}

// Read implements io.Reader. A copy that is removed meanwhile ends in io.ErrUnexpectedEOF.
func (c *chunked) Read(p []byte) (int, error) {
	if len(c.chunk) == 0 {
		if c.left <= 0 {
			return 0, io.EOF
		}
		chunk, found, err := c.read(c.part + 1)
		if err != nil {
			return 0, inStore(err)
		}
		if !found || len(chunk) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		c.part, c.left, c.chunk = c.part+1, c.left-int64(len(chunk)), chunk
	}
	n := copy(p, c.chunk)
	c.chunk = c.chunk[n:]
	return n, nil
}

// Close implements io.Closer.
func (c *chunked) Close() error { return nil }
