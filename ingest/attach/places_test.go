package attach_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/record"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// roomy is a limit above several chunks.
const roomy = 2 << 20

// kind builds a place, and another daemon's store of the same one. left lists the names
// of all files in it.
type kind func(t *testing.T) (one, other *attach.Store, left func() []string)

var kinds = map[string]kind{
	"directory": func(t *testing.T) (*attach.Store, *attach.Store, func() []string) {
		dir := t.TempDir()
		config := attach.Config{Dir: dir, MaxBytes: roomy}
		return open(t, config, nil), open(t, config, nil), func() []string { return slices.Collect(maps.Keys(filesOf(t, dir))) }
	},
	"store on SQLite": func(t *testing.T) (*attach.Store, *attach.Store, func() []string) {
		return inStore(t, newSQLite(t))
	},
	"store on PostgreSQL": func(t *testing.T) (*attach.Store, *attach.Store, func() []string) {
		engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.URL(t)})
		if err != nil {
			t.Fatal(err)
		}
		return inStore(t, engine)
	},
	"bucket": func(t *testing.T) (*attach.Store, *attach.Store, func() []string) {
		server := startS3(t)
		one, dir := inBucket(t, server)
		other, _ := inBucket(t, server)
		return one, other, func() []string { return append(server.Keys(), slices.Collect(maps.Keys(filesOf(t, dir)))...) }
	},
}

func open(t *testing.T, config attach.Config, shared attach.Blobs) *attach.Store {
	t.Helper()
	var books attach.Books
	if f, ok := shared.(*files.Files); ok {
		books.Hold = f.HoldCopy
	}
	store, err := attach.New(config, books, shared)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newSQLite(t *testing.T) storage.Engine {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// inStore returns stores with copies in a journal on the engine, which is closed when the
// test ends.
func inStore(t *testing.T, engine storage.Engine) (one, other *attach.Store, left func() []string) {
	t.Helper()
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	node := func(name string) *attach.Store {
		return open(t, attach.Config{Dir: dir, MaxBytes: roomy}, journal.New(engine, journal.Options{Node: name}).Files)
	}
	return node("one"), node("other"), func() []string { return append(paths(t, engine), slices.Collect(maps.Keys(filesOf(t, dir)))...) }
}

// paths returns the names that have chunks.
func paths(t *testing.T, engine storage.Engine) (names []string) {
	t.Helper()
	err := engine.Read(t.Context(), func(tx storage.Tx) error {
		names = nil
		return tx.Rows(func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		}, `SELECT DISTINCT path FROM blobs`)
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func everywhere(t *testing.T, holds func(t *testing.T, build kind)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds(t, kind)
		})
	}
}

func TestACopyIsReadByAnotherDaemon(t *testing.T) {
	everywhere(t, func(t *testing.T, build kind) {
		one, other, _ := build(t)
		for _, size := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 512 << 10, roomy} {
			content := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
			kept, err := one.Put(t.Context(), iotest.HalfReader(bytes.NewReader(content)), event.Attachment{Name: "a.bin"})
			if err != nil || kept.Size != int64(size) {
				t.Fatalf("%d bytes: stored %d, %v", size, kept.Size, err)
			}
			if !bytes.Equal(read(t, other, kept), content) {
				t.Errorf("%d bytes: the copy differs from the file", size)
			}
		}
	})
}

func TestConcurrentPutsOfTheSameBytes(t *testing.T) {
	everywhere(t, func(t *testing.T, build kind) {
		one, other, left := build(t)
		content := bytes.Repeat([]byte("cat"), 200<<10)
		var all sync.WaitGroup
		for i := range 8 {
			store := []*attach.Store{one, other}[i%2]
			all.Go(func() {
				kept, err := store.Put(t.Context(), bytes.NewReader(content), event.Attachment{Name: "cat.bin"})
				if err != nil {
					t.Error(err)
				} else if !bytes.Equal(read(t, one, kept), content) {
					t.Error("a copy differs from the file")
				}
			})
		}
		all.Wait()
		if found := left(); len(found) != 1 {
			t.Errorf("equal bytes have the paths %q", found)
		}
	})
}

