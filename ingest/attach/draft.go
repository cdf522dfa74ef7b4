package attach

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
)

// draft is a file that is not complete yet.
type draft struct{ *os.File }

// draft makes an empty one, with its folder.
func (s *Store) draft() (draft, error) {
	if err := os.MkdirAll(s.drafts, 0o700); err != nil {
		return draft{}, unwritten(fmt.Errorf("create attachments.dir: %w", err))
	}
	file, err := os.OpenFile(filepath.Join(s.drafts, rand.Text()), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return draft{file}, unwritten(err)
}

// discard removes the draft, unless a place has renamed it.
func (d draft) discard() {
	_ = d.Close()
	_ = os.Remove(d.Name())
}

// fill writes the source, and returns the number of its bytes and their SHA-256.
func (d draft) fill(source io.Reader) (size int64, sum string, err error) {
	hash := sha256.New()
	size, err = io.Copy(io.MultiWriter(written(d), hash), source)
	return size, hex.EncodeToString(hash.Sum(nil)), err
}

// Bucket returns the name of the place in the journal. Copies in other buckets can't be opened.
func (s *Store) Bucket() string { return s.bucket }

// Restore stores the copy that a backup of this place has at a path. There is no copy after ErrDamaged,
// the error of the source or that of the place. No bound applies to its size, and no sender pays for it.
func (s *Store) Restore(ctx context.Context, at string, source io.Reader) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("restore attachment %s: %w", at, err)
		}
	}()
	if err := s.check(s.bucket, at); err != nil {
		return err
	}
	draft, err := s.draft()
	if err != nil {
		return err
	}
	defer draft.discard()
	size, sum, err := draft.fill(source)
	if err == nil && sum != path.Base(at) {
		err = ErrDamaged
	}
	if err == nil {
		err = s.place.put(ctx, draft.File, size, at)
	}
	return err
}
