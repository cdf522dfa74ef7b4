package attach_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/attach"
	"parley/ingest/event"
)

const limit = 64 << 10

var png = append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixel"), 400)...)

func newStore(t *testing.T) (*attach.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data", "attachments")
	return open(t, attach.Config{Dir: dir, MaxBytes: limit}, nil), dir
}

// files lists the files below dir, with their modes.
func filesOf(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = info.Mode()
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, store *attach.Store, kept attach.Copy) []byte {
	t.Helper()
	file, err := store.Open(t.Context(), kept.Bucket, kept.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestACopyIsStoredUnderItsSum(t *testing.T) {
	store, dir := newStore(t)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory exists before the first copy: %v", err)
	}
	got, err := store.Put(t.Context(), iotest.OneByteReader(bytes.NewReader(png)), event.Attachment{Name: "cat.png", MimeType: "image/png"})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(png)
	digits := hex.EncodeToString(sum[:])
	want := attach.Copy{Bucket: "attachments", Path: digits[:2] + "/" + digits, MimeType: "image/png", Size: int64(len(png)), SHA256: digits}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Equal(read(t, store, got), png) {
		t.Error("the copy differs from the file")
	}
	if diff := cmp.Diff(map[string]fs.FileMode{got.Path: 0o600}, filesOf(t, dir)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v, %v", info.Mode(), err)
	}
}

func TestPutRepairsADamagedCopy(t *testing.T) {
	store, dir := newStore(t)
	put := func() attach.Copy {
		made, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	kept := put()
	if err := os.WriteFile(filepath.Join(dir, kept.Path), png[:9], 0o600); err != nil {
		t.Fatal(err)
	}
	damaged, err := store.Open(t.Context(), kept.Bucket, kept.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer damaged.Close()
	if _, err := io.ReadAll(damaged); !errors.Is(err, attach.ErrDamaged) {
		t.Errorf("read a damaged copy: %v", err)
	}
	put()
	if !bytes.Equal(read(t, store, kept), png) {
		t.Error("the damaged copy remains")
	}
}

func TestTheLimit(t *testing.T) {
	store, dir := newStore(t)
	if _, err := store.Put(t.Context(), bytes.NewReader(make([]byte, limit)), event.Attachment{}); err != nil {
		t.Errorf("a file of exactly the limit: %v", err)
	}
	before := filesOf(t, dir)

	_, err := store.Put(t.Context(), bytes.NewReader(make([]byte, limit+1)), event.Attachment{Name: "big.bin"})
	if !errors.Is(err, attach.ErrTooLarge) || !strings.Contains(err.Error(), `"big.bin"`) || !strings.Contains(err.Error(), "65536 bytes") {
		t.Errorf("one byte above the limit: %v", err)
	}
	unread := iotest.ErrReader(errors.New("a source that was announced as too large was read"))
	if _, err := store.Put(t.Context(), unread, event.Attachment{Size: limit + 1}); !errors.Is(err, attach.ErrTooLarge) {
		t.Errorf("an announced size above the limit: %v", err)
	}
	if diff := cmp.Diff(before, filesOf(t, dir)); diff != "" {
		t.Errorf("refused files left %s", diff)
	}
}

func TestABrokenSourceLeavesNothing(t *testing.T) {
	cut := errors.New("connection reset")
	for name, source := range map[string]io.Reader{
		"at once":        iotest.ErrReader(cut),
		"in the middle":  io.MultiReader(bytes.NewReader(png), iotest.ErrReader(cut)),
		"with last data": iotest.DataErrReader(io.MultiReader(bytes.NewReader(png), iotest.ErrReader(cut))),
	} {
		store, dir := newStore(t)
		if _, err := store.Put(t.Context(), source, event.Attachment{}); !errors.Is(err, cut) {
			t.Errorf("%s: %v", name, err)
		}
		if found := filesOf(t, dir); len(found) != 0 {
			t.Errorf("%s: left %v", name, found)
		}
	}

	store, _ := newStore(t)
	short := io.MultiReader(bytes.NewReader(png), iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := store.Put(t.Context(), short, event.Attachment{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a body shorter than its Content-Length: %v", err)
	}
}

func TestPutEndsWithItsContext(t *testing.T) {
	store, dir := newStore(t)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	source := io.MultiReader(bytes.NewReader(png), readerFunc(func(p []byte) (int, error) {
		cancel(stopped)
		return copy(p, "more"), nil
	}))
	if _, err := store.Put(ctx, source, event.Attachment{}); !errors.Is(err, stopped) {
		t.Errorf("an endless source under a cancelled context: %v", err)
	}
	if found := filesOf(t, dir); len(found) != 0 {
		t.Errorf("left %v", found)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestOnlyCopiesCanBeOpened(t *testing.T) {
	store, dir := newStore(t)
	made, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(filepath.Dir(dir), "secret")
	if err := os.WriteFile(secret, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := made.Path[:2] + "/" + strings.Repeat("0", 64)
	if err := os.Symlink("../../secret", filepath.Join(dir, linked)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"", ".", "..", "../secret", secret, made.Path[:2], "/" + made.Path, "./" + made.Path,
		made.Path[:2] + "/../../secret", strings.ToUpper(made.Path), made.Path + "\n", made.Path + "/..",
		"incoming", "incoming/x", `..\secret`, linked,
	} {
		if file, err := store.Open(t.Context(), made.Bucket, path); err == nil {
			file.Close()
			t.Errorf("Open(%q) returned a file", path)
		}
		if path == linked {
			continue // a removal of the link itself is harmless
		}
		if err := store.Remove(t.Context(), made.Bucket, path); err == nil {
			t.Errorf("Remove(%q) was accepted", path)
		}
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

func TestReadsCreateNoDirectory(t *testing.T) {
	store, dir := newStore(t)
	if err := store.Remove(t.Context(), "attachments", absent); err != nil {
		t.Errorf("before the first put: %v", err)
	}
	if _, err := store.Open(t.Context(), "attachments", absent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first put: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}

func TestSweepRemovesOldDrafts(t *testing.T) {
	store, dir := newStore(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if err := store.Sweep(now); err != nil {
		t.Errorf("before the first put: %v", err)
	}
	made, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Time{
		"incoming/OLD": now.Add(-time.Second), "incoming/NEW": now.Add(time.Second), made.Path: now.Add(-time.Hour),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, png, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Sweep(now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]fs.FileMode{made.Path: 0o600, "incoming/NEW": 0o600}, filesOf(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestDiskErrorsNameTheDirectory puts a file at the path of each directory.
func TestDiskErrorsNameTheDirectory(t *testing.T) {
	const content = "notes"
	sum := sha256.Sum256([]byte(content))
	for _, inTheWay := range []string{".", "incoming", hex.EncodeToString(sum[:1])} {
		store, dir := newStore(t)
		blocked := filepath.Join(dir, inTheWay)
		if err := errors.Join(os.MkdirAll(filepath.Dir(blocked), 0o700), os.WriteFile(blocked, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		_, err := store.Put(t.Context(), strings.NewReader(content), event.Attachment{Name: "notes.txt"})
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), `"notes.txt"`) {
			t.Errorf("%s is a file: %v", inTheWay, err)
		}
		if diff := cmp.Diff(map[string]fs.FileMode{inTheWay: 0o644}, filesOf(t, dir)); diff != "" {
			t.Errorf("%s is a file: leftovers: %s", inTheWay, diff)
		}
	}
}
