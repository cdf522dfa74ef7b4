package attach

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"parley/ingest/wake"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const (
	// tries bounds the attempts of a call.
	tries = 3
	// tryPause is the wait between two attempts of an upload. The second wait is twice as
	// long.
	tryPause = 200 * time.Millisecond
)

var _ place = (*bucket)(nil)

// bucket stores each copy in an object of an S3 bucket. A PUT takes effect completely or
// not at all: the server checks the bytes against the signed sum.
type bucket struct {
	client       minio.Core
	name, prefix string
	where        string // for errors
}

// newBucket returns the configured bucket.
func newBucket(config S3) (*bucket, error) {
	endpoint, _ := url.Parse(config.Endpoint) // Validate has parsed it
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
	return &bucket{*client, config.Bucket, config.Prefix, where}, nil
}

// place returns the bucket's name in the journal.
func (b *bucket) place() string { return "s3:" + path.Join(b.name, b.prefix) }

func (b *bucket) key(below string) string { return path.Join(b.prefix, below) }

// put uploads the draft, and tries again after a temporary failure. The library must not
// try again by itself: a failed attempt may still read its body, so each attempt needs
// its own.
func (b *bucket) put(ctx context.Context, draft *os.File, size int64, at string) error {
	for try := 0; ; try++ {
		body := struct{ io.Reader }{io.NewSectionReader(draft, 0, size)} // that can't be rewound
		_, err := b.client.PutObject(ctx, b.name, b.key(at), body, size, "", path.Base(at),
			minio.PutObjectOptions{DisableContentSha256: true}) // of its stream, since the whole one's is given
		if err == nil || refused(err) || try+1 == tries {
			return err
		}
		if !wake.After(ctx, tryPause<<try) {
			return context.Cause(ctx)
		}
	}
}

// refused reports whether the server would refuse the same request again.
func refused(err error) bool {
	status := minio.ToErrorResponse(err).StatusCode
	return status >= 300 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// open makes one request, whose body the caller reads. A broken connection is an error of
// that read.
func (b *bucket) open(ctx context.Context, path string) (io.ReadSeekCloser, error) {
	content, _, _, err := b.client.GetObject(ctx, b.name, b.key(path), minio.GetObjectOptions{})
	if isAbsent(err) {
		err = fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	return unseekable{content}, nil
}

// unseekable is the body of an answer. Only its first byte can be the position of a read.
type unseekable struct{ io.ReadCloser }

// Seek implements io.Seeker.
func (unseekable) Seek(int64, int) (int64, error) {
	return 0, errors.New("a bucket has addresses of its own")
}

func (b *bucket) remove(ctx context.Context, path string) error {
	err := b.client.RemoveObject(ctx, b.name, b.key(path), minio.RemoveObjectOptions{})
	if isAbsent(err) { // most servers do not report it
		return nil
	}
	return err
}

// check writes, reads and deletes an object that is no copy.
func (b *bucket) check(ctx context.Context) error {
	content, at := "parley check", "check-"+rand.Text()
	sum := sha256.Sum256([]byte(content))
	_, err := b.client.PutObject(ctx, b.name, b.key(at), strings.NewReader(content), int64(len(content)), "", hex.EncodeToString(sum[:]),
		minio.PutObjectOptions{DisableContentSha256: true})
	if err != nil {
		return err
	}
	object, err := b.open(ctx, at)
	if err == nil {
		err = object.Close()
	}
	return cmp.Or(err, b.remove(ctx, at))
}

func isAbsent(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchKey }
