package listing

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/ingest/journal/storage"
)

// Hour has the figures of the last hour. Messages, Answers and Failures count at most CountLimit rows each.
type Hour struct {
	Messages int64 // of people and bots, without imported ones
	Answers  int64 // runs that have answered
	Failures int64 // runs that have failed
	// Median is the middle of the times from the begin of a run to its answer; 0 without answers.
	Median time.Duration
	// ByMinute are the messages of each minute, the earliest first.
	ByMinute [60]int64
}

// LastHour returns the figures of the last hour. It finds the messages by their ids, which begin with the time at which each was made.
func (l *Listing) LastHour(ctx context.Context) (Hour, error) {
	now := l.db.Now()
	begin := now.Add(-time.Hour)
	return storage.Read(ctx, l.db, func(tx *storage.Txn) (h Hour) {
		type minute struct{ ago, n int64 }
		for _, m := range storage.Rows(tx, func(m *minute) []any { return []any{&m.ago, &m.n} },
			`SELECT ($3 - created_at) / 60000 AS ago, count(*) FROM (SELECT created_at FROM messages WHERE id >= $1 AND id < $2 AND author IN ('human', 'bot') AND origin <> 'import'`+limited+
				` WHERE created_at > $3 - 3600000 AND created_at <= $3 GROUP BY 1`, idAt(begin), idAt(now.Add(time.Minute)), storage.Millis(now)) {
			h.ByMinute[len(h.ByMinute)-1-int(m.ago)] = m.n
			h.Messages += m.n
		}
		type ended struct {
			state string
			took  int64
		}
		var times []int64
		for _, r := range storage.Rows(tx, func(r *ended) []any { return []any{&r.state, &r.took} },
			`SELECT state, ended_at - begun_at FROM (SELECT state, ended_at, begun_at FROM runs WHERE ended_at > $1`+limited, storage.Millis(begin)) {
			switch r.state {
			case "done":
				times = append(times, r.took)
			case "failed":
				h.Failures++
			}
		}
		if h.Answers = int64(len(times)); len(times) > 0 {
			slices.Sort(times)
			h.Median = time.Duration(times[len(times)/2]) * time.Millisecond
		}
		return h
	})
}

// idAt returns the least id of a message that was made at a time or later; see RFC 9562, version 7.
func idAt(at time.Time) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}
