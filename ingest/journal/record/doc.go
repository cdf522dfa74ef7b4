// Package record applies events to their threads: each transaction calls the owners of the tables
// that the event changes. It owns none itself.
package record

import (
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// Recorder records the events of a journal.
type Recorder struct {
	db        *storage.DB
	files     *files.Files
	envelopes *envelopes.Envelopes
}

// New returns the recorder of a store with its files and its envelopes.
func New(db *storage.DB, files *files.Files, envelopes *envelopes.Envelopes) *Recorder {
	return &Recorder{db, files, envelopes}
}
