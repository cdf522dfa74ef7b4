package messages

import "parley/ingest/journal/storage"

// find reads the first message that meets a condition, without its files; nil for none.
func find(tx *storage.Txn, where string, args ...any) *Message {
	var m Message
	if !tx.Row(m.dest(), `SELECT `+messageColumns+` FROM messages m WHERE `+where, args...) {
		return nil
	}
	unpack(tx, &m)
	return &m
}

// findAll reads the messages that meet a condition, with their files.
func findAll(tx *storage.Txn, where string, args ...any) []Message {
	return Complete(tx, storage.Rows(tx, (*Message).dest, `SELECT `+messageColumns+` FROM messages m WHERE `+where, args...))
}

// ByExternalID returns a message of a workspace, without its files; nil for none.
func ByExternalID(tx *storage.Txn, workspace, externalID string) *Message {
	return find(tx, `workspace = $1 AND external_id = $2`, workspace, externalID)
}

// ByRunID returns the message of a thread whose client gave its run an id, without its files; nil for none.
func ByRunID(tx *storage.Txn, thread int64, id string) *Message {
	return find(tx, `client_run_id = $1 AND thread = $2`, id, thread)
}

// ByClientID returns the message of a thread with the id that its sender gave it, without its files; nil for none.
func ByClientID(tx *storage.Txn, thread int64, sender, id string) *Message {
	return find(tx, `thread = $1 AND sender_id = $2 AND client_message_id = $3`, thread, sender, id)
}

// Reply returns the reply of a run, without its files; nil for none.
func Reply(tx *storage.Txn, run string) *Message {
	return find(tx, `run = $1 AND author = 'agent'`, run)
}

// replyOf is the condition that a message is the reply of a post of ours: $1 is the
// post's workspace, $2 its platform id. The closing bracket follows.
const replyOf = `author = 'agent' AND run = (SELECT d.run FROM deliveries d WHERE d.workspace = $1 AND d.platform_id = $2`

// ReplyOf returns the reply of a post of ours, by the post's id, without its files; nil for none.
func ReplyOf(tx *storage.Txn, workspace, platformID string) *Message {
	return find(tx, replyOf+`)`, workspace, platformID)
}

// ReplyOfOnly is ReplyOf for a post that is the only one of its reply.
func ReplyOfOnly(tx *storage.Txn, workspace, platformID string) *Message {
	return find(tx, replyOf+` AND NOT EXISTS (SELECT 1 FROM deliveries o WHERE o.run = d.run AND o.kind = 'post' AND o.id <> d.id))`, workspace, platformID)
}

// OfRun returns the messages of a run in order: its turn's, its reply and its notice. Deleted ones are left out.
func OfRun(tx *storage.Txn, run string) []Message {
	return findAll(tx, `run = $1 AND deleted_at = 0 ORDER BY seq`, run)
}

// Causes returns the messages of a run that no agent wrote, in order, also deleted ones.
func Causes(tx *storage.Txn, run string) []Message {
	return findAll(tx, `run = $1 AND author IN ('human', 'bot', 'system') ORDER BY seq`, run)
}

// NewestOfAgents returns the newest messages of agents in a thread, at most so many, the newest first.
func NewestOfAgents(tx *storage.Txn, thread int64, most int) []Message {
	return findAll(tx, `thread = $1 AND sender_id LIKE 'agent:%' AND author IN ('agent', 'bot') AND deleted_at = 0 AND seq IS NOT NULL
		ORDER BY seq DESC LIMIT CAST($2 AS BIGINT)`, thread, int64(most))
}
