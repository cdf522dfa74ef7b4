// Package files stores the attachments of messages, and the places of their copies.
package files

import (
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

// Files are the attachments of a journal's messages, and their copies.
type Files struct {
	db     *storage.DB
	copies wake.Signal // is set if there are copies to check
}

// New returns the files in a store.
func New(db *storage.DB) *Files { return &Files{db, wake.NewSignal()} }
