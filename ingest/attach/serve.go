package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Address returns the address at which the place itself serves a copy, with Content-Type and
// Content-Disposition of the header, for at least a second. It is empty if the place has no
// addresses; OpenAt reads the copy then. Address does not check that the copy exists.
func (s *Store) Address(ctx context.Context, bucketName, path string, header http.Header, valid time.Duration) (string, error) {
	if err := s.check(bucketName, path); err != nil {
		return "", err
	}
	b, ok := s.place.(*bucket)
	if !ok {
		return "", nil
	}
	address, err := b.address(ctx, path, header, max(valid, time.Second))
	if err != nil {
		return "", fmt.Errorf("sign an address of an attachment in %s: %w", s.where, err)
	}
	return address, nil
}

// OpenAt is Open for reads from any position. Only a read of the whole copy checks the
// bytes: if they have changed, it ends in ErrDamaged before the last ones.
func (s *Store) OpenAt(ctx context.Context, bucket, at string) (io.ReadSeekCloser, error) {
	content, err := s.open(ctx, bucket, at)
	if err != nil {
		return nil, err
	}
	if content.size, err = content.Seek(0, io.SeekEnd); err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return content, nil
}

// address returns a presigned address of the object. It is valid for a time, and its answers have
// the header.
func (b *bucket) address(ctx context.Context, path string, header http.Header, valid time.Duration) (string, error) {
	query := url.Values{}
	for _, key := range []string{"Content-Type", "Content-Disposition"} {
		if value := header.Get(key); value != "" {
			query.Set("response-"+strings.ToLower(key), value)
		}
	}
	address, err := b.client.PresignedGetObject(ctx, b.name, b.key(path), valid, query)
	if err != nil {
		return "", err
	}
	return address.String(), nil
}
