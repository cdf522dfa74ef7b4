package turn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/assembly"
	"parley/assembly/workstream"
	"parley/ingest/journal/workstreams"
	"parley/ingest/wake"
)

// workingEvery is the least time between two looks at the workstreams of a run.
const workingEvery = time.Second

// maxWorking bounds the workstreams that an input names.
const maxWorking = 20

// addWorking tells an agent that may have workstreams which ones of the thread work: the run that launched them may have ended, and its
// later inputs have its answer alone.
func (a *attempt) addWorking(ctx context.Context) error {
	if len(a.tools) == 0 || a.run.Taken || a.run.Answer != nil || len(a.report.Input.Messages) == 0 {
		return nil
	}
	below, err := a.Workstreams.WorkstreamsBelow(ctx, a.run.ThreadKey, a.run.Agent, maxWorking)
	if err != nil {
		return storeError{err}
	}
	var lines []string
	for i := range below {
		if w := &below[i]; !w.State.Ended() {
			lines = append(lines, "- "+workstream.Line(w))
		}
	}
	if len(lines) > 0 {
		a.report.Input.Messages = assembly.AddWorking(a.report.Input.Messages, "Your workstreams at work, whose results come later:\n"+strings.Join(lines, "\n"))
	}
	return nil
}

// showWorkstreams lets people see how many workstreams of the run are at work, in the sign of its work, until ctx ends.
func (a *attempt) showWorkstreams(ctx context.Context) {
	if len(a.tools) == 0 {
		return
	}
	a.show(func() {
		changed, stop := a.Runs.FollowRun(a.run.ID)
		defer stop()
		var before []workstreams.Workstream
		for { // the first look finds those of an attempt before, and those that were launched meanwhile
			children, err := a.Workstreams.WorkstreamsOf(ctx, a.run.ID)
			if words := working(before, children); err == nil && words != "" {
				a.preview.Note(words)
			}
			before = children
			if !wake.After(ctx, workingEvery) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
}

// working returns the number of the workstreams at work, and the progress of the one that has changed last, in words. It
// returns an empty text if nothing has changed. Both lists have the first launched one first, and the later list has those of the earlier one.
func working(before, now []workstreams.Workstream) string {
	n, newest, changed := 0, -1, -1
	for i := range now {
		differs := i >= len(before) || before[i].State != now[i].State || before[i].Progress != now[i].Progress
		if differs {
			changed = i
		}
		if !now[i].State.Ended() {
			n++
			if differs || newest < 0 {
				newest = i
			}
		}
	}
	switch {
	case changed < 0, n == 0 && len(before) == 0: // those that an attempt before has shown
		return ""
	case n == 0:
		return "all workstreams have ended"
	case n == 1:
		return "1 workstream at work: " + now[newest].Progress.String()
	}
	return fmt.Sprintf("%d workstreams at work: %s", n, now[newest].Progress)
}