func TestAFailedPutLeavesNothing(t *testing.T) {
	cut := errors.New("connection reset")
	large := bytes.Repeat([]byte("x"), 300<<10)
	everywhere(t, func(t *testing.T, build kind) {
		one, _, left := build(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		for name, c := range map[string]struct {
			ctx    context.Context
			source io.Reader
			want   error
		}{
			"too large":   {t.Context(), bytes.NewReader(bytes.Repeat(large, 7)), attach.ErrTooLarge},
			"cut":         {t.Context(), io.MultiReader(bytes.NewReader(large), iotest.ErrReader(cut)), cut},
			"cut short":   {t.Context(), io.MultiReader(bytes.NewReader(large), iotest.ErrReader(io.ErrUnexpectedEOF)), io.ErrUnexpectedEOF},
			"interrupted": {ctx, io.MultiReader(bytes.NewReader(large), endless(func() { cancel(stopped) })), stopped},
		} {
			if _, err := one.Put(c.ctx, c.source, event.Attachment{Name: "a.bin"}); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if found := left(); len(found) != 0 {
				t.Errorf("%s: left %q", name, found)
			}
		}
	})
}

// endless returns a source without an end, which calls back when it is read.
func endless(then func()) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		then()
		return copy(p, "more"), nil
	})
}

func TestACopyIsRemoved(t *testing.T) {
	everywhere(t, func(t *testing.T, build kind) {
		one, other, left := build(t)
		kept, err := one.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Open(t.Context(), kept.Bucket, absent); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open an absent copy: %v", err)
		}
		for range 2 {
			if err := errors.Join(other.Remove(t.Context(), kept.Bucket, kept.Path), other.Remove(t.Context(), kept.Bucket, absent)); err != nil {
				t.Error(err)
			}
			if _, err := one.Open(t.Context(), kept.Bucket, kept.Path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("open a removed copy: %v", err)
			}
		}
		if found := left(); len(found) != 0 {
			t.Errorf("left %q", found)
		}
	})
}

