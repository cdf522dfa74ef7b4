// Package messages stores and lists the messages of threads, and notes the messages that they quote.
package messages

import "parley/ingest/journal/storage"

// Messages are the messages of a journal's threads.
type Messages struct{ db *storage.DB }

// New returns the messages in a store.
func New(db *storage.DB) *Messages { return &Messages{db} }

// OfWorkspace returns the steps for the rows of a removed workspace. The statements before come
// first, for a few messages at a time.
func OfWorkspace(workspace string, before []string) []storage.Step {
	return []storage.Step{storage.ByID(workspace, "messages", "row", 5, before...), storage.ByKey(workspace, "carried", "message_id")}
}
