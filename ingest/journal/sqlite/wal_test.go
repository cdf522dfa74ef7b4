package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// frameBytes is the size of a frame of the log.
const frameBytes = 24 + 4096

// killed returns the database of an engine and its log as a killed process leaves them.
func killed(t *testing.T, path string) (database, log []byte) {
	t.Helper()
	for end, to := range map[string]*[]byte{"": &database, "-wal": &log} {
		var err error
		if *to, err = os.ReadFile(path + end); err != nil {
			t.Fatal(err)
		}
	}
	return database, log
}

// left writes the files of a killed process into a new folder. A log that is nil is missing.
func left(t *testing.T, database, log []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "parley.db")
	for end, from := range map[string][]byte{"": database, "-wal": log} {
		if from == nil {
			continue
		}
		if err := os.WriteFile(path+end, from, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// flip turns 64 bytes over.
func flip(log []byte, at int) []byte {
	log = bytes.Clone(log)
	for i := range 64 {
		log[at+i] ^= 0xff
	}
	return log
}

// wide adds a fact that takes several pages.
func wide(name string) func(storage.Tx) error {
	return func(tx storage.Tx) error {
		_, err := tx.Exec("INSERT INTO facts (name, body) VALUES (?, ?)", name, bytes.Repeat([]byte(name), 2000))
		return err
	}
}

// TestDamagedLog looks for damage in logs that SQLite has written. One that lost more than its last transaction is found, with the
// number of those that SQLite drops, and no other one.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	const facts = 12
	path := file(t)
	e := open(t, path, sqlite.WithCheckpoints(1<<20, 1<<20))
	for i := range facts {
		write(t, e, wide(fmt.Sprint("fact ", i)))
	}
	database, log := killed(t, path)
	frames := (len(log) - 32) / frameBytes
	each := frames / facts // or one more
	if each < 4 {
		t.Fatalf("%d frames a transaction", each)
	}
	frame := func(n int) int { return 32 + (n-1)*frameBytes } // n from 1
	torn := bytes.Clone(log)
	clear(torn[frame(frames-each+2):frame(frames-each+3)]) // its commit is there, behind a page that is not
	for _, c := range []struct {
		what    string
		log     []byte
		damaged bool
	}{
		{"a whole log", log, false},
		{"no log", nil, false},
		{"an empty log", []byte{}, false},
		{"a part of a header", log[:20], false},
		{"a log of zeros", make([]byte, len(log)), false},
		{"a last frame that is cut off", log[:len(log)-100], false},
		{"a last transaction without its end", log[:frame(frames)], false},
		{"a last transaction with a hole", torn, false},
		{"damage in the last frame", flip(log, frame(frames)+500), false},
		{"a damaged page", flip(log, frame(frames/2)+1000), true},
		{"a damaged begin of a frame", flip(log, frame(frames/2)-20), true},
		{"a damaged first frame", flip(log, frame(1)+10), true},
		{"a damaged header", flip(log, 0), true},
		{"a damaged salt", append(append(bytes.Clone(log[:16]), 1, 2, 3, 4), log[20:]...), true},
	} {
		path := left(t, database, c.log)
		_, commits, err := sqlite.DamagedLog(path)
		if err != nil || commits > 0 != c.damaged {
			t.Errorf("%s: %d transactions, %v", c.what, commits, err)
		}
	}
	for at := 32; at+64 <= len(log); at += 3*frameBytes/2 + 5 {
		path := left(t, database, flip(log, at))
		n, commits, err := sqlite.DamagedLog(path)
		if err != nil || commits > 0 && n != (at-32)/frameBytes+1 {
			t.Errorf("damage at %d: frame %d, %v", at, n, err)
		}
		switch missing := facts - len(names(t, open(t, path))); {
		case commits == 0 && missing > 2, commits > 0 && missing != commits && missing != commits+1: // the damage may hide one end
			t.Errorf("damage at %d: %d transactions are said to be lost, and %d are", at, commits, missing)
		}
	}
}

// TestDamagedLogAfterARestart looks for damage in a log that has begun again: behind its end are frames from before.
func TestDamagedLogAfterARestart(t *testing.T) {
	t.Parallel()
	path := file(t)
	e := open(t, path, sqlite.WithCheckpoints(1<<20, 60))
	var log []byte
	database, first := []byte(nil), true
	for i, since := 0, 0; since < 4; i++ {
		write(t, e, wide(fmt.Sprint("fact ", i)))
		before := log
		if database, log = killed(t, path); before != nil && !bytes.Equal(before[:32], log[:32]) || !first {
			first = false
			since++
		}
	}
	used := 0 // frames with the salts of the header
	for at := 32; at+frameBytes <= len(log) && bytes.Equal(log[at+8:at+16], log[16:24]); at += frameBytes {
		used++
	}
	if rest := (len(log)-32)/frameBytes - used; used < 10 || rest < 20 {
		t.Fatalf("%d frames, and %d from before", used, rest)
	}
	end := 32 + used*frameBytes
	for what, c := range map[string]struct {
		log     []byte
		commits int
	}{
		"whole":          {log, 0},
		"torn":           {flip(log, end-100), 0},
		"damaged":        {flip(log, 32+frameBytes+100), 4},
		"damaged before": {flip(log, end+frameBytes+100), 0},
	} {
		if _, commits, err := sqlite.DamagedLog(left(t, database, c.log)); commits != c.commits || err != nil {
			t.Errorf("%s: %d transactions, %v; want %d", what, commits, err, c.commits)
		}
	}
}

// TestDamagedLogOfAWriter looks at a log that is being written and begins again often.
func TestDamagedLogOfAWriter(t *testing.T) {
	t.Parallel()
	path := file(t)
	e := open(t, path, sqlite.WithCheckpoints(20, 40))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			if err := e.Write(t.Context(), storage.WriteOptions{}, wide(fmt.Sprint("fact ", i))); err != nil {
				t.Error(err)
			}
		}
	}()
	for writing := true; writing; {
		if n, commits, err := sqlite.DamagedLog(path); commits > 0 || err != nil {
			t.Errorf("frame %d, %d transactions, %v", n, commits, err)
		}
		select {
		case <-done:
			writing = false
		default:
		}
	}
}

