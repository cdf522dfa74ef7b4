package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"parley/cmd/parley/internal/boot"
	"parley/config"
	"parley/ingest/attach"
	"parley/ingest/backup"
	"parley/ingest/journal"
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
	engine, err := boot.Store(ctx, c.Store, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return r, err
	}
	j := journal.New(engine, journal.Options{})
	defer func() { err = errors.Join(err, j.Close()) }()
	files, err := boot.Files(c, j)
	if err != nil {
		return r, err
	}
	return backup.Restore(ctx, archive, backup.Target{Files: files})
}
