// Package backup saves a whole store in one file while daemons work with it, and restores it into an
// empty place.
//
// An archive is a tar file, compressed with Zstandard. Its first entry describes the journal, then
// comes the journal's database, then the copies of attachments that the journal names, and at last
// the sums. So an archive that was cut off is recognised. Begin makes the contents, Create the
// file, and Verify and Restore read it.
//
// The database of a store that several daemons share is saved by its own tools. An archive of such
// a store has only the copies.
package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// ErrArchive means that a file is no whole archive of this program.
var ErrArchive = errors.New("this is no whole backup")

// The names of an archive's entries, in their order. A copy has filesAt before its path.
const (
	aboutName   = "manifest.json"
	journalName = "parley.db"
	filesAt     = "files/"
	sumsName    = "sums.json"
)

// format is the version of the archive's form.
const format = 1

// About describes the journal of an archive.
type About struct {
	Format  int       `json:"format"`
	Program string    `json:"program"` // the version that made it
	At      time.Time `json:"at"`      // of the snapshot
	Engine  string    `json:"engine"`  // sqlite, or postgres: then the archive has no database
	Schema  int64     `json:"schema"`
	// Tables are the numbers of the rows by table.
	Tables map[string]int64 `json:"tables"`
	// Bucket is the place of the copies.
	Bucket string `json:"bucket"`
}

// The engines of a store.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// sums is the last entry.
type sums struct {
	Journal string   `json:"journal"` // SHA-256 of the database; the sum of a copy is its name
	Files   int      `json:"files"`
	Missing []string `json:"missing"` // paths of copies that could not be read
}

// Result describes a whole archive.
type Result struct {
	About
	Files int `json:"files"`
	// Missing are the paths of copies that the journal names and that could not be read: they were
	// removed meanwhile, or are damaged.
	Missing []string `json:"missing"`
	Bytes   int64    `json:"bytes"`  // of the archive
	SHA256  string   `json:"sha256"` // of the archive, as sha256sum prints it
}

// lastBackup is the name of the store's own value with the time of the last backup.
const lastBackup = "backup"

// Record stores the time of the last backup that was made and read back. An older time changes nothing.
func Record(ctx context.Context, j *journal.Journal, at time.Time) error {
	return j.Threads.AdapterState("").Update(ctx, lastBackup, func(value string) string {
		if known, err := time.Parse(time.RFC3339, value); err == nil && !at.After(known) {
			return value
		}
		return at.UTC().Format(time.RFC3339)
	})
}

// Last returns the time that Record has stored, or the zero time.
func Last(ctx context.Context, j *journal.Journal) (time.Time, error) {
	value, err := j.Threads.AdapterState("").Get(ctx, lastBackup)
	if err != nil || value == "" {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, value)
}

// LastIn is Last for the embedded store in a file, which a daemon of another process may have open.
func LastIn(ctx context.Context, path string) (at time.Time, err error) {
	err = sqlite.View(ctx, path, func(tx storage.Tx) error {
		var value string
		_, err := tx.Row([]any{&value}, `SELECT value FROM adapter_state WHERE workspace = '' AND name = $1`, lastBackup)
		if err == nil && value != "" {
			at, err = time.Parse(time.RFC3339, value)
		}
		return err
	})
	return at, err
}

// pack returns an entry of the archive's own.
func pack(value any) []byte {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err)) // it has only texts and numbers
	}
	return append(raw, '\n')
}