// errorsOf counts the errors of a log.
type errorsOf struct {
	slog.Handler
	n int
}

func (e *errorsOf) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		e.n++
	}
	return nil
}

func (e *errorsOf) Enabled(context.Context, slog.Level) bool { return true }

// TestDamagedLogIsTold proves that looking at a store with a damaged log keeps the log as it is, that each start tells the loss until a
// backup is restored, and that a start after a kill tells nothing.
func TestDamagedLogIsTold(t *testing.T) {
	t.Parallel()
	source := file(t)
	e, err := sqlite.Open(t.Context(), source, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		write(t, e, func(tx storage.Tx) error {
			_, err := tx.Exec(`INSERT INTO adapter_state (workspace, name, value) VALUES ('w', $1, 'x')`, fmt.Sprint(i))
			return err
		})
	}
	database, log := killed(t, source)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	start := func(path string) int {
		t.Helper()
		told := &errorsOf{}
		e, err := sqlite.Open(t.Context(), path, sqlite.Options{Log: slog.New(told)})
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return told.n
	}
	inspect := func(path string) sqlite.Inspection {
		t.Helper()
		found, err := sqlite.Inspect(t.Context(), path, time.Now())
		if err != nil || found.Damage != "" {
			t.Fatalf("%+v, %v", found, err)
		}
		return found
	}
	whole := left(t, database, log)
	if found := inspect(whole); found.Log != "" || found.Lost != "" {
		t.Errorf("a killed process: %+v", found)
	}
	if n := start(whole); n != 0 {
		t.Errorf("a killed process: %d errors", n)
	}

	damaged := left(t, database, flip(log, len(log)/2))
	if _, err := sqlite.Check(t.Context(), damaged, sqlite.Options{}); err != nil {
		t.Error(err)
	}
	if err := sqlite.View(t.Context(), damaged, func(storage.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
	for range 2 {
		if found := inspect(damaged); found.Log == "" || found.Lost != "" {
			t.Errorf("before the start: %+v", found)
		}
	}
	for range 2 {
		if n := start(damaged); n != 1 {
			t.Errorf("%d errors at a start", n)
		}
		if found := inspect(damaged); found.Log != "" || found.Lost == "" {
			t.Errorf("after the start: %+v", found)
		}
	}
	if err := os.Remove(damaged); err != nil { // and a backup is restored in its place
		t.Fatal(err)
	}
	err = sqlite.Place(damaged, func(draft *os.File) error {
		_, err := draft.Write(database)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, found := start(damaged), inspect(damaged); n != 0 || found.Lost != "" {
		t.Errorf("after a restore: %d errors, %+v", n, found)
	}
}
