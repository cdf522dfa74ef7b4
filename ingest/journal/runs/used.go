package runs

import (
	"time"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// Used is what some runs that have ended have used.
type Used struct {
	About     time.Time // the quarter of an hour in which they ended
	Workspace string
	Channel   string // empty for conversations of our API, which have none
	Agent     string
	Payer     string // empty: nobody is known
	// Questions are the runs without those whose messages the next run has.
	Questions, Answers, Failures int64
	WorkMS                       int64 // the time of their attempts, in milliseconds
	Measured                     int64 // attempts whose tokens are known
	TokensIn, TokensOut          int64
}

// quarter is a time in milliseconds within which no time zone has a midnight, except at its ends.
const quarter = 15 * 60 * 1000

// EndedBetween sums the runs that ended after a time and up to another one, with their attempts. It reads each of them.
func EndedBetween(tx *storage.Txn, after, upTo int64) []Used {
	return storage.Rows(tx, func(u *Used) []any {
		return []any{&u.About, &u.Workspace, &u.Channel, &u.Agent, &u.Payer, &u.Questions, &u.Answers, &u.Failures, &u.WorkMS, &u.Measured, &u.TokensIn, &u.TokensOut}
	}, `SELECT r.ended_at / $3 * $3 AS about, t.workspace, CASE WHEN t.platform = 'web' THEN '' ELSE t.channel END AS place, r.agent, r.payer,
			count(CASE WHEN r.state <> 'interrupted' THEN 1 END), count(CASE WHEN r.state = 'done' THEN 1 END), count(CASE WHEN r.state = 'failed' THEN 1 END),
			CAST(coalesce(sum(a.work), 0) AS BIGINT), CAST(coalesce(sum(a.measured), 0) AS BIGINT), CAST(coalesce(sum(a.tokens_in), 0) AS BIGINT), CAST(coalesce(sum(a.tokens_out), 0) AS BIGINT)
		FROM runs r JOIN threads t ON t.id = r.thread LEFT JOIN (SELECT o.id, sum(CASE WHEN a.begun_at > 0 AND a.ended_at > a.begun_at THEN a.ended_at - a.begun_at ELSE 0 END) AS work,
				count(CASE WHEN a.tokens_in + a.tokens_out > 0 THEN 1 END) AS measured, sum(a.tokens_in) AS tokens_in, sum(a.tokens_out) AS tokens_out
			FROM runs o JOIN run_attempts a ON a.run = o.id WHERE o.ended_at > $1 AND o.ended_at <= $2 GROUP BY o.id) AS a ON a.id = r.id
		WHERE r.ended_at > $1 AND r.ended_at <= $2
		GROUP BY about, t.workspace, place, r.agent, r.payer`, after, upTo, int64(quarter))
}

// EndsAfter returns the end of the last one of some runs that ended next after a time and up to another one; 0 if there is none.
func EndsAfter(tx *storage.Txn, after, upTo int64, most int) (end int64) {
	tx.Row([]any{&end}, `SELECT coalesce(max(ended_at), 0) FROM (SELECT ended_at FROM runs WHERE ended_at > $1 AND ended_at <= $2 ORDER BY ended_at LIMIT CAST($3 AS BIGINT)) AS page`,
		after, upTo, int64(most))
	return end
}

// ForgetPayer takes a person out of the runs of a workspace that ended since a time.
func ForgetPayer(tx *storage.Txn, workspace, payer string, since time.Time) {
	tx.Do(`UPDATE runs SET payer = '' WHERE ended_at >= $3 AND payer = $2 AND EXISTS (SELECT 1 FROM threads t WHERE t.id = runs.thread AND t.workspace = $1)`,
		workspace, payer, storage.Millis(since))
}

// payer returns who pays for a run, by the messages that it has or, if the caller has not read them, by those in the store.
func payer(tx *storage.Txn, run *Run) string {
	if len(run.Messages) == 0 {
		run = &Run{Messages: messages.Causes(tx, run.ID)}
	}
	payer, _ := run.Cause()
	return payer
}
