package attach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"path"
)

// measured is a source on its way into a place: it knows how much was read, and
// what that sums up to.
type measured struct {
	read  func([]byte) (int, error)
	limit int64 // bytes
	size  int64 // bytes read
	hash  hash.Hash
}

// measure reads source while ctx lasts. More than limit bytes are ErrTooLarge.
func measure(ctx context.Context, source io.Reader, limit int64) *measured {
	return &measured{limit: limit, hash: sha256.New(), read: func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return source.Read(p)
	}}
}

// Read implements io.Reader. Only the plain io.EOF is the source's end: a
// wrapped one is a connection that broke off.
func (m *measured) Read(p []byte) (int, error) {
	n, err := m.read(p)
	if m.size += int64(n); m.size > m.limit {
		return 0, tooLarge(m.limit)
	}
	m.hash.Write(p[:n])
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read from its source: %w", err)
	}
	return n, err
}

func (m *measured) sum() string { return hex.EncodeToString(m.hash.Sum(nil)) }

// path is where the copy of what was read stands: 256 directories keep each of
// them small.
func (m *measured) path() string {
	sum := m.sum()
	return sum[:2] + "/" + sum
}

func tooLarge(limit int64) error { return fmt.Errorf("%w (%d bytes)", ErrTooLarge, limit) }

// verified is a copy that is being read.
type verified struct {
	io.ReadCloser
	hash hash.Hash
	sum  string // as it must come out
}

// verify reads the copy at a path of ours, which tells its sum.
func verify(content io.ReadCloser, at string) *verified {
	return &verified{content, sha256.New(), sumOf(at)}
}

// sumOf is the sum that a path of ours ends in.
func sumOf(at string) string { return path.Base(at) }

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.hash.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(v.hash.Sum(nil)) != v.sum {
		err = ErrDamaged
	}
	return n, err
}
