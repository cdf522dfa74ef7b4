package trial

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
)

// ReportMissed prints how late the daemons have recorded the messages that they read from the
// platform: the time from the message to its record, a downtime of the daemons included. begins are the
// times at which sessions began, oldest first: of the messages that were said before one of them, it also
// prints the time from there to the answer.
func (t *Trial) ReportMissed(ctx context.Context, begins ...time.Time) error {
	rows, err := t.Nodes.Store.QueryContext(ctx, `SELECT external_id, created_at FROM messages WHERE origin = 'late' AND author = 'human'`)
	if err != nil {
		return fmt.Errorf("read the missed messages: %w", err)
	}
	defer rows.Close()
	said := map[string]*ledger.Message{}
	for _, m := range t.Ledger.Since(0) {
		said[m.TS] = m
	}
	answered := map[int]time.Time{}
	for _, p := range t.Posts() {
		if id, _, _, ok := ledger.ReadMark(p.Text); ok && answered[id].IsZero() {
			answered[id] = p.At
		}
	}
	var late, again []time.Duration
	for rows.Next() {
		var external string
		var recorded int64
		if err := rows.Scan(&external, &recorded); err != nil {
			return fmt.Errorf("read the missed messages: %w", err)
		}
		m := said[path.Base(external)] // Slack's ids begin with the channel
		if m == nil {
			continue
		}
		at := m.Revisions[0].Sent
		late = append(late, time.UnixMilli(recorded).Sub(at))
		next := slices.IndexFunc(begins, func(begun time.Time) bool { return begun.After(at) })
		if answer := answered[m.ID]; next >= 0 && !answer.IsZero() {
			again = append(again, answer.Sub(begins[next]))
		}
	}
	if len(late) > 0 {
		t.Printf("%d missed messages were read after %v\n", len(late), figure.Summarize(late))
	}
	if len(again) > 0 {
		t.Printf("%d of them were answered after the begin of the next session by %v\n", len(again), figure.Summarize(again))
	}
	return rows.Err()
}
