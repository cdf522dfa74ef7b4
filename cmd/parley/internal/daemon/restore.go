package daemon

import (
	"context"
	"errors"
	"io"

	"parley/config"
	"parley/ingest/attach"
	"parley/ingest/backup"
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
)

// Restore restores an archive into the configured store, which must not exist if it is a file, and into
// the configured place of attachments.
func Restore(ctx context.Context, c *config.Config, archive io.Reader) (r backup.Result, err error) {
	if c.Store.Engine == config.SQLite {
		files, err := attach.New(c.Attachments, attach.Books{}, nil)
		if err != nil {
			return r, err
		}
		return backup.Restore(ctx, archive, backup.Target{Path: c.Store.Path, Files: files})
	}
	engine, err := postgres.Open(ctx, postgres.Options{URL: c.Store.URL.Reveal()})
	if err != nil {
		return r, err
	}
	j := journal.New(engine, journal.Options{})
	defer func() { err = errors.Join(err, j.Close()) }()
	files, err := newFiles(c, j)
	if err != nil {
		return r, err
	}
	return backup.Restore(ctx, archive, backup.Target{Files: files})
}
