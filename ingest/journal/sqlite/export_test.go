package sqlite

import (
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// Option changes the options of a test's engine.
type Option func(*Options)

// WithCheckpoints sets the numbers of pages after which the log is checkpointed and
// restarted.
func WithCheckpoints(passive, longest int) Option {
	return func(o *Options) { o.passivePages, o.longestPages = passive, longest }
}

// WithErase sets the wait before the log is truncated after words were removed.
func WithErase(wait time.Duration) Option { return func(o *Options) { o.erase = wait } }

// WithVFS opens the files through the named SQLite VFS instead of the system's.
func WithVFS(name string) Option { return func(o *Options) { o.vfs = name } }

// WithoutSharedMemory lets a reader open the database as if it may make no file in the folder.
func WithoutSharedMemory() Option { return func(o *Options) { o.fixed = true } }

// WithSteps sets the steps of the schema.
func WithSteps(steps ...schema.Step) Option { return func(o *Options) { o.Steps = steps } }

// WithRecorder sets the recorder of commits.
func WithRecorder(recorder storage.Recorder) Option {
	return func(o *Options) { o.Recorder = recorder }
}

// With returns options that are changed.
func With(opts ...Option) (o Options) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// Waiting returns the number of writes that wait for a transaction.
func (e *Engine) Waiting() int { _, ordinary := e.committer.Waiting(); return ordinary }

// DamagedLog returns the first frame that the damaged log of a database loses, and the number of the transactions that end there or
// behind it; 0 for a log that is not damaged.
func DamagedLog(path string) (frame, commits int, err error) {
	d, err := damagedLog(path)
	if d == nil {
		return 0, 0, err
	}
	return d.Frame, d.Commits, err
}
