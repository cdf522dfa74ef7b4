package trial

import (
	"context"
	"fmt"
	"path"
	"time"

	"parley/cmd/parley-bench/internal/figure"
)

// ReportMissed prints how late the daemons have recorded the messages that they read from the
// platform: the time from the message to its record, a downtime of the daemons included.
func (t *Trial) ReportMissed(ctx context.Context) error {
	rows, err := t.Nodes.Store.QueryContext(ctx, `SELECT external_id, created_at FROM messages WHERE origin = 'late' AND author = 'human'`)
	if err != nil {
		return fmt.Errorf("read the missed messages: %w", err)
	}
	defer rows.Close()
	said := map[string]time.Time{}
	for _, m := range t.Ledger.Since(0) {
		said[m.TS] = m.Revisions[0].Sent
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
		t.Printf("%d missed messages were read after %v\n", len(late), figure.Summarize(late))
	}
	return rows.Err()
}
