package daemon

import (
	"context"

	"parley/adapters/web/files"
	"parley/ingest/attach"
)

// filesChanged logs that copies of attachments begin to fail, or are stored again if err is nil.
func (d *Daemon) filesChanged(err error) {
	if err != nil {
		d.log.Error("copies of attachments can't be stored", "err", err)
		return
	}
	d.log.Info("copies of attachments are stored again")
}

// newStorage returns the storage of files that clients send and read.
func (d *Daemon) newStorage(c attach.Config) files.Storage {
	return files.Storage{
		Links: &files.Links{
			Base: d.publicURL, TTL: c.TTL, Now: d.now,
			Key: func(ctx context.Context) ([]byte, error) { return d.Journal.Threads.Key(ctx, "links") },
		},
		Copies: d.files, MaxBytes: c.MaxBytes, Guard: d.guard,
	}
}
