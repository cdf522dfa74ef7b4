package journal

import "time"

// Ours implements Look.
func (r *recording) Ours(externalID string) (bool, error) {
	var one int64
	return r.tx.Row([]any{&one}, `SELECT 1 FROM deliveries WHERE workspace = ? AND platform_id = ?`, r.Workspace, externalID)
}

// BotRuns implements Look. Where a turn waits for no further messages, each that
// waits is a turn of its own; else a thread's are one, which this one joins.
func (r *recording) BotRuns(channel string, since time.Time) (int, error) {
	channel = r.channel(channel)
	if err := lockChannel(r.tx, r.Workspace, channel); err != nil {
		return 0, err
	}
	asked, joined := `threads`, r.thread.id
	if r.Coalesce == 0 {
		asked, joined = `threads JOIN messages ON messages.thread = threads.id AND `+botWaits, 0
	}
	var n int64
	_, err := r.tx.Row([]any{&n}, `SELECT (SELECT count(*) FROM runs WHERE bot_channel = ?1 AND begun_at > ?2)
		+ (SELECT count(*) FROM `+asked+` WHERE threads.bot_channel = ?1 AND threads.id <> ?3)`,
		botChannel(r.Workspace, channel), millis(since), joined)
	return int(n), err
}

// channel is where a message was said. The new state of one may leave it out.
func (r *recording) channel(told string) string {
	if told == "" {
		return r.thread.channel
	}
	return told
}

// botWaits is the condition that a message is a bot's and waits for a run.
const botWaits = `messages.trigger = 'run' AND messages.run IS NULL AND messages.author = 'bot'`

// botChannel is what the turns that bots ask for in a channel are counted under.
func botChannel(workspace, channel string) string { return workspace + " " + channel }
