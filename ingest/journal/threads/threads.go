// Package threads stores where people talk: workspaces, channels, threads with their claims and
// participants, exclusive leases, gaps, and the small values of adapters and tickets.
//
// The row of a thread has the state of its intake, its turn and its unfinished run. Each statement that writes the
// row is a function here, which gets the values.
package threads

import (
	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Threads are the workspaces, channels and threads of a journal.
type Threads struct {
	db  *storage.DB
	ids *IDs
}

// New returns the threads in a store.
func New(db *storage.DB, ids *IDs) *Threads { return &Threads{db, ids} }

// Aged returns the steps for news and tickets whose times are before bounds.
func Aged(news, tickets int64) []storage.Step {
	return []storage.Step{storage.ByAge("news", "workspace, actor, seq", "at", news), storage.ByAge("tickets", "hash", "until_at", tickets)}
}

// OfWorkspace returns the steps for the rows of a removed workspace. Its own row is the last.
func OfWorkspace(workspace string) []storage.Step {
	return []storage.Step{
		storage.ByID(workspace, "threads", "id", 100),
		storage.ByKey(workspace, "participants", "actor"), storage.ByKey(workspace, "actors", "actor"), storage.ByKey(workspace, "news", "actor"),
		storage.ByKey(workspace, "channels", "id"), storage.ByKey(workspace, "watermarks", "workspace"), storage.ByKey(workspace, "gaps", "channel"),
		storage.ByKey(workspace, "adapter_state", "name"),
		{Name: "workspaces", Bound: workspace, Removed: true, Statements: []string{`DELETE FROM workspaces WHERE id = $1`}},
	}
}

// LearnChannel stores the type of a channel.
func LearnChannel(tx *storage.Txn, workspace string, channel event.Channel) {
	tx.Do(`INSERT INTO channels (workspace, id, type) VALUES ($1, $2, $3) ON CONFLICT (workspace, id) DO UPDATE SET type = excluded.type`,
		workspace, channel.ID, string(channel.Type))
}
