package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"parley/ingest/attach"
	"parley/ingest/journal/sqlite"
)

// The errors of an archive that is not of the target's kind.
var (
	errShared   = errors.New("the backup is of a PostgreSQL store and has only its files: restore the database with pg_restore, and then name it with --to")
	errEmbedded = errors.New("the backup has an SQLite database: restore it --to sqlite:<file>; parley copy-store can copy that to PostgreSQL")
)

// Target is the place of a restored store.
type Target struct {
	// Path is the file of an SQLite database, which must not exist. If it is empty, the database is a shared
	// one, which was restored by its own tools, and only copies are missing in it.
	Path string
	// Files is the place of the copies. It may have copies already.
	Files *attach.Store
}

// Restore restores an archive. Before the database gets its name, everything was compared with the sums and
// counts of the archive. A killed process leaves no database; copies that are there already are
// harmless, and the next call writes them again. The error wraps sqlite.ErrExists if there is a database.
func Restore(ctx context.Context, archive io.Reader, to Target) (r Result, err error) {
	into := sink{
		about: to.accepts,
		file: func(path string, content io.Reader) error {
			return to.Files.Restore(ctx, path, content)
		},
	}
	if to.Path == "" {
		return unpack(ctx, archive, into)
	}
	err = sqlite.Place(to.Path, func(draft *os.File) error {
		into.draft = draft
		r, err = unpack(ctx, archive, into)
		return err
	})
	return r, err
}

// accepts returns an error if an archive is not of the target's kind, or its journal names another place of
// copies than the configured one.
func (to Target) accepts(a About) error {
	switch {
	case a.Engine == Postgres && to.Path != "":
		return errShared
	case a.Engine != Postgres && to.Path == "":
		return errEmbedded
	case a.Bucket != to.Files.Bucket():
		return fmt.Errorf("the journal names the files of %q, and the configured attachments are in %q: configure the same place", a.Bucket, to.Files.Bucket())
	}
	return nil
}
