package threads

import (
	"context"
	"slices"
	"strconv"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Gaps returns a workspace's watermark and its gaps, earliest begin first. Every message
// up to the watermark is recorded or in a gap. The watermark is zero in a workspace that
// was never connected. Times that are later than now by more than clockError are pulled back: the
// clock led when they were stored.
func (s *Threads) Gaps(ctx context.Context, workspace string, now time.Time) (watermark time.Time, gaps []event.Gap, err error) {
	watermark, gaps, err = s.gaps(ctx, workspace)
	limit := now.Add(clockError)
	led := watermark.After(limit) || slices.ContainsFunc(gaps, func(g event.Gap) bool { return g.Until.After(limit) })
	if err != nil || !led {
		return watermark, gaps, err
	}
	if err := s.pullBack(ctx, workspace, now); err != nil {
		return watermark, gaps, err
	}
	return s.gaps(ctx, workspace)
}

const (
	// clockError is more than the difference of the clocks of two nodes.
	clockError = time.Second
	// lastArrivals is the number of stored messages that are searched for the last known arrival: the
	// newest one by the platform's time. nothingKnown is how long ago that is if no message is stored.
	lastArrivals = 100
	nothingKnown = 24 * time.Hour
)

// pullBack replaces the times of a workspace that are later than now: by the time of the last known
// arrival, by the platform's clock, and at the end of gaps by now.
func (s *Threads) pullBack(ctx context.Context, workspace string, now time.Time) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		known := storage.Millis(now.Add(-nothingKnown))
		tx.Row([]any{&known}, `SELECT max(sent_at) FROM (SELECT sent_at FROM messages WHERE workspace = $1 AND author IN ('human', 'bot') AND sent_at <= $2
			ORDER BY row DESC LIMIT `+strconv.Itoa(lastArrivals)+`) AS newest HAVING count(*) > 0`, workspace, storage.Millis(now))
		from, until, limit := known*1000, now.UnixMicro(), now.Add(clockError).UnixMicro()
		tx.Do(`UPDATE gaps SET from_at = CASE WHEN from_at > $2 THEN $3 ELSE from_at END, until_at = $4 WHERE workspace = $1 AND until_at > $2`,
			workspace, limit, from, until)
		tx.Do(`UPDATE watermarks SET at = $3 WHERE workspace = $1 AND at > $2`, workspace, limit, from)
	})
}

func (s *Threads) gaps(ctx context.Context, workspace string) (watermark time.Time, gaps []event.Gap, err error) {
	gaps, err = storage.Read(ctx, s.db, func(tx *storage.Txn) (gaps []event.Gap) {
		var at int64
		watermark = time.Time{}
		if tx.Row([]any{&at}, `SELECT at FROM watermarks WHERE workspace = $1`, workspace) {
			watermark = time.UnixMicro(at).UTC()
		}
		type row struct {
			channel     string
			from, until int64
		}
		for _, r := range storage.Rows(tx, func(r *row) []any { return []any{&r.channel, &r.from, &r.until} },
			`SELECT channel, from_at, until_at FROM gaps WHERE workspace = $1 ORDER BY from_at, channel`, workspace) {
			gaps = append(gaps, event.Gap{Channel: r.channel, From: time.UnixMicro(r.from).UTC(), Until: time.UnixMicro(r.until).UTC()})
		}
		return gaps
	})
	return watermark, gaps, err
}

// OpenGaps stores gaps and then moves the watermark on, in one transaction. A channel
// has one gap, which is widened. The watermark never moves back; zero leaves it.
func (s *Threads) OpenGaps(ctx context.Context, workspace string, gaps []event.Gap, watermark time.Time) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		for _, gap := range gaps {
			tx.Do(`INSERT INTO gaps (workspace, channel, from_at, until_at) VALUES ($1, $2, $3, $4)
				ON CONFLICT (workspace, channel) DO UPDATE SET
					from_at  = CASE WHEN gaps.from_at < excluded.from_at THEN gaps.from_at ELSE excluded.from_at END,
					until_at = CASE WHEN gaps.until_at > excluded.until_at THEN gaps.until_at ELSE excluded.until_at END`,
				workspace, gap.Channel, gap.From.UnixMicro(), gap.Until.UnixMicro())
		}
		if !watermark.IsZero() {
			tx.Do(`INSERT INTO watermarks (workspace, at) VALUES ($1, $2)
				ON CONFLICT (workspace) DO UPDATE SET at = excluded.at WHERE watermarks.at < excluded.at`, workspace, watermark.UnixMicro())
		}
	})
}

// CloseGap removes the range that was read from a channel's gap. If the gap was widened
// meanwhile, the later part remains, with as much of the range before it as the
// platform's clock may be behind ours. If the gap begins earlier now, all of it remains.
func (s *Threads) CloseGap(ctx context.Context, workspace string, read event.Gap, lag time.Duration) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		const same = ` WHERE workspace = $1 AND channel = $2 AND from_at >= $3`
		from, until := read.From.UnixMicro(), read.Until.UnixMicro()
		tx.Do(`DELETE FROM gaps`+same+` AND until_at <= $4`, workspace, read.Channel, from, until)
		tx.Do(`UPDATE gaps SET from_at = CAST($4 AS BIGINT)`+same+` AND from_at < $4`, workspace, read.Channel, from, until-lag.Microseconds())
	})
}

// recentlyActive is the number of a workspace's threads, the newest by message, that RecentThreads considers.
const recentlyActive = 100_000

// RecentThreads returns the threads of a channel whose newest message was recorded since
// a time, by newest message. Threads with one message come last: in a room, each message
// outside a thread is one.
func (s *Threads) RecentThreads(ctx context.Context, workspace, channel string, since time.Time, limit int) ([]event.ThreadKey, error) {
	return storage.List(ctx, s.db, func(key *event.ThreadKey) []any { return []any{(*string)(key)} }, `
		SELECT key FROM (SELECT key, channel, next_seq, last_at FROM threads WHERE workspace = $1 AND last_at > 0 AND last_at >= $4
			ORDER BY last_at DESC, id DESC LIMIT CAST($3 AS BIGINT)) AS recent
		WHERE channel = $2 ORDER BY CASE WHEN next_seq > 2 THEN 0 ELSE 1 END, last_at DESC LIMIT CAST($5 AS BIGINT)`,
		workspace, channel, int64(recentlyActive), storage.Millis(since), int64(limit))
}
