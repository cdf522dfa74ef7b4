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
