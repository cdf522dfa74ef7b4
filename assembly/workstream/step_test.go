package workstream

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal/workstreams"
)

var launched = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// child returns a workstream of 100 seconds whose thread works.
func child(change func(*workstreams.Due)) *workstreams.Due {
	d := &workstreams.Due{Workstream: workstreams.Workstream{
		ID: "w1", Asker: "lead", Agent: "coder", Task: "do it", State: workstreams.Running, Progress: workstreams.Progress{Phase: workstreams.Planning},
		LaunchedAt: launched, DeadlineAt: launched.Add(100 * time.Second), Said: saidTask,
	}, Going: "run-1"}
	if change != nil {
		change(d)
	}
	return d
}

// done makes the child's run end with an answer.
func done(d *workstreams.Due) {
	d.Going, d.Last, d.Replies = "", workstreams.Last{Run: "run-1", State: "done"}, []workstreams.Reply{{Run: "run-1", Text: "42", Seq: 2}}
}

// TestSteps checks who is told what at each point of a workstream's life.
func TestSteps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workstreams.Due)
		after  time.Duration
		puts   []string // recipient, name, and + if it asks for a run
		state  workstreams.State
		due    time.Duration // of the next step; 0 for none
	}{
		"the launch": {func(d *workstreams.Due) { d.Said = 0 }, 0, []string{"child task +"}, workstreams.Running, 75 * time.Second},
		"the launch, again": {func(d *workstreams.Due) {
			done(d)
			d.Said = 0
		}, time.Second, []string{"child task +", "parent parent/end +"}, workstreams.Completed, 0},
		"nothing yet":       {nil, 74 * time.Second, nil, workstreams.Running, 75 * time.Second},
		"75 percent":        {nil, 75 * time.Second, []string{"parent parent/75"}, workstreams.Running, 80 * time.Second},
		"80 percent":        {func(d *workstreams.Due) { d.Said |= saidEarly }, 80 * time.Second, []string{"child wrap-up"}, workstreams.Running, 90 * time.Second},
		"90 percent":        {func(d *workstreams.Due) { d.Said |= saidEarly | saidWrapUp }, 90 * time.Second, []string{"parent parent/90"}, workstreams.Running, 100 * time.Second},
		"a node was away":   {nil, 95 * time.Second, []string{"parent parent/75", "child wrap-up", "parent parent/90"}, workstreams.Running, 100 * time.Second},
		"the deadline":      {nil, 100 * time.Second, []string{"child stop", "parent parent/end +"}, workstreams.Timeout, 0},
		"an answer":         {done, 10 * time.Second, []string{"parent parent/end +"}, workstreams.Completed, 0},
		"an answer in time": {done, 101 * time.Second, []string{"parent parent/end +"}, workstreams.Completed, 0},
		"an answer, and a message waits": {func(d *workstreams.Due) {
			done(d)
			d.Waits = true
		}, 10 * time.Second, []string{"parent parent/reply/run-1 +"}, workstreams.Running, 75 * time.Second},
		"an interactive answer": {func(d *workstreams.Due) {
			done(d)
			d.Interactive = true
		}, 10 * time.Second, []string{"parent parent/reply/run-1 +"}, workstreams.Running, 75 * time.Second},
		"several answers": {func(d *workstreams.Due) {
			done(d)
			d.Replies = append([]workstreams.Reply{{Run: "run-0", Text: "41", Seq: 1}}, d.Replies...)
		}, 10 * time.Second, []string{"parent parent/reply/run-0 +", "parent parent/end +"}, workstreams.Completed, 0},
		"an interactive answer at work": {func(d *workstreams.Due) {
			done(d)
			d.Interactive, d.Going, d.Last = true, "run-2", workstreams.Last{}
		}, 10 * time.Second, []string{"parent parent/reply/run-1 +"}, workstreams.Running, 75 * time.Second},
		"many answers": {func(d *workstreams.Due) {
			done(d)
			d.Replies = make([]workstreams.Reply, workstreams.MaxReplies)
			d.Said |= saidEarly
			for i := range d.Replies {
				d.Replies[i] = workstreams.Reply{Run: "r", Seq: int64(i)}
			}
		}, 10 * time.Second, slices.Repeat([]string{"parent parent/reply/r +"}, workstreams.MaxReplies), workstreams.Running, 10 * time.Second},
		"an interactive deadline": {func(d *workstreams.Due) {
			done(d)
			d.Interactive = true
		}, 100 * time.Second, []string{"parent parent/reply/run-1 +", "parent parent/end +"}, workstreams.Timeout, 0},
		"a question": {func(d *workstreams.Due) {
			done(d)
			d.Last.Asks = true
		}, 10 * time.Second, []string{"parent parent/reply/run-1 +"}, workstreams.Running, 75 * time.Second},
		"a failure": {func(d *workstreams.Due) {
			done(d)
			d.Last.State, d.Replies = "failed", nil
		}, 10 * time.Second, []string{"parent parent/end +"}, workstreams.Failed, 0},
		"stopped by a person": {func(d *workstreams.Due) {
			done(d)
			d.Last.State, d.Replies = "canceled", nil
		}, 10 * time.Second, []string{"parent parent/end"}, workstreams.Canceled, 0},
		"terminated": {func(d *workstreams.Due) {
			d.State, d.EndedAt = workstreams.Canceling, launched.Add(10*time.Second)
		}, 10 * time.Second, []string{"child stop"}, workstreams.Canceling, 11 * time.Second},
		"terminated, and still at work": {func(d *workstreams.Due) {
			d.State, d.EndedAt, d.Said = workstreams.Canceling, launched.Add(10*time.Second), saidTask|saidStopped
		}, 69 * time.Second, nil, workstreams.Canceling, 70 * time.Second},
		"terminated, after the grace": {func(d *workstreams.Due) {
			d.State, d.EndedAt, d.Said = workstreams.Canceling, launched.Add(10*time.Second), saidTask|saidStopped
		}, 70 * time.Second, []string{"child stop/again", "parent parent/end"}, workstreams.Canceled, 0},
		"terminated, and idle": {func(d *workstreams.Due) {
			done(d)
			d.State, d.EndedAt = workstreams.Canceling, launched.Add(10*time.Second)
		}, 11 * time.Second, []string{"parent parent/end"}, workstreams.Canceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := child(c.change)
			puts, next := stepOf(d, facts{}, launched.Add(c.after))
			if next.State.Ended() { // the decision is durable before anybody is told
				if len(puts) > 0 && puts[len(puts)-1].Thread == d.Of.Thread && strings.HasSuffix(puts[len(puts)-1].ID, "/end") {
					t.Errorf("the step that ends it tells its parent: %+v", puts)
				}
				d.State, d.Phase, d.Said, d.Summary, d.Error = next.State, next.Phase, next.Said, next.Summary, next.Error
				var more []event.Internal
				more, next = stepOf(d, facts{}, launched.Add(c.after))
				puts = append(puts, more...)
			}
			var got []string
			for _, m := range puts {
				to := "parent "
				if m.Thread == d.Key() {
					to = "child "
				}
				line := to + strings.TrimPrefix(m.ID, string(d.Key())+"/")
				if m.Runs {
					line += " +"
				}
				got = append(got, line)
			}
			var due time.Duration
			if !next.DueAt.IsZero() {
				due = next.DueAt.Sub(launched)
			}
			if diff := cmp.Diff([]any{c.puts, c.state, c.due}, []any{got, next.State, due}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBoundedSummary checks that a parent is told that it has a part of a long answer.
func TestBoundedSummary(t *testing.T) {
	for chars, want := range map[int64]string{
		workstreams.MaxReply:     "42",
		workstreams.MaxReply + 1: "42…\n\n[These are the first 16000 of its 16001 characters.]",
	} {
		_, next := stepOf(child(func(d *workstreams.Due) {
			done(d)
			d.Replies[0].Chars = chars
		}), facts{}, launched)
		if next.Summary != want {
			t.Errorf("the summary is %q", next.Summary)
		}
	}
}

// TestReadable checks what the readers of the run that launched a workstream get to know.
func TestReadable(t *testing.T) {
	d := child(func(d *workstreams.Due) { d.Said = 0 })
	var got []string
	reads := func(after time.Duration) {
		_, next := stepOf(d, facts{}, launched.Add(after))
		for _, m := range readable(d, next) {
			got = append(got, m.name+" "+m.Type.String()+" "+strings.TrimPrefix(m.Text, title(d)))
		}
		d.State, d.Phase, d.Said, d.Summary, d.Error = next.State, next.Phase, next.Said, next.Summary, next.Error
	}
	for _, after := range []time.Duration{0, time.Second, 75 * time.Second, 80 * time.Second, 90 * time.Second, 100 * time.Second, 100 * time.Second} {
		reads(after)
	}
	d = child(done)
	reads(time.Second)
	reads(time.Second)
	want := []string{
		"begin SYSTEM do it", "75 WARNING  has used 75 % of its time.", "90 WARNING  has used 90 % of its time.", "end TERMINATED  was ended because its deadline passed.",
		"end COMPLETE 42",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
