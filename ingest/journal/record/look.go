package record

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Ours implements Look.
func (r *recordTx) Ours(externalID string) bool { return outbox.IsPost(r.Txn, r.Workspace, externalID) }

// Answered implements Look. It reads the turns of the thread, not its messages.
func (r *recordTx) Answered() bool {
	return r.Has(`SELECT 1 FROM messages turn JOIN messages reply ON reply.run = turn.run AND reply.author = 'agent'
		WHERE turn.thread = $1 AND turn.context_after IS NOT NULL LIMIT 1`, r.claim.Thread)
}

// Said implements Look.
func (r *recordTx) Said(sender, reason string, since time.Time) bool {
	return r.Has(`SELECT 1 FROM messages WHERE thread = $1 AND seq IS NOT NULL AND sender_id = $2 AND reason = $3 AND created_at >= $4 LIMIT 1`,
		r.claim.Thread, sender, reason, storage.Millis(since))
}

// Quiet implements Look.
func (r *recordTx) Quiet(since time.Time) bool {
	return threads.IsQuiet(r.Txn, r.claim.Thread, storage.Millis(since))
}

// lately is the number of a thread's newest messages among which one is looked for whose rest comes.
const lately = 20

// Continued implements Look.
func (r *recordTx) Continued(m *event.Message) (how event.Addressed) {
	r.Row([]any{(*string)(&how)}, `SELECT reason FROM messages WHERE thread = $1 AND seq >= $2 AND sender_id = $3 AND trigger = 'run'
		AND reason IN ('mention', 'direct', 'reply') AND sent_at BETWEEN $4 AND $5 ORDER BY seq DESC LIMIT 1`,
		r.claim.Thread, r.thread.NextSeq-lately, m.Metadata.SenderID, storage.Millis(m.SentAt.Add(-splitWithin)), storage.Millis(m.SentAt))
	return how
}

// BotRuns implements Look. Without coalescing, each waiting message is a turn of its own.
// Otherwise a thread's waiting messages are one turn, which this message joins. A thread without
// an unfinished run has no run_bot_channel.
func (r *recordTx) BotRuns(channel string, since time.Time) int {
	channel = r.channel(channel)
	outbox.LockPace(r.Txn, r.Workspace, channel)
	asked, joined := `threads`, r.claim.Thread
	if r.Coalesce == 0 {
		asked, joined = `threads JOIN messages ON messages.thread = threads.id AND messages.trigger = 'run' AND messages.run IS NULL AND messages.author = 'bot'`, 0
	}
	var n int64
	r.Row([]any{&n}, `SELECT (SELECT count(*) FROM runs WHERE bot_channel = $1 AND begun_at > $2 AND begun_at < $4)
		+ (SELECT count(*) FROM threads WHERE run_bot_channel = $1 AND run_begun_at > $2 AND run_begun_at < $4)
		+ (SELECT count(*) FROM `+asked+` WHERE threads.bot_channel = $1 AND threads.id <> $3)`,
		runs.BotChannel(r.Workspace, channel), storage.Millis(since), joined, r.future(since))
	return int(n)
}

// future returns a time that is as far after now as since is before it. A row of a later time is
// older: the clock led then. The clocks of nodes differ by far less.
func (r *recordTx) future(since time.Time) int64 { return 2*r.now - storage.Millis(since) }

// Echoes implements Look.
func (r *recordTx) Echoes(content string, since time.Time) int {
	// The condition on seq is for PostgreSQL, which puts noted messages first, and for SQLite's index.
	const recent = `recent AS (SELECT seq, author, trigger, content, run, created_at FROM messages
		WHERE thread = $1 AND seq IS NOT NULL ORDER BY seq DESC LIMIT 100)`
	const posted = `SELECT 1 FROM recent r JOIN deliveries d ON d.run = r.run WHERE r.author = 'agent' AND d.payload = `
	if content == "" || !r.Has(`WITH `+recent+` `+posted+`$2 LIMIT 1`, r.claim.Thread, content) {
		return 0
	}
	var n int64
	r.Row([]any{&n}, `WITH `+recent+` SELECT count(*) FROM recent m WHERE m.author = 'human' AND m.trigger = 'run' AND m.created_at > $2 AND m.created_at < $3
		AND EXISTS (`+posted+`m.content AND r.seq < m.seq)`, r.claim.Thread, storage.Millis(since), r.future(since))
	return int(n)
}

// channel returns the channel of a message. The new state of a message may leave it out.
func (r *recordTx) channel(told string) string {
	if told == "" {
		return r.thread.Channel
	}
	return told
}

// InvocationOnly implements Look.
func (r *recordTx) InvocationOnly() bool { return r.thread.Mode == threads.ModeInvocationOnly }
