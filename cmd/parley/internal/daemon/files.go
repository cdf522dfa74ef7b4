package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"

	kinds "parley/adapters/agent"
	"parley/adapters/web/files"
	"parley/config"
	"parley/ingest/attach"
	"parley/ingest/journal"
)

// newFiles returns the store of copies of attachments. If several daemons can share the
// journal, each must find the copies of the others, so they are in the journal unless a
// bucket is configured.
func newFiles(c *config.Config, j *journal.Journal) (*attach.Store, error) {
	books := attach.Books{Hold: j.Files.HoldCopy, Spend: j.Budgets.SpendBytes, Bytes: j.Files.CopyBytes}
	if c.Store.Engine == config.SQLite {
		return attach.New(c.Attachments, books, nil)
	}
	return attach.New(c.Attachments, books, j.Files)
}

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
			Key: func(ctx context.Context) ([]byte, error) { return d.journal.Places.Key(ctx, "links") },
		},
		Copies: d.files, Store: d, MaxBytes: c.MaxBytes, Guard: d.guard,
	}
}

var _ kinds.Files = agentFiles{}

// agentFiles opens copies for agents. An agent goes on without a copy that can't be read,
// so agentFiles logs that for the operator.
type agentFiles struct {
	files   *attach.Store
	journal *journal.Journal
	log     *slog.Logger
}

// Open implements agent.Files. It ends a read that takes longer than fetchTimeout, and
// the run goes on. If the copy is missing, a later turn copies the file again.
func (s agentFiles) Open(ctx context.Context, bucket, path string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	content, err := s.files.Open(ctx, bucket, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, s.journal.Files.CopyLost(ctx, bucket, path))
	}
	if err != nil {
		cancel()
		s.unread(path, err)
		return nil, err
	}
	return &openCopy{content, cancel, func(err error) { s.unread(path, err) }}, nil
}

// unread logs that a copy can't be read.
func (s agentFiles) unread(path string, err error) {
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("attachment copy not readable; the agent goes on without it", "copy", path, "err", err)
	}
}

// openCopy is a copy while an agent reads it.
type openCopy struct {
	io.ReadCloser
	cancel context.CancelFunc
	failed func(error)
}

// Read implements io.Reader.
func (t *openCopy) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		t.failed(err)
	}
	return n, err
}

// Close implements io.Closer.
func (t *openCopy) Close() error {
	defer t.cancel()
	return t.ReadCloser.Close()
}
