package slack

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// ends has the times at which Slack's streams of answers ended, by message.
type ends struct {
	mu sync.Mutex
	at map[int]time.Time
}

func newEnds() *ends { return &ends{at: map[int]time.Time{}} }

// note takes a change of a post.
func (e *ends) note(post slacktest.Post) {
	if post.Stream != slacktest.Streamed {
		return
	}
	now := time.Now()
	if id, _, _, ok := ledger.ReadMark(post.Shown()); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if _, ended := e.at[id]; !ended {
			e.at[id] = now
		}
	}
}

// since summarizes the times from the model's last token to the end of the stream, of the messages from an index on.
func (e *ends) since(l *ledger.Ledger, first int) figure.Times {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []time.Duration
	l.Change(func() {
		for _, r := range l.Requests {
			if at, ok := e.at[r.ID]; ok && r.ID >= first {
				all = append(all, at.Sub(r.Ended))
			}
		}
	})
	return figure.Summarize(all)
}

// await waits until the answer to every message has ended.
func (e *ends) await(ctx context.Context, t *trial.Trial, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		e.mu.Lock()
		n := len(e.at)
		e.mu.Unlock()
		if n >= t.Ledger.Count() {
			return nil
		}
		if !wake.After(ctx, 10*time.Millisecond) {
			return fmt.Errorf("%d of %d answers have ended\n%s", n, t.Ledger.Count(), t.Nodes.LogTail())
		}
	}
}
