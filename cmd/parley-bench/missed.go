package main

import (
	"context"
	"fmt"
	"path"
	"time"
)

// reportMissed prints how late the daemons have recorded the messages that they read from the
// platform: the time from the message to its record, a downtime of the daemons included.
func (t *trial) reportMissed(ctx context.Context) error {
	rows, err := t.nodes.store.QueryContext(ctx, `SELECT external_id, created_at FROM messages WHERE origin = 'late' AND author = 'human'`)
	if err != nil {
		return fmt.Errorf("read the missed messages: %w", err)
	}
	defer rows.Close()
	said := map[string]time.Time{}
	for _, m := range t.ledger.since(0) {
		said[m.ts] = m.revisions[0].sent
	}
	var late []time.Duration
	for rows.Next() {
		var external string
		var recorded int64
		if err := rows.Scan(&external, &recorded); err != nil {
			return fmt.Errorf("read the missed messages: %w", err)
		}
		if at, known := said[path.Base(external)]; known { // Slack's ids begin with the channel
			late = append(late, time.UnixMilli(recorded).Sub(at))
		}
	}
	if len(late) > 0 {
		t.printf("%d missed messages were read after %v\n", len(late), summarize(late))
	}
	return rows.Err()
}