// TestTheCopyOfADeletedMessageIsRemoved takes the unused copies from the journal.
func TestTheCopyOfADeletedMessageIsRemoved(t *testing.T) {
	everywhere(t, func(t *testing.T, build kind) {
		store, _, left := build(t)
		engine := newSQLite(t)
		defer engine.Close()
		j := journal.New(engine, journal.Options{Node: "one"})
		serial := 0
		record := func(e event.Event) {
			t.Helper()
			serial++
			accepted, err := j.Envelopes.Accept(t.Context(), envelopes.AcceptRequest{
				Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("{}")},
				Keys:     event.Keys{Kind: e.Kind, Dedupe: fmt.Sprint(serial), Thread: "slack:acme:C1:1"}, Claim: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = j.Recorder.Record(t.Context(), &threads.Claim{Thread: accepted.Thread, Fence: accepted.Fence, Key: accepted.Key}, record.Entry{Envelope: accepted.ID, Workspace: "acme", Event: e, Decide: passive})
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Files.RemoveCopies(t.Context(), store.Remove); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"C1/1", "C1/2"} {
			m := &event.Message{ExternalID: id, Attachments: []event.Attachment{{ID: "F" + id}}}
			record(event.Event{Kind: event.KindMessage, Message: m})
			kept, err := store.Put(t.Context(), bytes.NewReader(png), m.Attachments[0])
			if err != nil {
				t.Fatal(err)
			}
			thread, err := j.Threads.ThreadID(t.Context(), "slack:acme:C1:1")
			if err != nil {
				t.Fatal(err)
			}
			list, err := j.Messages.ThreadMessages(t.Context(), "acme", thread, messages.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			a := list[len(list)-1].Attachments[0]
			a.State, a.Bucket, a.Path = files.Stored, kept.Bucket, kept.Path
			if err := j.Files.SetAttachment(t.Context(), a, kept.SHA256); err != nil {
				t.Fatal(err)
			}
		}
		record(event.Event{Kind: event.KindDelete, Targets: []string{"C1/1"}})
		if found := left(); len(found) != 1 {
			t.Errorf("after the first delete: left %q", found)
		}
		record(event.Event{Kind: event.KindDelete, Targets: []string{"C1/2"}})
		if found := left(); len(found) != 0 {
			t.Errorf("after the second delete: left %q", found)
		}
	})
}

// TestAnAcknowledgedFileStays stores a file while another daemon removes the same bytes. If
// Put succeeds, the copy stays.
func TestAnAcknowledgedFileStays(t *testing.T) {
	for name, config := range map[string]attach.Config{
		"directory": {Dir: t.TempDir(), MaxBytes: roomy},
		"bucket":    s3Config(t, startS3(t)),
	} {
		t.Run(name, func(t *testing.T) {
			engine := newSQLite(t)
			defer engine.Close()
			now := time.Now()
			j := journal.New(engine, journal.Options{Now: func() time.Time { return now }})
			store, err := attach.New(config, attach.Books{Hold: j.Files.HoldCopy}, nil)
			if err != nil {
				t.Fatal(err)
			}
			put := func() (attach.Copy, error) {
				return store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
			}
			old, err := put()
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(24 * time.Hour)
			removals := 0
			err = j.Files.RemoveCopies(t.Context(), func(ctx context.Context, bucket, path string) error {
				removals++
				if _, err := put(); !storage.Unavailable(err) {
					t.Errorf("a put during the removal: %v", err)
				}
				return store.Remove(ctx, bucket, path)
			})
			if err != nil || removals != 1 {
				t.Errorf("%d removals: %v", removals, err)
			}
			if _, err := store.Open(t.Context(), old.Bucket, old.Path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after the removal: %v", err)
			}
			kept, err := put()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(read(t, store, kept), png) {
				t.Error("the copy differs")
			}
		})
	}
}

// TestNoBytesAreStoredBeforeTheirHold ends Put at its hold, so that nothing may be left.
func TestNoBytesAreStoredBeforeTheirHold(t *testing.T) {
	dir, ended := t.TempDir(), errors.New("the process ends")
	var held string
	store, err := attach.New(attach.Config{Dir: dir, MaxBytes: roomy, TTL: 48 * time.Hour}, attach.Books{Hold: func(_ context.Context, bucket, path string, atLeast time.Duration) error {
		held = fmt.Sprint(bucket, " ", path[:2], " ", atLeast)
		return ended
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), strings.NewReader("hello"), event.Attachment{}); !errors.Is(err, ended) {
		t.Error(err)
	}
	if left := filesOf(t, dir); held != "attachments 2c 48h0m0s" || len(left) != 0 {
		t.Errorf("held %s, left %v", held, left)
	}
}

func passive(*event.Message, record.Look) record.Decision {
	return record.Decision{Trigger: messages.TriggerPassive, Metadata: []byte("{}")}
}

// absent is the path of a copy that was never put.
var absent = "ab/" + strings.Repeat("ab", 32)

func TestSweepLeavesCopiesAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, build kind) {
		one, other, _ := build(t)
		if err := one.Sweep(time.Now().Add(time.Hour)); err != nil {
			t.Errorf("before the first put: %v", err)
		}
		var all []attach.Copy
		for n := range 32 { // paths begin with every digit
			kept, err := one.Put(t.Context(), bytes.NewReader([]byte{byte(n)}), event.Attachment{})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, kept)
		}
		if err := other.Sweep(time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		for n, kept := range all {
			if got := read(t, one, kept); len(got) != 1 || got[0] != byte(n) {
				t.Errorf("copy %d is %v", n, got)
			}
		}
	})
}

// TestACopyInAnotherPlace opens and removes in each place the copies of each other place.
func TestACopyInAnotherPlace(t *testing.T) {
	stores, copies := map[string]*attach.Store{}, map[string]attach.Copy{}
	for _, name := range []string{"directory", "store on SQLite", "bucket"} {
		stores[name], _, _ = kinds[name](t)
		kept, err := stores[name].Put(t.Context(), bytes.NewReader(png), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		copies[name] = kept
	}
	for name, store := range stores {
		for other, kept := range copies {
			content, err := store.Open(t.Context(), kept.Bucket, kept.Path)
			switch {
			case name == other && err == nil:
				content.Close()
			case name == other:
				t.Errorf("%s: %v", name, err)
			case !errors.Is(err, attach.ErrElsewhere) || !strings.Contains(err.Error(), kept.Bucket) || !strings.Contains(err.Error(), copies[name].Bucket):
				t.Errorf("%s, a copy in the %s: %v", name, other, err)
			}
			if err := store.Remove(t.Context(), kept.Bucket, kept.Path); name != other && !errors.Is(err, attach.ErrElsewhere) {
				t.Errorf("%s, remove a copy in the %s: %v", name, other, err)
			}
			if name == other {
				if _, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want := map[string]string{"directory": "attachments", "store on SQLite": "store", "bucket": "s3:parley-test/chat/files"}
	got := map[string]string{}
	for name, kept := range copies {
		got[name] = kept.Bucket
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names of the places: %s", diff)
	}
}
