package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// tries is how often a call is made before it has failed.
	tries = 3
	// tryPause is the wait between two tries of an upload; the second one is twice as long.
	tryPause = 200 * time.Millisecond
)

var _ place = (*bucket)(nil)

// bucket keeps each copy in an object of an S3 bucket. A PUT is whole or not at
// all, and the server checks it against the sum that is signed with it.
type bucket struct {
	client       minio.Core
	name, prefix string
	where        string // for errors
	spool        directory
}

// newBucket returns the configured bucket. What is bound for it waits in spool.
func newBucket(config S3, spool directory) (*bucket, error) {
	endpoint, err := url.Parse(config.Endpoint)
	if err != nil {
		return nil, errors.New("endpoint: must be an http or https address") // the error holds it
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:      credentials.NewStaticV4(config.AccessKey, config.SecretKey.Reveal(), ""),
		Secure:     endpoint.Scheme == "https",
		Region:     config.Region,
		MaxRetries: tries,
	})
	if err != nil {
		return nil, err
	}
	where := fmt.Sprintf("bucket %s at %s", config.Bucket, endpoint.Host)
	return &bucket{*client, config.Bucket, config.Prefix, where, spool}, nil
}

// place is the bucket as the journal knows it.
func (b *bucket) place() string { return "s3:" + path.Join(b.name, b.prefix) }

func (b *bucket) key(below string) string { return path.Join(b.prefix, below) }

func (b *bucket) write(ctx context.Context, source io.Reader, path func() string) error {
	return b.spool.draft(source, func(made *draft) error {
		info, err := made.file.Stat()
		if err != nil {
			return err
		}
		return b.named(b.upload(ctx, made.file, info.Size(), path()))
	})
}

// upload puts the file at a path, and tries again where the server or the way to
// it had a moment's trouble. The library must not: what is left of a failed try
// may still be reading its body, and each try needs one of its own.
func (b *bucket) upload(ctx context.Context, file io.ReaderAt, size int64, path string) error {
	for try := 0; ; try++ {
		body := struct{ io.Reader }{io.NewSectionReader(file, 0, size)} // that can't be rewound
		_, err := b.client.PutObject(ctx, b.name, b.key(path), body, size, "", sumOf(path),
			minio.PutObjectOptions{DisableContentSha256: true}) // of its stream, since the whole one's is given
		if err == nil || refused(err) || try+1 == tries {
			return err
		}
		select {
		case <-time.After(tryPause << try):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refused says that the server does not want what it was sent, and would not
// another time.
func refused(err error) bool {
	status := minio.ToErrorResponse(err).StatusCode
	return status >= 300 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// open makes one request, whose body the caller reads: what breaks off in the
// middle is an error of the reading.
func (b *bucket) open(ctx context.Context, path string) (io.ReadCloser, error) {
	content, _, _, err := b.client.GetObject(ctx, b.name, b.key(path), minio.GetObjectOptions{})
	if isAbsent(err) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, b.named(err)
	}
	return content, nil
}

func (b *bucket) remove(ctx context.Context, path string) error {
	err := b.client.RemoveObject(ctx, b.name, b.key(path), minio.RemoveObjectOptions{})
	if isAbsent(err) { // most servers don't tell
		return nil
	}
	return b.named(err)
}

func isAbsent(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchKey }

// sweep removes what crashes left on its way to the bucket.
func (b *bucket) sweep(ctx context.Context, before time.Time) error {
	return b.spool.sweep(ctx, before)
}

// named adds the bucket to an error.
func (b *bucket) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("in %s: %w", b.where, err)
}
