package outbox

import (
	"cmp"
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// catchUp is the part by which places are further apart than posts must be, so that the
// posts after a late one catch up with their places.
const catchUp = 50

// apart returns, in whole milliseconds, the least time between two posts, and the time
// between their places.
func apart(every time.Duration) (posts, places int64) {
	posts = (every + time.Millisecond - 1).Milliseconds()
	return posts, posts + max(1, posts/catchUp)
}

// reservePace keeps the delivery's place in its channel's pace, or takes the next one. It
// returns the time at which the delivery may leave: at its place, and not too soon after
// a post that left late. If the platform has blocked the channel or the workspace since,
// the delivery takes a new place: otherwise all deliveries with a place would leave at
// once. The channel's row is locked from here on.
func reservePace(tx *storage.Txn, d *Delivery, now, reserved int64, every time.Duration) int64 {
	posts, places := apart(every)
	reserved = cmp.Or(reserved, -1) // before any time of a block
	var next, blocked, left int64
	tx.Row([]any{&next, &blocked, &left}, `
		INSERT INTO paces (workspace, channel, next_at, blocked_until)
		SELECT $1, $2, CASE WHEN until > $4 THEN until ELSE $4 END + $5, until
		FROM (SELECT coalesce(max(blocked_until), 0) AS until FROM paces WHERE workspace = $1 AND channel = '') AS w WHERE true
		ON CONFLICT (workspace, channel) DO UPDATE SET
			blocked_until = CASE WHEN excluded.blocked_until > paces.blocked_until THEN excluded.blocked_until ELSE paces.blocked_until END,
			next_at = CASE
				WHEN $3 >= paces.blocked_until AND $3 >= excluded.blocked_until THEN paces.next_at
				WHEN paces.blocked_until > paces.next_at AND paces.blocked_until + $5 > excluded.next_at THEN paces.blocked_until + $5
				WHEN paces.next_at + $5 > excluded.next_at THEN paces.next_at + $5
				ELSE excluded.next_at END
		RETURNING next_at, blocked_until, left_at`,
		d.Workspace, d.Post.Channel, reserved, now, places)
	kept := reserved >= blocked
	if !kept {
		reserved = next - places
	}
	at := max(reserved, left+posts)
	if !kept && at > now {
		tx.Do(`UPDATE deliveries SET reserved_at = $2 WHERE id = $1`, d.ID, reserved)
	}
	return at
}

// leave notes that a post of the channel leaves now.
func leave(tx *storage.Txn, workspace, channel string, now int64, every time.Duration) {
	posts, _ := apart(every)
	tx.Do(`UPDATE paces SET left_at = $1, next_at = CASE WHEN next_at < $2 THEN $2 ELSE next_at END
		WHERE workspace = $3 AND channel = $4`, now, now+posts, workspace, channel)
}

// blockedUntil returns the time until which the platform has asked a channel or its whole
// workspace to wait.
func blockedUntil(tx *storage.Txn, workspace, channel string) (blocked int64) {
	tx.Row([]any{&blocked}, `SELECT max(blocked_until) FROM paces WHERE workspace = $1 AND channel IN ($2, '')`, workspace, channel)
	return blocked
}

// HoldUp makes a channel wait at least until a time, at the platform's request. If the
// channel is empty, the whole workspace waits.
func (o *Outbox) HoldUp(ctx context.Context, workspace, channel string, until time.Time) error {
	return o.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES ($1, $2, $3, $3)
			ON CONFLICT (workspace, channel) DO UPDATE SET
				blocked_until = CASE WHEN paces.blocked_until < $3 THEN $3 ELSE paces.blocked_until END`, workspace, channel, storage.Millis(until))
	})
}

// LockPace reads a channel's row and locks it for the rest of the transaction. A
// transaction locks a thread's row before this one, never after it.
func LockPace(tx *storage.Txn, workspace, channel string) (next, left int64) {
	tx.Row([]any{&next, &left}, `INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES ($1, $2, 0, 0)
		ON CONFLICT (workspace, channel) DO UPDATE SET next_at = paces.next_at RETURNING next_at, left_at`, workspace, channel)
	return next, left
}

// Spare takes a place in the channel's pace that is free now, for a preview, which yields
// to every post. It returns the time of the next attempt; zero if it has a place.
func Spare(tx *storage.Txn, workspace, channel string, now int64, every time.Duration) time.Time {
	var next, left int64
	if every > 0 {
		next, left = LockPace(tx, workspace, channel)
	}
	posts, _ := apart(every)
	switch at := max(next, left+posts, blockedUntil(tx, workspace, channel)); {
	case at > now:
		return storage.Instant(at)
	case every > 0:
		leave(tx, workspace, channel, now, every)
	}
	return time.Time{}
}

// CorrectDue makes deliveries and paces due now that are due later than a time, because the clock led. The result of a call may be later, up to
// lateCall, and the end of a rate limit up to lateLimit.
func CorrectDue(tx *storage.Txn, now, late, lateCall, lateLimit int64) {
	tx.Do(`UPDATE deliveries SET due_at = $1, reserved_at = 0 WHERE state IN ('pending', 'sending') AND due_at > $2`, now, late)
	tx.Do(`UPDATE deliveries SET send_by = $1 WHERE state = 'sending' AND send_by > $2`, now, lateCall)
	tx.Do(`UPDATE paces SET next_at = $1, left_at = $1 WHERE next_at > $2`, now, late)
	tx.Do(`UPDATE paces SET blocked_until = $1 WHERE blocked_until > $2`, now, lateLimit)
}
