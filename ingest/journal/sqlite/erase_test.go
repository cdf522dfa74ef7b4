package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// TestRemovedWordsLeaveTheFiles covers words in a page, in a chain of pages, and in removed rows.
func TestRemovedWordsLeaveTheFiles(t *testing.T) {
	path := file(t)
	e := open(t, path, sqlite.WithErase(time.Millisecond))
	const secret = "hunter2 is my password"
	exec := func(query string, args ...any) {
		t.Helper()
		write(t, e, func(tx storage.Tx) error {
			_, err := tx.Exec(query, args...)
			return err
		})
	}
	for i := range 40 {
		exec("INSERT INTO log (name, body) VALUES (?, ?)", fmt.Sprint("name", i), []byte(strings.Repeat(secret+" ", 1+i*100)))
	}
	if !bytes.Contains(contents(t, path), []byte(secret)) {
		t.Fatal("the words are not in the files")
	}
	exec("UPDATE log SET body = substr(body, 1, 0) WHERE name LIKE '%1%'")
	exec("DELETE FROM log WHERE name NOT LIKE '%1%'")
	e.Erased()
	for size(path+"-wal") > 0 {
		runtime.Gosched()
	}
	if n := bytes.Count(contents(t, path), []byte("hunter2")); n > 0 {
		t.Errorf("the words are in the files %d times", n)
	}
}

// contents returns the bytes of the database and of its log.
func contents(t *testing.T, path string) (all []byte) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return all
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
