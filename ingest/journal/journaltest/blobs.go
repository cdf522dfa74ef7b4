package journaltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
)

func blobPromises() []promise {
	return []promise{
		{"a blob's bytes are returned exactly", blobPut},
		{"a transaction writes one chunk of a blob", blobChunked},
		{"several nodes can put the same blob concurrently", blobPutAtOnce},
		{"an incomplete blob cannot be opened, and is removed later", blobIncomplete},
		{"a put fails if the blob is removed meanwhile", blobRemovedMeanwhile},
		{"only the removed blob is missing", blobRemoved},
	}
}

const blobPath = "ab/cd"

// largeBlob has three chunks.
var largeBlob = strings.Repeat("0123456789", 60<<10)

func (f *fixture) putBlob(path, content string) {
	f.Helper()
	f.must(f.Files.PutBlob(f.ctx, path, strings.NewReader(content), int64(len(content))))
}

// blob reads a blob.
func (f *fixture) blob(path string) string {
	f.Helper()
	reader, err := f.Files.OpenBlob(f.ctx, path)
	f.must(err)
	defer reader.Close()
	content, err := io.ReadAll(reader)
	f.must(err)
	return string(content)
}

func (f *fixture) noBlob(what, path string) {
	f.Helper()
	_, err := f.Files.OpenBlob(f.ctx, path)
	f.fails(what, err, fs.ErrNotExist)
}

func blobPut(f *fixture) {
	f.noBlob("before the put", blobPath)
	odd := string([]byte{0, 0xff, '\'', 0}) // bytes, not text
	for i, content := range []string{"", odd, largeBlob, largeBlob[:512<<10]} {
		path := fmt.Sprint(blobPath, i)
		for range 2 {
			f.putBlob(path, content)
			same(f, path, f.blob(path), content)
		}
	}
}

func blobChunked(f *fixture) {
	f.putBlob(blobPath, largeBlob)
	same(f, "full chunks", f.count("blobs WHERE length(bytes) = 262144"), 2)
	same(f, "larger ones", f.count("blobs WHERE length(bytes) > 262144"), 0)
}

func blobPutAtOnce(f *fixture) {
	var nodes sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		node := f.successor(fmt.Sprint("node", i))
		nodes.Go(func() {
			errs[i] = node.Files.PutBlob(f.ctx, blobPath, strings.NewReader(largeBlob), int64(len(largeBlob)))
		})
	}
	nodes.Wait()
	f.must(errors.Join(errs...))
	same(f, "blob", f.blob(blobPath), largeBlob)
	same(f, "rows", f.count("blobs"), 4)
}

// broken is content whose second chunk cannot be read.
type broken struct{ io.ReaderAt }

var errBroken = errors.New("the disk is broken")

func (b broken) ReadAt(p []byte, at int64) (int, error) {
	if at > 0 {
		return 0, errBroken
	}
	return b.ReaderAt.ReadAt(p, at)
}

func blobIncomplete(f *fixture) {
	put := func() {
		f.Helper()
		err := f.Files.PutBlob(f.ctx, blobPath, broken{strings.NewReader(largeBlob)}, int64(len(largeBlob)))
		f.fails("put", err, errBroken)
		f.noBlob("after its first chunk", blobPath)
	}
	f.must(f.Files.HoldCopy(f.ctx, "store", blobPath, day))
	put()
	same(f, "chunks", f.count("blobs"), 1)
	f.clock.advance(day)
	f.must(f.Files.RemoveCopies(f.ctx, func(ctx context.Context, bucket, path string) error {
		same(f, "bucket", bucket, "store")
		return f.Files.RemoveBlob(ctx, path)
	}))
	same(f, "chunks a day later", f.count("blobs"), 0)
	put()
	f.putBlob(blobPath, largeBlob)
	same(f, "put again", f.blob(blobPath), largeBlob)
}

// removing is content that removes its own blob when the last chunk is read.
type removing struct {
	io.ReaderAt
	f *fixture
}

func (r removing) ReadAt(p []byte, at int64) (int, error) {
	if at == 512<<10 {
		r.f.must(r.f.Files.RemoveBlob(r.f.ctx, blobPath))
	}
	return r.ReaderAt.ReadAt(p, at)
}

func blobRemovedMeanwhile(f *fixture) {
	if err := f.Files.PutBlob(f.ctx, blobPath, removing{strings.NewReader(largeBlob), f}, int64(len(largeBlob))); err == nil {
		f.Fatalf("a blob without its first chunks is complete")
	}
	f.noBlob("without its first chunks", blobPath)
	f.putBlob(blobPath, largeBlob)
	same(f, "put again", f.blob(blobPath), largeBlob)
}

func blobRemoved(f *fixture) {
	for _, path := range []string{"00/11", "99/aa", "ff/00"} {
		f.putBlob(path, path)
	}
	for range 2 {
		f.must(f.Files.RemoveBlob(f.ctx, "99/aa"))
		f.noBlob("the removed blob", "99/aa")
	}
	same(f, "another", f.blob("ff/00"), "ff/00")
	same(f, "rows", f.count("blobs"), 4)
	reader, err := f.Files.OpenBlob(f.ctx, "ff/00")
	f.must(err)
	f.must(f.Files.RemoveBlob(f.ctx, "ff/00"))
	content, err := io.ReadAll(reader)
	f.must(err)
	same(f, "read after the removal", len(content), 0)
}
