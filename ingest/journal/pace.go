package journal

import "time"

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
// a post that left late. If the platform has blocked the channel since, the delivery
// takes a new place: otherwise all deliveries with a place would leave at once. The
// channel's row is locked from here on.
func (tx *txn) reservePace(d *Delivery, now, reserved int64, every time.Duration) int64 {
	posts, places := apart(every)
	if reserved == 0 {
		reserved = -1 // before any time until which a channel may be blocked
	}
	var next, blocked, left int64
	tx.row([]any{&next, &blocked, &left}, `
		INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES ($1, $2, $3, 0)
		ON CONFLICT (workspace, channel) DO UPDATE SET next_at = CASE
			WHEN $4 >= paces.blocked_until THEN paces.next_at
			WHEN paces.blocked_until > paces.next_at AND paces.blocked_until > $5 THEN paces.blocked_until + $6
			WHEN paces.next_at > $5 THEN paces.next_at + $6
			ELSE $3 END
		RETURNING next_at, blocked_until, left_at`,
		d.Workspace, d.Post.Channel, now+places, reserved, now, places)
	kept := reserved >= blocked
	if !kept {
		reserved = next - places
	}
	at := max(reserved, left+posts)
	if !kept && at > now {
		tx.do(`UPDATE deliveries SET reserved_at = $2 WHERE id = $1`, d.ID, reserved)
	}
	return at
}

// leave notes that a post of the channel leaves now.
func (tx *txn) leave(workspace, channel string, now int64, every time.Duration) {
	posts, _ := apart(every)
	tx.do(`UPDATE paces SET left_at = $1, next_at = CASE WHEN next_at < $2 THEN $2 ELSE next_at END
		WHERE workspace = $3 AND channel = $4`, now, now+posts, workspace, channel)
}

// blockedUntil returns the time until which the platform has asked a channel to wait.
func (tx *txn) blockedUntil(workspace, channel string) (blocked int64) {
	tx.row([]any{&blocked}, `SELECT blocked_until FROM paces WHERE workspace = $1 AND channel = $2`, workspace, channel)
	return blocked
}

// block makes a whole channel wait at least until a time.
func (tx *txn) block(workspace, channel string, until int64) {
	tx.do(`INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES ($1, $2, $3, $3)
		ON CONFLICT (workspace, channel) DO UPDATE SET
			blocked_until = CASE WHEN paces.blocked_until < $3 THEN $3 ELSE paces.blocked_until END`, workspace, channel, until)
}

// lockPace reads a channel's row and locks it for the rest of the transaction. A
// transaction locks a thread's row before this one, never after it.
func (tx *txn) lockPace(workspace, channel string) (next, blocked, left int64) {
	tx.row([]any{&next, &blocked, &left}, `INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES ($1, $2, 0, 0)
		ON CONFLICT (workspace, channel) DO UPDATE SET next_at = paces.next_at RETURNING next_at, blocked_until, left_at`, workspace, channel)
	return next, blocked, left
}

// spare takes a place in the channel's pace that is free now, for a preview, which yields
// to every post. It returns the time of the next attempt; zero if it has a place.
func (tx *txn) spare(workspace, channel string, now int64, every time.Duration) time.Time {
	if every <= 0 {
		if blocked := tx.blockedUntil(workspace, channel); blocked > now {
			return Instant(blocked)
		}
		return time.Time{}
	}
	posts, _ := apart(every)
	next, blocked, left := tx.lockPace(workspace, channel)
	if at := max(next, blocked, left+posts); at > now {
		return Instant(at)
	}
	tx.leave(workspace, channel, now, every)
	return time.Time{}
}
