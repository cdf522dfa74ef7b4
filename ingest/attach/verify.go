package attach

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"path"
)

// verified is a reader of a copy that checks its bytes.
type verified struct {
	io.ReadCloser
	hash hash.Hash
	sum  string // the expected sum
}

// verify checks the bytes of the copy at a path against the sum in the path.
func verify(content io.ReadCloser, at string) *verified {
	return &verified{content, sha256.New(), path.Base(at)}
}

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadCloser.Read(p)
	v.hash.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(v.hash.Sum(nil)) != v.sum {
		err = ErrDamaged
	}
	return n, err
}

// positioned is a reader of a copy from any position. It checks the bytes of a read of the
// whole copy: if they have changed, the last ones are missing.
type positioned struct {
	io.ReadSeekCloser
	hash     hash.Hash // of the bytes before at; nil if the read did not begin at the first byte
	sum      string    // the expected sum
	at, size int64
}

// Read implements io.Reader.
func (r *positioned) Read(p []byte) (int, error) {
	n, err := r.ReadSeekCloser.Read(p)
	r.at += int64(n)
	if r.hash == nil {
		return n, err
	}
	r.hash.Write(p[:n])
	if r.at == r.size && hex.EncodeToString(r.hash.Sum(nil)) != r.sum {
		return 0, ErrDamaged
	}
	return n, err
}

// Seek implements io.Seeker.
func (r *positioned) Seek(offset int64, whence int) (at int64, err error) {
	at, err = r.ReadSeekCloser.Seek(offset, whence)
	if r.at, r.hash = at, nil; at == 0 {
		r.hash = sha256.New()
	}
	return at, err
}
