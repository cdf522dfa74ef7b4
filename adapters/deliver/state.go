package deliver

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"parley/adapters"
	"parley/assembly/plan"
	"parley/assembly/turn"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
)

// maxStated is the greatest length of a state post on a platform that splits a text at its paragraphs, in characters.
const maxStated = 2000

// prepare gives a state post that is due its address and its text. It returns false if there is nothing to send now.
func (o *Outbox) prepare(ctx context.Context, d *outbox.Delivery, platform Platform) (sends bool, err error) {
	s, err := o.Journal.StateOf(ctx, d.Run)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, o.Journal.EndState(ctx, d)
	case err != nil:
		return false, err
	}
	text, err := o.stated(s, platform)
	_, edits := platform.Sender.(adapters.Editor)
	switch {
	case err != nil:
		return false, o.giveUp(ctx, d, outbox.Failed, err)
	case text == "", text == d.Post.Text && d.PlatformID != "", !edits && (d.PlatformID != "" || !isFinal(s)):
		return false, o.Journal.KeepState(ctx, d)
	}
	run := &runs.Run{Workspace: d.Workspace, ThreadKey: d.ThreadKey}
	if s.Answers != "" {
		run.Messages = []messages.Message{{ExternalID: s.Answers}}
	}
	_, to, err := o.way(run)
	if err != nil {
		return false, o.giveUp(ctx, d, outbox.Failed, err)
	}
	d.Post.Channel, d.Post.Place, d.Post.Text = to.Channel, to.Place, text
	return true, nil
}

// sentState records that the platform has a state post under an id. Its next edit is due after the platform's PreviewEvery.
func (o *Outbox) sentState(ctx context.Context, d *outbox.Delivery, id string) error {
	platform, _ := o.Platform(d.Workspace)
	return o.Journal.SentState(ctx, d, id, o.Now().Add(platform.Limits.PreviewEvery))
}

// isFinal reports whether the state of a run changes no more.
func isFinal(s *runs.Stated) bool {
	for i := range s.Children {
		if !s.Children[i].State.Ended() {
			return false
		}
	}
	return s.State != ""
}

// stated returns the text of a state post in the platform's form; empty for none. Mentions in it have no effect.
func (o *Outbox) stated(s *runs.Stated, platform Platform) (text string, err error) {
	defer adapters.Recover(o.Log, &err, "about", "a state post")
	state := stateOf(s, func(name string) bool { return platform.Shows == nil || platform.Shows(s.Agent, name) })
	if state.IsEmpty() {
		return "", nil
	}
	if _, edits := platform.Sender.(adapters.Editor); !edits {
		whole := func(text string) string { return strings.Join(platform.Sender.Format(text, nil), "\n\n") }
		return whole(state.Markdown(func(text string) bool { return utf8.RuneCountInString(whole(text)) <= maxStated })), nil
	}
	shown := platform.Sender.Format(state.Markdown(func(text string) bool { return len(platform.Sender.Format(text, nil)) == 1 }), nil)
	return shown[0], nil
}

// ends are the words for the ends of runs after which their plan goes on no more, and the status of the tasks that ran.
var ends = map[runs.State]struct {
	status plan.Status
	words  string
}{
	runs.Failed:      {plan.Failed, "The run failed."},
	runs.Canceled:    {plan.Stopped, "The run was stopped."},
	runs.Interrupted: {plan.Stopped, "A newer message began the run again."},
	runs.Dropped:     {plan.Stopped, "Newer messages came before the answer."},
	runs.Done:        {plan.Unfinished, ""},
	runs.Quiet:       {plan.Unfinished, ""},
}

// stateOf returns what people see of the state of a run.
func stateOf(s *runs.Stated, shows func(name string) bool) *plan.State {
	state := &plan.State{}
	if s.Plan != nil && shows(turn.ShowPlan) {
		state.Title, state.Tasks = plan.ReadTasks(s.Plan.Text, s.Plan.Details)
	}
	if s.Batch != nil && shows(turn.ShowBatch) {
		state.Batch = plan.ReadBatch(s.Batch.Text, s.Batch.Details)
	}
	for _, m := range s.Notes {
		if m.Text != "" && shows(turn.NameOf(m.Type)) {
			state.Warnings = append(state.Warnings, m.Text)
		}
	}
	for i := range s.Children {
		if shows(turn.ShowWorkstream) {
			state.Workstreams = append(state.Workstreams, workstreamTask(&s.Children[i]))
		}
	}
	if end, ok := ends[s.State]; ok {
		plan.Ended(state.Tasks, end.status)
		state.End = end.words
	}
	return state
}

// childStatus are the statuses of workstreams as tasks.
var childStatus = map[workstreams.State]plan.Status{
	workstreams.Running: plan.Running, workstreams.Canceling: plan.Running, workstreams.Completed: plan.Done,
	workstreams.Failed: plan.Failed, workstreams.Timeout: plan.Failed, workstreams.Canceled: plan.Stopped,
}

// workstreamTask returns a workstream as a task.
func workstreamTask(w *workstreams.Workstream) plan.Task {
	t := plan.Task{Title: cmp.Or(w.Name, w.Agent), Status: childStatus[w.State]}
	switch w.State {
	case workstreams.Running:
		if t.Words = w.Progress.String(); w.Message != "" {
			t.Words += ", " + w.Message
		}
	case workstreams.Canceling:
		t.Words = "stopping"
	case workstreams.Timeout:
		t.Words = "out of time"
	}
	return t
}
