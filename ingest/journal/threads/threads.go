// Package threads stores where people talk: workspaces, channels, threads with their claims and
// participants, exclusive leases, gaps, and the small values of adapters and tickets.
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

// Also are the columns of a thread's row that another package writes with Upsert: their list, their
// values in a new row, and what changes in a known one.
type Also struct{ Columns, Values, Sets string }

// Upsert returns the statement that makes the thread with a key, $1 or another one, or finds it, if a
// condition holds. The arguments are the key, the UUID, the workspace, the platform, the channel, the time
// $6, the node and the end of the lease, which are empty without a claim, the further value $9, the dedupe
// key of the envelope, the time up to which leases have ended, the node, and the channel's parent.
func Upsert(key, condition string, also Also) string {
	// excluded is the row that a new thread would have. An accept that reaches the server late
	// shortens no lease.
	const ours = `excluded.owner <> '' AND threads.owner = excluded.owner AND threads.lease_until < excluded.lease_until`
	const free = `excluded.owner <> '' AND threads.owner <> excluded.owner AND (threads.owner = ''
		OR threads.lease_until <= $11 AND threads.pending = 0 AND threads.run_id IS NULL)`
	return `
		INSERT INTO threads (key, uuid, workspace, platform, channel, parent, owner, lease_until, fence, ` + also.Columns + `)
		SELECT ` + key + `, $2, $3, $4, $5, $13, $7, $8, 1, ` + also.Values + ` WHERE NOT EXISTS (SELECT 1 FROM envelopes WHERE workspace = $3 AND dedupe_key = $10)` + condition + `
		ON CONFLICT (key) DO UPDATE SET
			parent      = CASE WHEN threads.parent = '' THEN excluded.parent ELSE threads.parent END,
			` + also.Sets + `,
			fence       = CASE WHEN ` + free + ` THEN threads.fence + 1 ELSE threads.fence END,
			lease_until = CASE WHEN ` + ours + ` OR ` + free + ` THEN excluded.lease_until ELSE threads.lease_until END,
			owner       = CASE WHEN ` + free + ` THEN excluded.owner ELSE threads.owner END
		RETURNING id, key, CASE WHEN lease_until > $11 OR owner = $12 THEN owner ELSE '' END, fence, pending, run_id IS NULL AND turn_since IS NULL`
}

// Insert returns the statement that makes the thread with the key $1 for a message that is its first, unless there
// is one or a condition does not hold. The arguments are the key, the UUID, the workspace, the platform, the
// channel, its parent, the node and the end of the lease.
func Insert(condition string, also Also) string {
	return `
		INSERT INTO threads (key, uuid, workspace, platform, channel, parent, owner, lease_until, fence, ` + also.Columns + `)
		SELECT $1, $2, $3, $4, $5, $6, $7, CAST($8 AS BIGINT), 1, ` + also.Values + ` WHERE true` + UnusedUUID + condition + ` ON CONFLICT (key) DO NOTHING`
}

// Add makes a thread without a claim, unless there is one with its key.
func Add(tx *storage.Txn, platform event.Platform, channel string, t Thread) {
	tx.Do(`INSERT INTO threads (key, uuid, workspace, platform, channel) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (key) DO NOTHING`,
		string(t.Key), t.ID, t.Workspace, string(platform), channel)
}
