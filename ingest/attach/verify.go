package attach

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
)

// verified is a reader of a copy. It checks the bytes of a read of the whole copy: if they
// have changed, the last ones are missing.
type verified struct {
	io.ReadSeekCloser
	hash     hash.Hash // of the bytes before at; nil if the read did not begin at the first byte
	sum      string    // the expected sum
	at, size int64     // size is -1 if it is unknown: then the check is at io.EOF
}

// Read implements io.Reader.
func (v *verified) Read(p []byte) (int, error) {
	n, err := v.ReadSeekCloser.Read(p)
	v.at += int64(n)
	if v.hash == nil {
		return n, err
	}
	v.hash.Write(p[:n])
	if (err == io.EOF || v.at == v.size) && hex.EncodeToString(v.hash.Sum(nil)) != v.sum {
		return 0, ErrDamaged
	}
	return n, err
}

// Seek implements io.Seeker.
func (v *verified) Seek(offset int64, whence int) (at int64, err error) {
	at, err = v.ReadSeekCloser.Seek(offset, whence)
	if v.at, v.hash = at, nil; at == 0 {
		v.hash = sha256.New()
	}
	return at, err
}
