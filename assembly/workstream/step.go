package workstream

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/workstreams"
)

// The messages about a workstream that are durable; Workstream.Said has their sum.
const (
	saidTask    = 1 << iota // its task, to the child
	saidEarly               // 75 % of the time are over, to the parent
	saidWrapUp              // it must come to an end, to the child
	saidLate                // 90 % of the time are over, to the parent
	saidStopped             // the command that ends the work in the child's thread
	saidEnd                 // the end, to the parent
)

const (
	// grace is the time that a child has to end after its parent terminated it.
	grace = time.Minute
	// stopAgain is the time after which a child is looked at that is being stopped.
	stopAgain = time.Second
)

// marks are the messages about a child's time, by the part of it that is over.
var marks = []struct {
	percent int64
	said    int64
}{{75, saidEarly}, {80, saidWrapUp}, {90, saidLate}}

// facts are the further contents of the report of a workstream's end.
type facts struct {
	working []workstreams.Workstream // others of the same agent in the parent's thread that work
	files   []runs.Artifact          // that the workstream has made
}

// maxFacts bounds the workstreams and the files that a report names, and maxNamed the characters of a task in it.
const maxFacts, maxNamed = 20, 200

// lines returns the lines above the report of a workstream's end: its task, its files and the work that goes on.
func (f *facts) lines(d *workstreams.Due) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The task was: %s\n", named(d.Task))
	if len(f.files) > 0 {
		b.WriteString("Files that it has made, which read_artifact reads:")
		for _, a := range f.files[:min(len(f.files), maxFacts)] {
			fmt.Fprintf(&b, "\n- %s (%s, %d bytes)", oneLine(a.Path), oneLine(a.File.MimeType), a.File.Size)
		}
		b.WriteString(more(len(f.files)))
	}
	if len(f.working) > 0 {
		b.WriteString("Still at work:")
		for i := range f.working[:min(len(f.working), maxFacts)] {
			b.WriteString("\n- " + Line(&f.working[i]))
		}
		b.WriteString(more(len(f.working)))
	}
	return b.String()
}

// more returns the end of a list with n elements.
func more(n int) string {
	if n > maxFacts {
		return fmt.Sprintf("\n- and %d more\n", n-maxFacts)
	}
	return "\n"
}

// named returns a task on one line that is not too long.
func named(task string) string {
	words := []rune(oneLine(task))
	if len(words) > maxNamed {
		return string(words[:maxNamed]) + "…"
	}
	return string(words)
}

// Line returns the line about a workstream for the agent that has launched it.
func Line(w *workstreams.Workstream) string {
	return fmt.Sprintf("%s (launch_id %s, agent %s): %s", oneLine(cmp.Or(w.Name, w.Agent)), w.ID, w.Agent, named(w.Task))
}

// stepOf returns the next step of a workstream, and the messages that must be durable before it is taken.
func stepOf(d *workstreams.Due, told facts, now time.Time) (puts []event.Internal, next workstreams.Step) {
	next = workstreams.Step{State: d.State, Phase: d.Phase, Said: d.Said, Summary: d.Summary, Error: d.Error, DueAt: d.DeadlineAt}
	if d.Said&saidTask == 0 {
		puts = append(puts, task(&d.Workstream))
		next.Said |= saidTask
	}
	if !d.State.Ended() { // its thread may have come to an end before an earlier try of this step was taken
		puts = append(puts, settle(d, &next, now)...)
	}
	if !next.State.Ended() {
		if next.State == workstreams.Canceling {
			next.DueAt = now.Add(stopAgain)
			return puts, next
		}
		puts = append(puts, warn(d, &next, now)...)
		if len(d.Replies) == workstreams.MaxReplies {
			next.DueAt = now
		}
		return puts, next
	}
	if !d.State.Ended() { // the report must not depend on later events
		next.Phase, next.DueAt = workstreams.Done, now
		return puts, next
	}
	if !d.Idle() { // also if a message came behind the first stop
		name := "stop"
		if next.Said&saidStopped != 0 {
			name = "stop/again"
		}
		puts, next.Said = append(puts, toChild(&d.Workstream, name, event.Internal{Stops: true})), next.Said|saidStopped
	}
	next.Phase, next.Said, next.DueAt = workstreams.Done, next.Said|saidEnd, time.Time{}
	return append(puts, toParent(d, "end", next.State != workstreams.Canceled, report(d, &next, &told))), next
}

