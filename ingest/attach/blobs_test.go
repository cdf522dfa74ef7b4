package attach_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/storage"
)

var large = bytes.Repeat([]byte("0123456789"), 60<<10)

// failing is a store whose nth write fails.
type failing struct {
	storage.Engine
	left int
}

var errFull = errors.New("the disk is full")

func (f *failing) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	if f.left--; f.left == 0 {
		return errFull
	}
	return f.Engine.Write(ctx, options, fn)
}

// TestAStoreThatFailsHasNoCopy proves that no failing write leaves a copy, until the next
// Put.
func TestAStoreThatFailsHasNoCopy(t *testing.T) {
	engine := &failing{Engine: newSQLite(t)}
	defer engine.Close()
	dir := t.TempDir()
	store := open(t, attach.Config{Dir: dir, MaxBytes: roomy}, journal.New(engine, journal.Options{}).Files)
	for n := 1; ; n++ {
		engine.left = n
		content := append(large, byte(n))
		_, err := store.Put(t.Context(), bytes.NewReader(content), event.Attachment{Name: "a.bin"})
		if err == nil {
			if n < 5 { // the check of the copy, three chunks, the end
				t.Errorf("write %d did not fail", n)
			}
			return
		}
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "in the store") {
			t.Errorf("write %d: %v", n, err)
		}
		if found := filesOf(t, dir); len(found) != 0 {
			t.Errorf("write %d: left %v on the disk", n, found)
		}
		kept, err := store.Put(t.Context(), bytes.NewReader(content), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, store, kept), content) {
			t.Errorf("write %d: the copy differs", n)
		}
	}
}

func TestADamagedBlobIsRefused(t *testing.T) {
	for name, change := range map[string]string{
		"a chunk is lost": "DELETE FROM blobs WHERE part = 2",
		"others":          "UPDATE blobs SET bytes = x'2121' WHERE part = 3",
	} {
		engine := newSQLite(t)
		defer engine.Close()
		store := open(t, attach.Config{Dir: t.TempDir(), MaxBytes: roomy}, journal.New(engine, journal.Options{}).Files)
		kept, err := store.Put(t.Context(), bytes.NewReader(large), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		content, err := store.Open(t.Context(), kept.Bucket, kept.Path)
		if err != nil {
			t.Fatal(err)
		}
		err = engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			_, err := tx.Exec(change)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(content); !errors.Is(err, attach.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
