package attach_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/ingest/attach"
	"parley/ingest/event"
)

// TestACopyIsReadFromAnyPosition reads parts of a copy of several chunks.
func TestACopyIsReadFromAnyPosition(t *testing.T) {
	everywhere(t, func(t *testing.T, build kind) {
		store, _, _ := build(t)
		content := bytes.Repeat([]byte("0123456789"), 60<<10)
		kept, err := store.Put(t.Context(), bytes.NewReader(content), event.Attachment{Name: "a.bin"})
		if err != nil {
			t.Fatal(err)
		}
		if address, err := store.Address(t.Context(), kept.Bucket, kept.Path, nil, time.Minute); err != nil || address != "" {
			if !strings.HasPrefix(kept.Bucket, "s3:") || err != nil {
				t.Errorf("its address is %q, %v", address, err)
			}
			return // the place serves it
		}
		if _, err := store.OpenAt(t.Context(), kept.Bucket, absent); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an absent copy: %v", err)
		}
		opened, err := store.OpenAt(t.Context(), kept.Bucket, kept.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		for _, part := range []struct{ at, n int }{{0, len(content)}, {0, 10}, {256<<10 - 3, 6}, {len(content) - 5, 5}, {300 << 10, 250 << 10}} {
			got := make([]byte, part.n)
			_, err := opened.Seek(int64(part.at), io.SeekStart)
			if _, more := io.ReadFull(opened, got); err != nil || more != nil || !bytes.Equal(got, content[part.at:part.at+part.n]) {
				t.Errorf("%d bytes at %d: %v, %v", part.n, part.at, err, more)
			}
		}
		if end, err := opened.Seek(7, io.SeekEnd); err != nil || end != int64(len(content)+7) {
			t.Errorf("%d, %v", end, err)
		}
		if n, err := opened.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("behind the end: %d, %v", n, err)
		}
		if _, err := opened.Seek(-1, io.SeekStart); err == nil {
			t.Error("a position before the begin is taken")
		}
	})
}

// TestAWholeReadFindsDamage changes a byte of a copy.
func TestAWholeReadFindsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, attach.Config{Dir: dir, MaxBytes: roomy}, nil)
	kept, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, kept.Path), bytes.ToUpper(append([]byte("x"), png[1:]...)), 0o600); err != nil {
		t.Fatal(err)
	}
	opened, err := store.OpenAt(t.Context(), kept.Bucket, kept.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if got, err := io.ReadAll(opened); !errors.Is(err, attach.ErrDamaged) || len(got) == len(png) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestABucketServesItsCopies fetches the presigned address of an object.
func TestABucketServesItsCopies(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	store, _ := inBucket(t, server)
	kept, err := store.Put(t.Context(), bytes.NewReader(png), event.Attachment{})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"image/png"}, "Content-Disposition": {`attachment; filename="a b.png"`}}
	address, err := store.Address(t.Context(), kept.Bucket, kept.Path, header, time.Millisecond)
	if err != nil || strings.Contains(address, canary) {
		t.Fatalf("%s, %v", address, err)
	}
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(content, png) {
		t.Errorf("%s: %q, %v", response.Status, content, err)
	}
	for key, want := range header {
		if got := response.Header.Get(key); got != want[0] {
			t.Errorf("%s: %q", key, got)
		}
	}
	if _, err := store.OpenAt(t.Context(), kept.Bucket, kept.Path); err == nil {
		t.Error("the store reads an object from any position, which costs a request each")
	}
	for _, path := range []string{"../../etc/passwd", kept.Path + "/..", "ab//" + kept.Path} {
		if _, err := store.Address(t.Context(), kept.Bucket, path, nil, time.Minute); err == nil {
			t.Errorf("%q has an address", path)
		}
	}
}