// settle finds out whether a workstream has ended, and passes its replies to its parent, except the one with which it
// ends.
func settle(d *workstreams.Due, next *workstreams.Step, now time.Time) (puts []event.Internal) {
	more := len(d.Replies) == workstreams.MaxReplies // the next step has further ones
	stands := d.Idle() && d.Last.Run != "" && !more
	answers := stands && d.Last.State == "done"
	replies := d.Replies
	if last := len(replies) - 1; answers && !d.Interactive && !d.Last.Asks && last >= 0 && replies[last].Run == d.Last.Run {
		next.Summary, replies = shown(replies[last]), replies[:last] // the end reports it
	}
	for _, r := range replies {
		puts, next.Reported = append(puts, toParent(d, "reply/"+r.Run, true, title(d)+" says:\n\n"+shown(r))), r.Seq
	}
	switch {
	case d.State == workstreams.Canceling && (d.Idle() || now.Sub(d.EndedAt) >= grace):
		next.State = workstreams.Canceled
	case d.State == workstreams.Canceling && d.Said&saidStopped == 0:
		next.Said |= saidStopped
		return append(puts, toChild(&d.Workstream, "stop", event.Internal{Stops: true}))
	case answers && (d.Interactive || d.Last.Asks):
		next.Phase = workstreams.Blocked
	case answers:
		next.State = workstreams.Completed
		return puts
	}
	switch {
	case d.State != workstreams.Running:
	case !now.Before(d.DeadlineAt):
		next.State, next.Error = workstreams.Timeout, "its deadline passed"
	case stands && d.Last.State == "failed":
		next.State, next.Error = workstreams.Failed, d.Last.Error
	case stands && !answers:
		next.State, next.Error = workstreams.Canceled, cmp.Or(d.Last.Error, d.Last.State)
	}
	return puts
}

// warn tells parent and child of the time that is over, and sets the time of the next step.
func warn(d *workstreams.Due, next *workstreams.Step, now time.Time) (puts []event.Internal) {
	whole := d.DeadlineAt.Sub(d.LaunchedAt)
	for _, m := range marks {
		at := d.LaunchedAt.Add(whole * time.Duration(m.percent) / 100)
		switch {
		case next.Said&m.said != 0:
		case at.After(now):
			next.DueAt = at
			return puts
		case m.said == saidWrapUp:
			puts = append(puts, toChild(&d.Workstream, "wrap-up", event.Internal{
				Text: fmt.Sprintf("Your time ends at %s. Come to an end now: answer with what you have.", d.DeadlineAt.UTC().Format(time.RFC3339)),
			}))
			next.Said |= m.said
		default:
			puts = append(puts, toParent(d, fmt.Sprint(m.percent), false, used(d, m.percent)))
			next.Said |= m.said
		}
	}
	return puts
}

// used returns the warning of a mark.
func used(d *workstreams.Due, percent int64) string {
	return fmt.Sprintf("%s has used %d %% of its time.", title(d), percent)
}

// toChild returns a message of the workstream's own thread, with an id from a name.
func toChild(w *workstreams.Workstream, name string, m event.Internal) event.Internal {
	m.ID, m.Thread, m.Channel, m.Parent, m.Agent, m.CausedIn = id(w, name), w.Key(), w.Of.Channel, w.Of.Parent, w.Agent, w.Run
	return m
}

// taskName is the name of the message with the task.
const taskName = "task"

// task returns the task of a workstream, which is the first message of its thread.
func task(w *workstreams.Workstream) event.Internal {
	return toChild(w, taskName, event.Internal{From: w.Asker, Runs: true, Text: w.Task})
}

// toParent returns a message of the thread of the workstream's parent, with an id from a name.
func toParent(d *workstreams.Due, name string, runs bool, text string) event.Internal {
	return event.Internal{
		ID: event.ReportID(d.ID, name), Thread: d.Of.Thread, Channel: d.Of.Channel, Parent: d.Of.Parent, Agent: d.Asker, Runs: runs, Text: text, CausedIn: d.Run,
	}
}

// id returns the id of a message about a workstream.
func id(w *workstreams.Workstream, name string) string { return string(w.Key()) + "/" + name }

// report returns the report of a workstream's end for its parent, which has canceled it itself or has ended.
func report(d *workstreams.Due, next *workstreams.Step, told *facts) string {
	if next.State == workstreams.Canceled {
		return ended(d, next)
	}
	return told.lines(d) + ended(d, next)
}

// ended returns what is said of a workstream's end.
func ended(d *workstreams.Due, next *workstreams.Step) string {
	switch next.State {
	case workstreams.Completed:
		return title(d) + " is completed. Its answer:\n\n" + next.Summary
	case workstreams.Timeout:
		return title(d) + " was ended because its deadline passed."
	case workstreams.Failed:
		return title(d) + " has failed: " + next.Error
	}
	return title(d) + " is canceled."
}

// title names a workstream to its parent. Its name is one that a client or a model has chosen, so it is written like an author's.
func title(d *workstreams.Due) string {
	return fmt.Sprintf("Workstream %s (launch_id %s, agent %s)", cmp.Or(assembly.CleanName(d.Name), d.Agent), d.ID, d.Agent)
}

// oneLine returns a text on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// shown returns a reply as its parent gets it. That of a longer one says so.
func shown(r workstreams.Reply) string {
	if r.Chars > workstreams.MaxReply {
		return fmt.Sprintf("%s…\n\n[These are the first %d of its %d characters.]", r.Text, workstreams.MaxReply, r.Chars)
	}
	return r.Text
}
