package sqlite

import (
	"embed"
	"io/fs"
	"log/slog"
	"time"
)

//go:embed migrations
var embedded embed.FS

// Recorder hears how the journal does.
type Recorder interface {
	// Committed is called by the committer after each COMMIT that succeeded, with
	// the number of callers that shared it and how long COMMIT itself took. It
	// must return at once.
	Committed(callers int, took time.Duration)
}

// Option changes how Open opens a journal.
type Option func(*options)

type options struct {
	vfs        string
	log        *slog.Logger
	recorder   Recorder
	migrations fs.FS
	readers    int
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
		readers:      maxReaders,
		passivePages: passivePages,
		longestPages: longestPages,
	}
	for _, opt := range opts {
		opt(&o)
	}
	if o.migrations == nil {
		o.migrations = subdirectory(embedded, "migrations")
	}
	return o
}

// subdirectory is fs.Sub for a name that is known to be valid.
func subdirectory(tree fs.FS, name string) fs.FS {
	sub, err := fs.Sub(tree, name)
	if err != nil {
		return tree
	}
	return sub
}

// WithLogger sets where the engine reports what no caller hears of, such as a
// checkpoint that failed. Without it nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRecorder sets who hears of every commit.
func WithRecorder(recorder Recorder) Option { return func(o *options) { o.recorder = recorder } }

// WithVFS opens the files through the SQLite VFS of this name instead of the
// system's. Tests use it to inject faults.
func WithVFS(name string) Option { return func(o *options) { o.vfs = name } }

// WithMigrations replaces the journal's own schema by the files of a directory,
// named as migrations/README.md says.
func WithMigrations(files fs.FS) Option { return func(o *options) { o.migrations = files } }

type silent struct{}

func (silent) Committed(int, time.Duration) {}
