// Package listing reads what operators look at: counts, lists and the life of a message.
//
// It never writes. Every query is bounded, by an index and a limit, so that its cost does not grow
// with the store. Each area has a file.
package listing

import "parley/ingest/journal/storage"

// Listing has the queries of operators on a journal.
type Listing struct{ db *storage.DB }

// New returns the queries on a store.
func New(db *storage.DB) *Listing { return &Listing{db} }
