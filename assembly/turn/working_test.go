package turn_test

import (
	"context"
	"testing"
	"time"

	"parley/assembly/runinput"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// launcher is a toolbox whose tool launches a workstream.
type launcher struct {
	*toolbox
	d   *fixture
	run string
}

// Call implements turn.Tools.
func (l *launcher) Call(ctx context.Context, run *runs.Run, _ string, call runinput.Call) (string, error) {
	l.run = run.ID
	w := workstreams.Workstream{ID: call.Arguments, Run: run.ID, Agent: "other", Task: "do it", DeadlineAt: time.Now().Add(time.Minute)}
	w, err := l.d.journal.Workstreams.Launch(ctx, w, workstreams.Bounds{Max: 4, Depth: 1})
	if err == nil {
		err = l.says(ctx, w.ID)
	}
	return "", err
}

// says makes a workstream say something.
func (l *launcher) says(ctx context.Context, id string) error {
	m := stream.Message{Type: stream.Update, Text: time.Now().String(), Workstream: id}
	return l.d.journal.Runs.AddEvents(ctx, l.run, runs.Added{Messages: []stream.Message{m}})
}

// TestTheSignCountsWorkstreams checks what people see of a run's workstreams while it goes on.
func TestTheSignCountsWorkstreams(t *testing.T) {
	tools := &launcher{toolbox: &toolbox{}}
	set := func(d *fixture) {
		calling(tools.toolbox, []string{"a", "b"})(d)
		tools.d, d.tools = d, tools
	}
	inBubble(t, set, func(d *fixture) {
		d.agent.does = []script{func(ctx context.Context, _ func(stream.Message) error) error {
			pass(5 * time.Second)
			d.must(d.journal.Workstreams.Report(ctx, "a", workstreams.Progress{Phase: workstreams.ExecutingTool, Tool: "search"}))
			d.must(tools.says(ctx, "a"))
			pass(5 * time.Second)
			d.must(tools.says(ctx, "a"))
			pass(5 * time.Second)
			list, err := d.journal.Workstreams.DueWorkstreams(ctx, []string{"acme"}, 10)
			d.must(err)
			for i := range list {
				_, err := d.journal.Workstreams.Settle(ctx, &list[i], workstreams.Step{State: workstreams.Completed, Phase: workstreams.Done})
				d.must(err)
				d.must(tools.says(ctx, list[i].ID))
				pass(5 * time.Second)
			}
			return nil
		}}
		d.asks("C1/1", "so?")
		pass(time.Minute)
		last := d.notes[max(0, len(d.notes)-4):]
		same(t, "notes", last, []string{"2 workstreams at work: planning", "2 workstreams at work: executing search", "1 workstream at work: planning", "all workstreams have ended"})
	})
}
