package daemon

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/files"
	"parley/ingest/journal/sqlite"
)

// source is a Fetcher of files with a content.
type source func(ctx context.Context) io.Reader

// Fetch implements adapters.Fetcher.
func (s source) Fetch(ctx context.Context, _ event.Attachment) (io.ReadCloser, error) {
	return io.NopCloser(s(ctx)), nil
}

// hangs is a file whose bytes do not come.
type hangs struct{ context.Context }

// Read implements io.Reader.
func (h hangs) Read([]byte) (int, error) {
	<-h.Done()
	return 0, context.Cause(h)
}

// TestACopyThatEndsEarly: a later turn copies the file if its place hangs, or if the run ends.
// A source that hangs is not asked again.
func TestACopyThatEndsEarly(t *testing.T) {
	there, away := func(context.Context) io.Reader { return strings.NewReader("hi") }, func(ctx context.Context) io.Reader { return hangs{ctx} }
	for name, c := range map[string]struct {
		file source
		run  time.Duration // until its end
		want files.State
	}{
		"the place hangs":  {there, time.Hour, files.Pending},
		"the source hangs": {away, time.Hour, files.Unavailable},
		"the run ends":     {away, time.Second, files.Pending},
		"the run is over":  {there, 0, files.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"), sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer engine.Close()
				hang := func(ctx context.Context, _, _ string, _ time.Duration) error {
					<-ctx.Done()
					return ctx.Err()
				}
				store, err := attach.New(attach.Config{Dir: t.TempDir(), MaxBytes: 100}, attach.Books{Hold: hang}, nil)
				if err != nil {
					t.Fatal(err)
				}
				kept := attachments{store: store, records: journal.New(engine, journal.Options{}).Files}
				run, end := context.WithCancelCause(t.Context())
				if c.run == 0 {
					end(errors.New("interrupted"))
				}
				time.AfterFunc(c.run, func() { end(errors.New("interrupted")) })
				got, err := kept.fetch(run, c.file, "", files.Attachment{State: files.Pending})
				if got.State != c.want || err == nil {
					t.Errorf("%s: %v", got.State, err)
				}
			})
		})
	}
}
