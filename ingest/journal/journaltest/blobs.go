package journaltest

import (
	"bytes"
	"fmt"
	"sync"

	"parley/ingest/journal"
)

func blobPromises() []promise {
	return []promise{
		{"a blob appears whole, when it is kept", blobKept},
		{"a blob may be empty", blobEmpty},
		{"drafts of the same blob can all be kept, and one of them stays", blobsKeptAtOnce},
		{"a draft that has lost a chunk does not become a blob", blobIncomplete},
		{"dropping takes what lies between two paths, and nothing else", blobsDropped},
	}
}

// draft writes chunks under a draft's name.
func (f *fixture) draft(name string, chunks ...string) {
	f.Helper()
	for i, chunk := range chunks {
		f.must(f.WriteChunk(f.ctx, name, int64(i+1), []byte(chunk)))
	}
}

// blob reads all parts of a path, until one is not there.
func (f *fixture) blob(path string) []string {
	f.Helper()
	parts := []string{}
	for {
		chunk, found, err := f.ReadChunk(f.ctx, path, int64(len(parts)))
		f.must(err)
		if !found {
			return parts
		}
		parts = append(parts, string(chunk))
	}
}

func blobKept(f *fixture) {
	odd := string([]byte{0, 0xff, '\'', 0}) // bytes, not text
	f.draft("incoming/1", odd, "two")
	same(f, "before it is kept", f.blob("ab/cd"), []string{})
	f.must(f.KeepChunks(f.ctx, "incoming/1", "ab/cd", 7))
	same(f, "blob", f.blob("ab/cd"), []string{"7", odd, "two"})
	same(f, "rows", f.count("blobs"), 3)
}

func blobEmpty(f *fixture) {
	f.must(f.KeepChunks(f.ctx, "incoming/1", "ab/cd", 0))
	same(f, "blob", f.blob("ab/cd"), []string{"0"})
	f.draft("incoming/2", "")
	f.must(f.KeepChunks(f.ctx, "incoming/2", "ef/gh", 0))
	same(f, "with an empty chunk", f.blob("ef/gh"), []string{"0", ""})
}

func blobsKeptAtOnce(f *fixture) {
	large := string(bytes.Repeat([]byte("x"), 256<<10))
	var nodes sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		node := f.successor(fmt.Sprint("node", i))
		nodes.Go(func() {
			name := fmt.Sprint("incoming/", i)
			for part := range 2 {
				if errs[i] = node.WriteChunk(f.ctx, name, int64(part+1), []byte(large)); errs[i] != nil {
					return
				}
			}
			errs[i] = node.KeepChunks(f.ctx, name, "ab/cd", 512<<10)
		})
	}
	nodes.Wait()
	for _, err := range errs {
		f.must(err)
	}
	same(f, "blob", f.blob("ab/cd"), []string{"524288", large, large})
	same(f, "rows", f.count("blobs"), 3)
}

func blobIncomplete(f *fixture) {
	f.draft("incoming/1", "one", "two")
	f.exec(`DELETE FROM blobs WHERE part = 1`)
	f.fails("a draft without its first chunk", f.KeepChunks(f.ctx, "incoming/1", "ab/cd", 6), journal.ErrNotFound)
	same(f, "blob", f.blob("ab/cd"), []string{})
	f.must(f.DropChunks(f.ctx, "incoming/1", "incoming/1"))
	f.fails("a draft that was dropped", f.KeepChunks(f.ctx, "incoming/1", "ab/cd", 6), journal.ErrNotFound)
	same(f, "rows", f.count("blobs"), 0)
}

func blobsDropped(f *fixture) {
	for _, path := range []string{"00/11", "99/aa", "ff/00"} {
		f.draft("draft of "+path, "x")
		f.must(f.KeepChunks(f.ctx, "draft of "+path, path, 1))
	}
	for _, draft := range []string{"incoming/1699999999999-Z", "incoming/1700000000000", "incoming/1700000000000-A", "incoming/1700000000001-A"} {
		f.draft(draft, "x", "y")
	}
	f.must(f.DropChunks(f.ctx, "incoming/0", "incoming/1700000000000"))
	same(f, "drafts of later", f.count("blobs WHERE path LIKE 'incoming/%'"), 4)
	same(f, "blobs", f.count("blobs WHERE path LIKE '__/__'"), 6)
	f.must(f.DropChunks(f.ctx, "99/aa", "99/aa"))
	same(f, "the dropped one", f.blob("99/aa"), []string{})
	same(f, "another", f.blob("ff/00"), []string{"1", "x"})
	f.must(f.DropChunks(f.ctx, "99/aa", "99/aa"))
}
