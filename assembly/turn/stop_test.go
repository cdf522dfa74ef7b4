package turn_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley/assembly/turn"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/work"
)

// running returns the id of the thread's unfinished run.
func (d *fixture) running() string {
	d.Helper()
	synctest.Wait()
	run, err := d.journal.Runs.UnfinishedRun(d.Context(), d.thread)
	d.must(err)
	return run
}

// TestTheCommandStop cancels the run at once.
func TestTheCommandStop(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{thinks(50*time.Second, "never")}
		d.asks("1", "one")
		pass(time.Second)
		d.asks("2", "/stop")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Canceled})
		same(t, "running", d.running(), "")
		d.asks("3", "three")
		same(t, "turns", d.agent.said(), [][]string{{"one"}, {"three"}})
		same(t, "posts", d.deliveries(), []string{"ok"})
	})
}

// TestTheCommandNew hides what was said before it from later turns, also from an agent that
// remembers the thread by its id.
func TestTheCommandNew(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{answers("yes")}
		d.record(messages.TriggerPassive, human("0", "aside"))
		d.asks("1", "one")
		d.asks("2", "two")
		d.record(messages.TriggerPassive, human("3", "old"))
		d.asks("4", "/new")
		d.record(messages.TriggerPassive, human("5", "fresh"))
		d.asks("6", "three")
		d.asks("7", "four")
		d.outcomes()
		block := "system: [Thread context — prior messages in this thread, newest last]\n- Olivia: "
		same(t, "before", d.assembled(1), block+"aside\nuser: [Olivia]: one\nassistant: yes\nuser: [Olivia]: two\n")
		after := block + "fresh\nuser: [Olivia]: three\n"
		same(t, "after", d.assembled(2), after)
		same(t, "the turn after", d.assembled(3), after+"assistant: ok\nuser: [Olivia]: four\n")
		ids := d.agent.inputs
		if ids[0].ThreadID != ids[1].ThreadID || ids[1].ThreadID == ids[2].ThreadID || ids[2].ThreadID != ids[3].ThreadID {
			t.Errorf("the agent's ids of the thread: %s, %s, %s, %s", ids[0].ThreadID, ids[1].ThreadID, ids[2].ThreadID, ids[3].ThreadID)
		}
	})
}

// TestAQuietConversationBeginsAnew: a message after the quiet time is the first that its turn and later ones see, but not while a run
// works. The quiet time begins again with each message.
func TestAQuietConversationBeginsAnew(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.quiet = 30 * time.Second
		d.agent.does = []script{answers("yes"), answers("again"), thinks(50*time.Second, "at last")}
		d.record(messages.TriggerPassive, human("0", "aside"))
		d.asks("1", "one")
		pass(20 * time.Second)
		d.asks("2", "two")
		pass(40 * time.Second)
		d.asks("3", "three")
		pass(40 * time.Second) // the run works
		d.asks("4", "four")
		pass(time.Minute)
		d.outcomes()
		old := "system: [Thread context — prior messages in this thread, newest last]\n- Olivia: aside\nuser: [Olivia]: one\nassistant: yes\n"
		same(t, "before", d.assembled(1), old+"user: [Olivia]: two\n")
		same(t, "after the quiet time", d.assembled(2), "user: [Olivia]: three\n")
		same(t, "during a run", d.assembled(3), "user: [Olivia]: three\nassistant: at last\nuser: [Olivia]: four\n")
	})
}

// TestAStopCancelsTheRun at once, on the node that works on it and on another one, and the
// next message has a run of its own.
func TestAStopCancelsTheRun(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		inBubble(t, nil, func(d *fixture) {
			stopper := d.Runner
			if elsewhere {
				stopper = turn.New(turn.Parts{Runs: d.journal.Runs, Workstreams: d.journal.Workstreams, Threads: d.journal.Threads, Deliveries: d.journal.Outbox, Work: work.New(d.engine, work.Options{Node: "other", Log: slog.New(slog.DiscardHandler)})})
			}
			d.agent.does = []script{thinks(50*time.Second, "never")}
			d.asks("1", "one")
			d.asks("2", "two")
			pass(time.Second)
			run, begun := d.running(), time.Now()
			d.must(stopper.Stop(d.Context(), run, outbox.NewNotice("slack", "Stopped.")))
			same(t, "outcomes", d.outcomes()[:1], []turn.Outcome{turn.Canceled})
			if err := stopper.Stop(d.Context(), run, outbox.Notice{}); !errors.Is(err, runs.ErrEnded) {
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

// TestTheEndOfAWaitingRunIsObserved: no attempt sees the end of a run between two attempts.
func TestTheEndOfAWaitingRunIsObserved(t *testing.T) {
	for name, test := range map[string]struct {
		mode string
		want turn.Outcome
		ends func(d *fixture, run string)
	}{
		"a stop":                       {turn.ModeQueue, turn.Canceled, func(d *fixture, run string) { d.must(d.Stop(d.Context(), run, outbox.NewNotice("slack", "Stopped."))) }},
		"a command":                    {turn.ModeQueue, turn.Canceled, func(d *fixture, _ string) { d.asks("2", "/stop") }},
		"a message that interrupts it": {turn.ModeInterrupt, turn.Interrupted, func(d *fixture, _ string) { d.asks("2", "two") }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(d *fixture) { d.settings.Mode = test.mode }, func(d *fixture) {
				d.agent.does = []script{fails(errors.New("503 busy")), fails(errors.New("503 busy"))}
				d.asks("1", "one")
				pass(2 * time.Second)
				run := d.running()
				same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Retried, turn.Retried})
				test.ends(d, run)
				same(t, "ended", d.waitedRuns(), []string{run + " " + string(test.want)})
			})
		})
	}
}

// TestAHintOfAnotherNodeCancelsNoRun that is unfinished, or may be because the store cannot tell.
func TestAHintOfAnotherNodeCancelsNoRun(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		other := work.New(d.engine, work.Options{Node: "other", Log: slog.New(slog.DiscardHandler)})
		d.agent.does = []script{thinks(10*time.Second, "done")}
		d.asks("1", "one")
		pass(time.Second)
		for _, blind := range []bool{false, true} {
			d.engine.blind.Store(blind)
			other.Tell("node1", work.Turns, "helper", d.thread)
			synctest.Wait()
		}
		d.engine.blind.Store(false)
		pass(20 * time.Second)
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		other.Tell("node1", work.Turns, "helper", d.thread) // it has no run now
		synctest.Wait()
	})
}
