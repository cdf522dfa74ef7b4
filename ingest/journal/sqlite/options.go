package sqlite

import (
	"embed"
	"io/fs"
	"log/slog"
	"time"

	"parley/ingest/journal"
)

//go:embed migrations
var embedded embed.FS

// Option changes how Open opens a journal.
type Option func(*options)

type options struct {
	vfs        string
	log        *slog.Logger
	recorder   journal.Recorder
	migrations fs.FS
	pattern    string // of the migrations' files
	// The log is checkpointed when it has grown by passivePages, and begun again
	// between two commits when longestPages have been written to it.
	passivePages, longestPages int
}

// The sizes of the log, in pages of 4 KiB: 4 MiB and 64 MiB.
const (
	passivePages = 1024
	longestPages = 16 * 1024
)

// maxReaders is how many snapshots can be read at a time. Each connection may
// keep 2 MiB of pages and is opened when it is first needed.
const maxReaders = 6

func newOptions(opts []Option) options {
	o := options{
		log:          slog.New(slog.DiscardHandler),
		recorder:     silent{},
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

// WithLogger sets where the engine reports what no caller hears of, such as a
// checkpoint that failed. Without it nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRecorder sets who hears of every commit.
func WithRecorder(recorder journal.Recorder) Option {
	return func(o *options) { o.recorder = recorder }
}

// WithVFS opens the files through the SQLite VFS of this name instead of the
// system's. Tests use it to inject faults.
func WithVFS(name string) Option { return func(o *options) { o.vfs = name } }

// WithMigrations replaces the journal's own schema by the files that match a pattern,
// named as migrations/README.md says.
func WithMigrations(files fs.FS, pattern string) Option {
	return func(o *options) { o.migrations, o.pattern = files, pattern }
}

type silent struct{}

func (silent) Committed(int, time.Duration) {}
