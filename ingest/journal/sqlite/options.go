package sqlite

import (
	"embed"
	"io/fs"
	"log/slog"

	"parley/ingest/journal"
)

//go:embed migrations
var embedded embed.FS

// Option changes how Open opens a journal.
type Option func(*options)

type options struct {
	vfs        string // the name of an SQLite VFS, by which tests inject faults; empty: the system's
	log        *slog.Logger
	recorder   journal.Recorder // nil: no recorder
	migrations fs.FS
	pattern    string // of the migrations' files
	// The log is checkpointed after it has grown by passivePages. It is restarted between
	// two commits after longestPages have been written to it.
	passivePages, longestPages int
}

// The sizes of the log, in pages of 8 KiB: 4 MiB and 64 MiB.
const (
	passivePages = 512
	longestPages = 8 * 1024
)

// maxReaders bounds the concurrent snapshots. Each connection may keep 2 MiB of pages,
// and is opened at its first use.
const maxReaders = 6

func newOptions(opts []Option) options {
	o := options{
		log:          slog.New(slog.DiscardHandler),
		migrations:   embedded,
		pattern:      "migrations/*.sql",
		passivePages: passivePages,
		longestPages: longestPages,
	}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithLogger sets the log for failures that no caller receives, such as a failed
// checkpoint. Without it, nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRecorder sets the recorder of commits.
func WithRecorder(recorder journal.Recorder) Option {
	return func(o *options) { o.recorder = recorder }
}

// WithMigrations replaces the journal's schema by the files that match a pattern.
// migrations/README.md explains their names.
func WithMigrations(files fs.FS, pattern string) Option {
	return func(o *options) { o.migrations, o.pattern = files, pattern }
}
