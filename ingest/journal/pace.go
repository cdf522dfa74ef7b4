package journal

import "time"

// catchUp is the part by which places are further apart than posts must be. So
// what has fallen behind the places, since somebody came late to his, catches
// up, and nobody waits for ever behind those who come on time.
const catchUp = 50

// apart returns, in whole milliseconds, how far posts must be apart at the
// least, and how far their places are.
func apart(every time.Duration) (posts, places int64) {
	posts = (every + time.Millisecond - 1).Milliseconds()
	return posts, posts + max(1, posts/catchUp)
}

// reservePace keeps the place that the delivery has in its channel's pace, or
// takes the next one, and returns when it may leave: in its place, and not too
// soon after a post that left late. A place that the platform has blocked since
// is given up: those who had one would all leave at once. The channel's row is
// locked from here on.
func reservePace(tx Tx, d *Delivery, now, reserved int64, every time.Duration) (int64, error) {
	posts, places := apart(every)
	if reserved == 0 {
		reserved = -1 // before any time that a channel may be blocked until
	}
	var next, blocked, left int64
	if _, err := tx.Row([]any{&next, &blocked, &left}, `
		INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES (?1, ?2, ?3, 0)
		ON CONFLICT (workspace, channel) DO UPDATE SET next_at = CASE
			WHEN ?4 >= paces.blocked_until THEN paces.next_at
			WHEN paces.blocked_until > paces.next_at AND paces.blocked_until > ?5 THEN paces.blocked_until + ?6
			WHEN paces.next_at > ?5 THEN paces.next_at + ?6
			ELSE ?3 END
		RETURNING next_at, blocked_until, left_at`,
		d.Workspace, d.Post.Channel, now+places, reserved, now, places); err != nil {
		return 0, err
	}
	kept := reserved >= blocked
	if !kept {
		reserved = next - places
	}
	at := max(reserved, left+posts)
	if kept || at <= now {
		return at, nil
	}
	return at, tx.Later(nil, nil, `UPDATE deliveries SET reserved_at = ? WHERE id = ?`, reserved, d.ID)
}

// leave notes that a post of the channel leaves now.
func leave(tx Tx, d *Delivery, now int64, every time.Duration) error {
	posts, _ := apart(every)
	return tx.Later(nil, nil, `UPDATE paces SET left_at = ?1, next_at = CASE WHEN next_at < ?2 THEN ?2 ELSE next_at END
		WHERE workspace = ?3 AND channel = ?4`, now, now+posts, d.Workspace, d.Post.Channel)
}

// blockedUntil is until when the platform has asked a channel to wait.
func blockedUntil(tx Tx, d *Delivery) (blocked int64, err error) {
	_, err = tx.Row([]any{&blocked}, `SELECT blocked_until FROM paces WHERE workspace = ? AND channel = ?`, d.Workspace, d.Post.Channel)
	return blocked, err
}

// block makes a whole channel wait until a time, at the least.
func block(tx Tx, d *Delivery, until int64) error {
	return tx.Later(nil, nil, `INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES (?1, ?2, ?3, ?3)
		ON CONFLICT (workspace, channel) DO UPDATE SET
			blocked_until = CASE WHEN paces.blocked_until < ?3 THEN ?3 ELSE paces.blocked_until END`,
		d.Workspace, d.Post.Channel, until)
}

// lockChannel keeps others from counting in a channel until the transaction
// ends. Who has a thread's row locked may take it, never the other way round.
func lockChannel(tx Tx, workspace, channel string) error {
	return tx.Later(nil, nil, `INSERT INTO paces (workspace, channel, next_at, blocked_until) VALUES (?, ?, 0, 0)
		ON CONFLICT (workspace, channel) DO UPDATE SET next_at = paces.next_at`, workspace, channel)
}

// spare takes a place in the channel's pace that is free now, for what gives way to
// every post. It returns when to come again; zero where it has one.
func spare(tx Tx, workspace, channel string, now int64, every time.Duration) (time.Time, error) {
	if every > 0 {
		if err := lockChannel(tx, workspace, channel); err != nil {
			return time.Time{}, err
		}
	}
	var next, blocked, left int64
	if _, err := tx.Row([]any{&next, &blocked, &left}, `SELECT next_at, blocked_until, left_at FROM paces WHERE workspace = ? AND channel = ?`,
		workspace, channel); err != nil {
		return time.Time{}, err
	}
	posts, _ := apart(every)
	if every <= 0 {
		next, left = 0, 0
	}
	if at := max(next, blocked, left+posts); at > now {
		return instant(at), nil
	}
	if every <= 0 {
		return time.Time{}, nil
	}
	return time.Time{}, leave(tx, &Delivery{Workspace: workspace, Post: Post{Channel: channel}}, now, every)
}
