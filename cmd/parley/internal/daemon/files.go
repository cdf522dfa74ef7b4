package daemon

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"parley/adapters/agent/openai"
	"parley/config"
	"parley/ingest/attach"
	"parley/ingest/journal"
)

// newFiles returns the store of attachments' copies. Where the journal is one
// that other daemons share, they must find the copies too: it keeps them, unless
// a bucket is configured.
func newFiles(c *config.Config, j *journal.Journal) (*attach.Store, error) {
	if c.Store.Engine == config.SQLite {
		return attach.New(c.Attachments, nil)
	}
	return attach.New(c.Attachments, j)
}

var _ openai.Files = shelf{}

// shelf is where agents read copies. They go on without one that can't be had,
// so it is here that the operator hears of it.
type shelf struct {
	files   *attach.Store
	journal *journal.Journal
	log     *slog.Logger
}

// Open implements openai.Files. It ends a read that takes too long, and the run goes on.
// If the copy is missing, a later turn copies the file again.
func (s shelf) Open(ctx context.Context, bucket, path string) (io.ReadCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	content, err := s.files.Open(ctx, bucket, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, s.journal.CopyLost(ctx, bucket, path))
	}
	if err != nil {
		cancel()
		s.unread(path, err)
		return nil, err
	}
	return &taken{content, cancel, func(err error) { s.unread(path, err) }}, nil
}

func (s shelf) unread(path string, err error) {
	if !errors.Is(err, context.Canceled) {
		s.log.Warn("a copy can't be read; the agent goes on without it", "copy", path, "err", err)
	}
}

// taken is a copy that is being read.
type taken struct {
	io.ReadCloser
	cancel context.CancelFunc
	failed func(error)
}

// Read implements io.Reader.
func (t *taken) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		t.failed(err)
	}
	return n, err
}

// Close implements io.Closer.
func (t *taken) Close() error {
	defer t.cancel()
	return t.ReadCloser.Close()
}
