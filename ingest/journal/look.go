package journal

import "time"

// isPost reports whether an external id is the id of one of our posts.
func (tx *txn) isPost(workspace, externalID string) bool {
	return tx.has(`SELECT 1 FROM deliveries WHERE workspace = $1 AND platform_id = $2`, workspace, externalID)
}

// Ours implements Look.
func (r *recordTx) Ours(externalID string) bool { return r.isPost(r.Workspace, externalID) }

// Answered implements Look. It reads the turns of the thread, not its messages.
func (r *recordTx) Answered() bool {
	return r.has(`SELECT 1 FROM messages turn JOIN messages reply ON reply.run = turn.run AND reply.author = 'agent'
		WHERE turn.thread = $1 AND turn.context_after IS NOT NULL LIMIT 1`, r.claim.Thread)
}

// BotRuns implements Look. Without coalescing, each waiting message is a turn of its own.
// Otherwise a thread's waiting messages are one turn, which this message joins.
func (r *recordTx) BotRuns(channel string, since time.Time) int {
	channel = r.channel(channel)
	r.lockPace(r.Workspace, channel)
	turn, joined := `thread`, r.claim.Thread
	if r.Coalesce == 0 {
		turn, joined = `row`, 0
	}
	const asked = ` FROM messages WHERE workspace = $1 AND bot_channel = $2 AND `
	var n int64
	r.row([]any{&n}, `SELECT (SELECT count(DISTINCT run)`+asked+`created_at > $3 AND run IS NOT NULL)
		+ (SELECT count(DISTINCT `+turn+`)`+asked+`trigger = 'run' AND run IS NULL AND thread <> $4)`, r.Workspace, channel, millis(since), joined)
	return int(n)
}

// Echoes implements Look.
func (r *recordTx) Echoes(content string, since time.Time) int {
	// The condition on seq is for PostgreSQL, which puts noted messages first, and for SQLite's index.
	const recent = `recent AS (SELECT seq, author, trigger, content, run, created_at FROM messages
		WHERE thread = $1 AND seq IS NOT NULL ORDER BY seq DESC LIMIT 100)`
	const posted = `SELECT 1 FROM recent r JOIN deliveries d ON d.run = r.run WHERE r.author = 'agent' AND d.payload = `
	if content == "" || !r.has(`WITH `+recent+` `+posted+`$2 LIMIT 1`, r.claim.Thread, content) {
		return 0
	}
	var n int64
	r.row([]any{&n}, `WITH `+recent+` SELECT count(*) FROM recent m WHERE m.author = 'human' AND m.trigger = 'run' AND m.created_at > $2
		AND EXISTS (`+posted+`m.content AND r.seq < m.seq)`, r.claim.Thread, millis(since))
	return int(n)
}

// channel returns the channel of a message. The new state of a message may leave it out.
func (r *recordTx) channel(told string) string {
	if told == "" {
		return r.thread.channel
	}
	return told
}

// askedByBot returns the channel in which a bot's message asks for a run; null for any other
// message.
func (r *recordTx) askedByBot(m *Message) any {
	if m.Author != ByBot || m.Trigger != TriggerRun {
		return nil
	}
	return r.channel(r.Event.Message.Channel.ID)
}
