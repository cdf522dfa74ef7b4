package attach_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// faulty is a store whose calls can fail; it knows the largest chunk.
type faulty struct {
	attach.Chunks
	write, keep, drop error
	read              func(part int64) ([]byte, bool, error)
	largest           int
}

func (f *faulty) WriteChunk(ctx context.Context, draft string, part int64, chunk []byte) error {
	f.largest = max(f.largest, len(chunk))
	if part == 2 && f.write != nil {
		return f.write
	}
	return f.Chunks.WriteChunk(ctx, draft, part, chunk)
}

func (f *faulty) KeepChunks(ctx context.Context, draft, path string, size int64) error {
	if f.keep != nil {
		return f.keep
	}
	return f.Chunks.KeepChunks(ctx, draft, path, size)
}

func (f *faulty) DropChunks(ctx context.Context, first, last string) error {
	if f.drop != nil {
		return f.drop
	}
	return f.Chunks.DropChunks(ctx, first, last)
}

func (f *faulty) ReadChunk(ctx context.Context, path string, part int64) ([]byte, bool, error) {
	if f.read != nil && part > 0 {
		return f.read(part)
	}
	return f.Chunks.ReadChunk(ctx, path, part)
}

// newFaulty is a store on SQLite with nothing wrong yet.
func newFaulty(t *testing.T) (*attach.Store, *faulty, journal.Engine) {
	t.Helper()
	engine := newSQLite(t)
	t.Cleanup(func() { _ = engine.Close() })
	f := &faulty{Chunks: journal.New(engine, journal.Options{})}
	return open(t, attach.Config{MaxBytes: roomy}, f), f, engine
}

var large = bytes.Repeat([]byte("0123456789"), 60<<10)

func TestATransactionCarriesOneChunk(t *testing.T) {
	store, f, _ := newFaulty(t)
	kept, err := store.Put(t.Context(), bytes.NewReader(large), event.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	if f.largest != 256<<10 {
		t.Errorf("the largest chunk has %d bytes", f.largest)
	}
	if !bytes.Equal(read(t, store, kept), large) {
		t.Error("the copy differs")
	}
}

func TestAStoreThatFailsKeepsNothing(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, fail := range map[string]func(*faulty){
		"a chunk":  func(f *faulty) { f.write = broken },
		"the last": func(f *faulty) { f.keep = broken },
	} {
		store, f, engine := newFaulty(t)
		fail(f)
		if _, err := store.Put(t.Context(), bytes.NewReader(large), event.Attachment{Name: "a.bin"}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "store") {
			t.Errorf("%s: %v", name, err)
		}
		if found := paths(t, engine); len(found) != 0 {
			t.Errorf("%s: left %q", name, found)
		}
	}
}

// TestSweepRemovesUnfinishedChunks lets a daemon die before its copy is whole.
func TestSweepRemovesUnfinishedChunks(t *testing.T) {
	store, f, engine := newFaulty(t)
	dead := errors.New("gone")
	f.keep, f.drop = dead, dead
	if _, err := store.Put(t.Context(), bytes.NewReader(large), event.Attachment{}); !errors.Is(err, dead) {
		t.Fatal(err)
	}
	if err := store.Sweep(t.Context(), time.Now()); !errors.Is(err, dead) {
		t.Errorf("sweep a store that fails: %v", err)
	}
	f.keep, f.drop = nil, nil
	if err := store.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil || len(paths(t, engine)) != 1 {
		t.Errorf("swept what may still be written: %v, left %q", err, paths(t, engine))
	}
	if err := store.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || len(paths(t, engine)) != 0 {
		t.Errorf("not swept: %v, left %q", err, paths(t, engine))
	}
}

func TestChunksThatAreNotWhatWasPut(t *testing.T) {
	broken := errors.New("the store is gone")
	for name, c := range map[string]struct {
		read func(part int64) ([]byte, bool, error)
		want error
	}{
		"removed meanwhile": {func(int64) ([]byte, bool, error) { return nil, false, nil }, io.ErrUnexpectedEOF},
		"empty":             {func(int64) ([]byte, bool, error) { return nil, true, nil }, io.ErrUnexpectedEOF},
		"others":            {func(int64) ([]byte, bool, error) { return bytes.Repeat([]byte("!"), 300<<10), true, nil }, attach.ErrDamaged},
		"out of reach":      {func(int64) ([]byte, bool, error) { return nil, false, broken }, broken},
	} {
		store, f, _ := newFaulty(t)
		kept, err := store.Put(t.Context(), bytes.NewReader(large), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		f.read = c.read
		content, err := store.Open(t.Context(), kept.Bucket, kept.Path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(content); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
