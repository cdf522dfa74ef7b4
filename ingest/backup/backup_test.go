package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/attach"
	"parley/ingest/backup"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// place is an installation: a store with its files.
type place struct {
	*journal.Journal
	t      *testing.T
	dir    string
	engine storage.Engine
	files  *attach.Store
}

// stored returns the installation in a folder, which is made if it is missing.
func stored(t *testing.T, dir string) *place {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(dir, "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return with(t, dir, engine, nil)
}

func with(t *testing.T, dir string, engine storage.Engine, shared func(*journal.Journal) attach.Blobs) *place {
	t.Helper()
	p := &place{Journal: journal.New(engine, journal.Options{}), t: t, dir: dir, engine: engine}
	var blobs attach.Blobs
	if shared != nil {
		blobs = shared(p.Journal)
	}
	p.files = filesIn(t, dir, blobs)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func filesIn(t *testing.T, dir string, blobs attach.Blobs) *attach.Store {
	t.Helper()
	files, err := attach.New(attach.Config{Dir: filepath.Join(dir, "attachments"), MaxBytes: 1 << 20, Quota: 1 << 30, PerSender: 1 << 30, TTL: time.Hour}, attach.Books{}, blobs)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// put stores a file.
func (p *place) put(content string) attach.Copy {
	p.t.Helper()
	made, err := p.files.Put(p.t.Context(), strings.NewReader(content), event.Attachment{Name: "a.txt", MimeType: "text/plain"})
	if err != nil {
		p.t.Fatal(err)
	}
	return made
}

func (p *place) exec(query string, args ...any) {
	p.t.Helper()
	err := p.engine.Write(p.t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// attach names a copy by a message.
func (p *place) attach(row int64, c attach.Copy) {
	p.t.Helper()
	p.exec(`INSERT INTO attachments (message, part, external_id, name, mime_type, size, state, bucket, path, sha256) VALUES ($1, 0, 'F', 'a', 'text/plain', $2, 'stored', $3, $4, $5)`,
		row, c.Size, c.Bucket, c.Path, c.SHA256)
}

// post names a copy by a delivery.
func (p *place) post(key string, c attach.Copy) {
	p.t.Helper()
	file, err := json.Marshal(outbox.File{Name: `"bucket":"x","path":"y`, Bucket: c.Bucket, Path: c.Path})
	if err != nil {
		p.t.Fatal(err)
	}
	p.exec(`INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload, state, due_at, created_at, kind, file) VALUES (1, 'r', 0, $1, 'acme', 'C', '', '', 'sent', 1, 1, 'post', $2)`, key, string(file))
}

// accept makes an envelope durable.
func (p *place) accept(id string) error {
	_, err := p.Envelopes.Accept(context.WithoutCancel(p.t.Context()), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: []byte("payload of " + id)},
		Keys:     event.Keys{Kind: event.KindMessage, Dedupe: id, Thread: event.ThreadKey("slack:acme:C1:" + id[:1]), Channel: event.Channel{ID: "C1"}, MessageID: id},
	})
	return err
}

// accepted returns the keys of all envelopes.
func (p *place) accepted() (keys []string) {
	p.t.Helper()
	err := p.engine.Read(p.t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			keys = append(keys, key)
			return err
		}, `SELECT dedupe_key FROM envelopes ORDER BY dedupe_key`)
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return keys
}

// save makes a backup at path.
func (p *place) save(path string) (backup.Result, error) {
	return backup.Create(p.t.Context(), path, func(w io.Writer) error {
		s, err := backup.Begin(p.t.Context(), backup.Source{Engine: p.engine, Files: p.files, Program: "test", Now: time.Now})
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Write(p.t.Context(), w)
	}, func(archive io.Reader, _ int64) io.Reader { return archive })
}

func (p *place) saved(path string) backup.Result {
	p.t.Helper()
	made, err := p.save(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return made
}

func restore(t *testing.T, archive string, to backup.Target) (backup.Result, error) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return backup.Restore(t.Context(), file, to)
}

// names lists the files below a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			list = append(list, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

// TestBackupDuringLoad accepts envelopes all the time. Each that was acknowledged before the backup began
// is in the restored store, once; and no accept failed.
func TestBackupDuringLoad(t *testing.T) {
	t.Parallel()
	p := stored(t, journaltest.Dir(t))
	var mu sync.Mutex
	var acknowledged []string
	var writers sync.WaitGroup
	stop, some := make(chan struct{}), make(chan struct{}, 1000)
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d", w, n)
				if err := p.accept(id); err != nil {
					t.Errorf("accept %s: %v", id, err)
					return
				}
				mu.Lock()
				acknowledged = append(acknowledged, id)
				mu.Unlock()
				select {
				case <-stop:
					return
				case some <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 500 {
		<-some
	}
	mu.Lock()
	before := slices.Clone(acknowledged)
	mu.Unlock()
	archive := filepath.Join(t.TempDir(), "a.tar.zst")
	made := p.saved(archive)
	close(stop)
	writers.Wait()

	dir := filepath.Join(journaltest.Dir(t), "new")
	back, err := restore(t, archive, backup.Target{Path: filepath.Join(dir, "parley.db"), Files: filesIn(t, dir, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(made, back); diff != "" {
		t.Error(diff)
	}
	found := stored(t, dir).accepted()
	for _, id := range before {
		if n := len(slices.DeleteFunc(slices.Clone(found), func(key string) bool { return key != id })); n != 1 {
			t.Fatalf("%s is there %d times", id, n)
		}
	}
	if n := made.Tables["envelopes"]; int(n) != len(found) || len(found) < 500 {
		t.Errorf("%d envelopes are restored, and the backup has %d", len(found), n)
	}
	t.Logf("%d acknowledged before, %d in the backup, %d in the store", len(before), len(found), len(p.accepted()))
}

// TestBackupHasTheNamedFiles and no others. A file that is gone or damaged is reported, and does not prevent the
// backup.
func TestBackupHasTheNamedFiles(t *testing.T) {
	t.Parallel()
	p := stored(t, journaltest.Dir(t))
	kept, gone, damaged, posted := p.put("kept"), p.put("gone"), p.put("damaged"), p.put("posted")
	p.put("named by nobody")
	for row, c := range []attach.Copy{kept, kept, gone, damaged} {
		p.attach(int64(row), c)
	}
	p.post("d", posted)
	p.post("e", kept)
	if err := p.files.Remove(t.Context(), gone.Bucket, gone.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "attachments", damaged.Path), []byte("DAMAGED"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "a.tar.zst")
	made := p.saved(archive)
	missing := []string{gone.Path, damaged.Path}
	slices.Sort(missing)
	if diff := cmp.Diff(missing, made.Missing); diff != "" || made.Files != 2 || made.Tables["attachments"] != 4 {
		t.Errorf("%d files, tables %v\n%s", made.Files, made.Tables, diff)
	}
	raw, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(raw); made.SHA256 != fmt.Sprintf("%x", sum) || made.Bytes != int64(len(raw)) {
		t.Errorf("the sum %s of %d bytes is not that of the file", made.SHA256, made.Bytes)
	}
	dir := filepath.Join(journaltest.Dir(t), "new")
	if _, err := restore(t, archive, backup.Target{Path: filepath.Join(dir, "parley.db"), Files: filesIn(t, dir, nil)}); err != nil {
		t.Fatal(err)
	}
	want := []string{"attachments/" + kept.Path, "attachments/" + posted.Path, "parley.db", "parley.db.lock"}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Errorf("the restored files (-want +got):\n%s", diff)
	}
}

// TestRestoreRefuses an archive that is not whole, and a place that has a store. It leaves no database.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	p := stored(t, journaltest.Dir(t))
	if err := p.accept("1"); err != nil {
		t.Fatal(err)
	}
	p.attach(1, p.put("kept"))
	archive := filepath.Join(t.TempDir(), "a.tar.zst")
	p.saved(archive)
	whole, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(whole)
	changed[len(changed)/2] ^= 1
	for name, content := range map[string][]byte{
		"cut off early": whole[:len(whole)/10], "cut off": whole[:len(whole)*2/3], "cut off late": whole[:len(whole)*9/10], "without its end": whole[:len(whole)-8], "changed": changed, "empty": nil, "something else": []byte("hello"), "more": append(bytes.Clone(whole), 'x'),
	} {
		dir := filepath.Join(journaltest.Dir(t), "new")
		target := backup.Target{Path: filepath.Join(dir, "parley.db"), Files: filesIn(t, dir, nil)}
		cause := ""
		if r, err := backup.Restore(t.Context(), bytes.NewReader(content), target); err == nil {
			t.Errorf("an archive that is %s is restored: %+v", name, r)
		} else {
			cause = err.Error()
		}
		if _, err := os.Stat(target.Path); err == nil {
			t.Errorf("an archive that is %s leaves a database", name)
		}
		if strings.HasPrefix(name, "cut off") && !strings.Contains(cause, "the file ends early: copy it again") {
			t.Errorf("an archive that is %s: %s", name, cause)
		}
		if _, err := backup.Verify(t.Context(), bytes.NewReader(content), filepath.Join(dir, "draft")); err == nil {
			t.Errorf("an archive that is %s is verified", name)
		}
		if _, err := backup.Restore(t.Context(), bytes.NewReader(whole), target); err != nil { // beside what the first one has left
			t.Errorf("after one that is %s: %v", name, err)
		}
		if _, err := backup.Restore(t.Context(), bytes.NewReader(whole), target); !errors.Is(err, sqlite.ErrExists) {
			t.Errorf("a second restore: %v", err)
		}
	}
	if _, err := p.save(archive); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a backup replaces a file: %v", err)
	}
	if _, err := restore(t, archive, backup.Target{Files: p.files}); err == nil {
		t.Error("an embedded store is restored into a shared one")
	}
}

// TestAFailedBackupLeavesNothing neither a file nor a snapshot.
func TestAFailedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	p, out := stored(t, journaltest.Dir(t)), t.TempDir()
	before := names(t, p.dir)
	failed := errors.New("no room")
	_, err := backup.Create(t.Context(), filepath.Join(out, "a"), func(w io.Writer) error {
		s, err := backup.Begin(t.Context(), backup.Source{Engine: p.engine, Files: p.files, Now: time.Now})
		if err != nil {
			return err
		}
		return errors.Join(s.Write(t.Context(), w), s.Close(), failed)
	}, func(archive io.Reader, _ int64) io.Reader { return archive })
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string(nil), names(t, out)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, names(t, p.dir)); diff != "" {
		t.Error(diff)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Begin(ended, backup.Source{Engine: p.engine, Files: p.files, Now: time.Now}); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that was ended: %v", err)
	}
}

// TestBackupNeedsAFolderOfTemporaryFiles for the copies alone: it must take files, and have room for the largest
// copy. The error names the folder and TMPDIR.
func TestBackupNeedsAFolderOfTemporaryFiles(t *testing.T) {
	p := stored(t, journaltest.Dir(t))
	begin := func() error {
		s, err := backup.Begin(t.Context(), backup.Source{Engine: p.engine, Files: p.files, Now: time.Now})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	refused := func(dir string) {
		t.Helper()
		if err := begin(); !errors.Is(err, backup.ErrSpool) || !strings.Contains(err.Error(), "make room in "+dir+", or set TMPDIR") {
			t.Errorf("%v", err)
		}
	}
	dir, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	if err := begin(); err != nil {
		t.Errorf("a store without copies: %v", err)
	}
	p.attach(1, p.put("kept"))
	refused(missing)
	t.Setenv("TMPDIR", dir)
	if err := begin(); err != nil {
		t.Error(err)
	}
	large := p.put("large")
	large.Size = 1 << 60
	p.attach(2, large)
	refused(dir)
	if diff := cmp.Diff([]string(nil), names(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestSharedStore saves the copies in a PostgreSQL store, whose database is saved by its own tools.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	shared := func() *place {
		engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.URL(t), Connections: 4})
		if err != nil {
			t.Fatal(err)
		}
		return with(t, t.TempDir(), engine, func(j *journal.Journal) attach.Blobs { return j.Files })
	}
	p := shared()
	kept := p.put("kept")
	p.attach(1, kept)
	p.post("d", p.put("posted"))
	archive := filepath.Join(t.TempDir(), "a.tar.zst")
	if made := p.saved(archive); made.Files != 2 || made.Engine != backup.Postgres || made.Tables["attachments"] != 1 {
		t.Errorf("made %+v", made)
	}
	q := shared()
	if _, err := restore(t, archive, backup.Target{Files: q.files}); err != nil {
		t.Fatal(err)
	}
	content, err := q.files.Open(t.Context(), kept.Bucket, kept.Path)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(content); string(raw) != "kept" || err != nil {
		t.Errorf("%q, %v", raw, err)
	}
	dir := t.TempDir()
	if _, err := restore(t, archive, backup.Target{Path: filepath.Join(dir, "parley.db"), Files: filesIn(t, dir, nil)}); err == nil {
		t.Error("a shared store is restored into a file")
	}
}

// TestLast checks the time of the last backup.
func TestLast(t *testing.T) {
	t.Parallel()
	p := stored(t, journaltest.Dir(t))
	if at, err := backup.Last(t.Context(), p.Journal); !at.IsZero() || err != nil {
		t.Errorf("%v, %v", at, err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	for _, at := range []time.Time{now, now.Add(-time.Hour)} {
		if err := backup.Record(t.Context(), p.Journal, at); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := backup.Last(t.Context(), p.Journal); !at.Equal(now) || err != nil {
		t.Errorf("%v, %v, want %v", at, err, now)
	}
}

// TestLastIn reads the time of the last backup from the file of a store.
func TestLastIn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(journaltest.Dir(t), "parley.db")
	if _, err := backup.LastIn(t.Context(), path); err == nil {
		t.Error("a missing file has a time")
	}
	engine, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j, now := journal.New(engine, journal.Options{}), time.Now().UTC().Truncate(time.Second)
	if err := errors.Join(backup.Record(t.Context(), j, now), j.Close()); err != nil {
		t.Fatal(err)
	}
	if at, err := backup.LastIn(t.Context(), path); !at.Equal(now) || err != nil {
		t.Errorf("%v, %v, want %v", at, err, now)
	}
}
