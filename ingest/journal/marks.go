package journal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
)

// A workspace's mark is its row of cursors without a channel, in microseconds since
// 1970. A channel's row is its gap: "<from>/<until>", as many.

// Mark is up to when a workspace has everything that was said, or a gap for it;
// zero where nobody has set one.
func (j *Journal) Mark(ctx context.Context, workspace string) (mark time.Time, err error) {
	var stored string
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&stored}, `SELECT position FROM cursors WHERE workspace = ? AND channel = ''`, workspace)
		return err
	})
	if err != nil || stored == "" {
		return mark, err
	}
	micro, err := strconv.ParseInt(stored, 10, 64)
	if err != nil {
		return mark, fmt.Errorf("the mark of %s: %w", workspace, err)
	}
	return time.UnixMicro(micro).UTC(), nil
}

// SetMark moves a workspace's mark on, never back, once the gaps before it are
// stored. A place that has a gap already keeps its beginning.
func (j *Journal) SetMark(ctx context.Context, workspace string, mark time.Time, gaps []event.Gap) error {
	for batch := range slices.Chunk(gaps, threadBatch) {
		if err := j.engine.Write(ctx, func(tx Tx) error {
			for _, gap := range batch {
				if err := widen(tx, workspace, gap); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return j.engine.Write(ctx, func(tx Tx) error {
		return tx.Later(nil, nil, `INSERT INTO cursors (workspace, channel, position) VALUES (?, '', ?)
			ON CONFLICT (workspace, channel) DO UPDATE SET position = excluded.position
			WHERE CAST(cursors.position AS BIGINT) < CAST(excluded.position AS BIGINT)`,
			workspace, strconv.FormatInt(mark.UnixMicro(), 10))
	})
}

// widen stores a gap, or widens the one that its place has.
func widen(tx Tx, workspace string, gap event.Gap) error {
	if _, err := tx.Exec(`INSERT INTO cursors (workspace, channel, position) VALUES (?, ?, ?)
		ON CONFLICT (workspace, channel) DO NOTHING`, workspace, gap.Place, writeGap(gap)); err != nil {
		return err
	}
	known, found, err := lockGap(tx, workspace, gap.Place)
	if err != nil || !found {
		return err
	}
	known.From = slices.MinFunc([]time.Time{known.From, gap.From}, time.Time.Compare)
	known.Until = slices.MaxFunc([]time.Time{known.Until, gap.Until}, time.Time.Compare)
	return saveGap(tx, workspace, known)
}

// Gaps are a workspace's, those first that are open the longest.
func (j *Journal) Gaps(ctx context.Context, workspace string) (gaps []event.Gap, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		gaps = nil
		return tx.Rows(func(scan func(...any) error) error {
			var place, position string
			if err := scan(&place, &position); err != nil {
				return err
			}
			gap, err := readGap(place, position)
			gaps = append(gaps, gap)
			return err
		}, `SELECT channel, position FROM cursors WHERE workspace = ? AND channel <> ''`, workspace)
	})
	slices.SortFunc(gaps, func(a, b event.Gap) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Place, b.Place)) })
	return gaps, err
}

// Shrink lets the gap of a place begin at a later time; where nothing is left of
// it, it is gone. What it was widened by meanwhile stays.
func (j *Journal) Shrink(ctx context.Context, workspace, place string, to time.Time) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		gap, found, err := lockGap(tx, workspace, place)
		if err != nil || !found {
			return err
		}
		if !gap.Until.After(to) {
			return tx.Later(nil, nil, `DELETE FROM cursors WHERE workspace = ? AND channel = ?`, workspace, place)
		}
		gap.From = slices.MaxFunc([]time.Time{gap.From, to}, time.Time.Compare)
		return saveGap(tx, workspace, gap)
	})
}

// lockGap reads a place's gap, and keeps it as it is for the rest of the transaction.
func lockGap(tx Tx, workspace, place string) (gap event.Gap, found bool, err error) {
	var position string
	found, err = tx.Row([]any{&position}, `SELECT position FROM cursors WHERE workspace = ? AND channel = ? FOR UPDATE`, workspace, place)
	if err != nil || !found {
		return gap, false, err
	}
	gap, err = readGap(place, position)
	return gap, true, err
}

func saveGap(tx Tx, workspace string, gap event.Gap) error {
	return tx.Later(nil, nil, `UPDATE cursors SET position = ? WHERE workspace = ? AND channel = ?`, writeGap(gap), workspace, gap.Place)
}

func writeGap(gap event.Gap) string {
	return fmt.Sprintf("%d/%d", gap.From.UnixMicro(), gap.Until.UnixMicro())
}

func readGap(place, position string) (event.Gap, error) {
	first, second, _ := strings.Cut(position, "/")
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return event.Gap{}, fmt.Errorf("the gap of %s: %w", place, err)
	}
	until, err := strconv.ParseInt(second, 10, 64)
	if err != nil {
		return event.Gap{}, fmt.Errorf("the gap of %s: %w", place, err)
	}
	return event.Gap{Place: place, From: time.UnixMicro(from).UTC(), Until: time.UnixMicro(until).UTC()}, nil
}

// recentRows bounds the messages among which recent threads are looked for.
const recentRows = 5000

// RecentThreads are the threads of a workspace in which something was said lately,
// the latest first; those in which nobody has answered yet come last, since in a
// room each message is one. It looks at the newest messages of the store alone.
func (j *Journal) RecentThreads(ctx context.Context, workspace string, since time.Time, limit int) (threads []event.ThreadKey, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		threads = nil
		return tx.Rows(func(scan func(...any) error) error {
			var key string
			err := scan(&key)
			threads = append(threads, event.ThreadKey(key))
			return err
		}, `SELECT t.key FROM (SELECT m.thread, max(m.id) AS newest FROM
				(SELECT id, thread, workspace, created_at FROM messages ORDER BY id DESC LIMIT CAST(? AS BIGINT)) AS m
				WHERE m.workspace = ? AND m.created_at >= ? GROUP BY m.thread) AS said
			JOIN threads t ON t.id = said.thread ORDER BY CASE WHEN t.next_seq > 2 THEN 0 ELSE 1 END, said.newest DESC LIMIT CAST(? AS BIGINT)`,
			int64(recentRows), workspace, millis(since), int64(limit))
	})
	return threads, err
}
