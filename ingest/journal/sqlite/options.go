package sqlite

import (
	"cmp"
	"log/slog"
	"strings"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// Steps returns the steps of the journal's schema.
func Steps() []schema.Step { return schema.Steps("sqlite", strings.NewReplacer()) }

// Options are the settings of an engine.
type Options struct {
	// Log is for failures that no caller receives, such as a failed checkpoint. If it is nil,
	// nothing is logged.
	Log      *slog.Logger
	Recorder storage.Recorder // nil: no recorder
	Steps    []schema.Step    // of the schema; nil: those of the journal's

	fixed bool   // a Reader begins with connections that believe that the database never changes; for tests
	vfs   string // the name of an SQLite VFS, by which tests inject faults; empty: the system's
	// The log is checkpointed after it has grown by passivePages. It is restarted between
	// two commits after longestPages have been written to it. 0 is the constant of that name.
	passivePages, longestPages int
	// The log is truncated so long after words were removed; 0 is eraseAfter.
	erase time.Duration
}

// eraseAfter leaves time for further tries within a minute of the removal.
const eraseAfter = 30 * time.Second

// The sizes of the log, in pages of 4 KiB: 16 MiB and 64 MiB.
const (
	passivePages = 4 * 1024
	longestPages = 16 * 1024
)

// maxReaders bounds the concurrent snapshots. Each connection may keep 2 MiB of pages,
// and is opened at its first use.
const maxReaders = 6

// complete sets what is not set.
func (o *Options) complete() {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Steps == nil {
		o.Steps = Steps()
	}
	o.passivePages, o.longestPages = cmp.Or(o.passivePages, passivePages), cmp.Or(o.longestPages, longestPages)
	o.erase = cmp.Or(o.erase, eraseAfter)
}
