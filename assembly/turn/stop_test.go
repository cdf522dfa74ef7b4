package turn_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly/turn"
	"parley/ingest/journal"
	"parley/ingest/work"
)

// running returns the id of the thread's unfinished run.
func (d *fixture) running() string {
	d.Helper()
	synctest.Wait()
	run, err := d.journal.UnfinishedRun(d.Context(), d.thread)
	d.must(err)
	return run
}

// TestAStopCancelsTheRun at once, on the node that works on it and on another one, and the
// next message has a run of its own.
func TestAStopCancelsTheRun(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		inBubble(t, nil, func(d *fixture) {
			stopper := d.Runner
			if elsewhere {
				stopper = turn.New(turn.Parts{Journal: d.journal, Work: work.New(d.engine, work.Options{Node: "other", Log: slog.New(slog.DiscardHandler)})})
			}
			d.agent.does = []script{thinks(50*time.Second, "never")}
			d.asks("1", "one")
			d.asks("2", "two")
			pass(time.Second)
			run, begun := d.running(), time.Now()
			d.must(stopper.Stop(d.Context(), run, journal.NewNotice("slack", "Stopped.")))
			same(t, "outcomes", d.outcomes()[:1], []turn.Outcome{turn.Canceled})
			if err := stopper.Stop(d.Context(), run, journal.Notice{}); !errors.Is(err, journal.ErrEnded) {
				t.Errorf("the second stop: %v", err)
			}
			pass(2 * time.Second)
			same(t, "turns", d.agent.said(), [][]string{{"one"}, {"two"}})
			same(t, "posts", d.deliveries(), []string{"ok"})
			if took := d.agent.times[1].Sub(begun); took > time.Second {
				t.Errorf("the next turn began after %v", took)
			}
		})
	}
}
