package deliver

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"parley/adapters"
	"parley/assembly/plan"
	"parley/assembly/turn"
	"parley/ingest/card"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
	"parley/ingest/wake"
)

// maxStated is the greatest length of a state post on a platform without edits, in characters.
const maxStated = 2000

const (
	// maxStateAge bounds how long after its creation a state post is tried whose edit the platform refuses.
	maxStateAge = 7 * 24 * time.Hour
	// maxStatePause bounds the wait between two such tries.
	maxStatePause = time.Hour
)

// restateLater tries a refused edit of a state post again later: people read the post until it shows the end of its run, and an
// archived channel may be opened again, or the bot invited again.
func (o *Outbox) restateLater(ctx context.Context, d *outbox.Delivery, cause *adapters.SendError) error {
	pause := wake.Backoff(time.Minute, maxStatePause, int(d.Attempts)-1)
	o.Log.Info("the platform refuses the edit of a state post; it is tried again", "workspace", d.Workspace, "delivery", d.Key, "wait", pause, "err", cause)
	return o.Deliveries.Resend(ctx, d, o.Now().Add(pause), cause.Error())
}

// prepare gives a state post that is due its address, its text and its card. It returns false if there is nothing to send now.
func (o *Outbox) prepare(ctx context.Context, d *outbox.Delivery, platform Platform) (sends bool, err error) {
	s, err := o.Runs.StateOf(ctx, d.Run)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, o.Deliveries.EndState(ctx, d)
	case err != nil:
		return false, err
	}
	post, err := o.stated(s, platform)
	_, edits := platform.Sender.(adapters.Editor)
	switch {
	case err != nil:
		return false, o.giveUp(ctx, d, outbox.Failed, err)
	case post.Text == "", shownOf(post) == shownOf(d.Post) && d.PlatformID != "", !edits && (d.PlatformID != "" || !isFinal(s)):
		return false, o.Deliveries.KeepState(ctx, d)
	}
	run := &runs.Run{Place: threads.Place{Workspace: d.Workspace, ThreadKey: d.ThreadKey}}
	if s.Answers != "" {
		run.Messages = []messages.Message{{ExternalID: s.Answers}}
	}
	_, to, err := o.way(run)
	if err != nil {
		return false, o.giveUp(ctx, d, outbox.Failed, err)
	}
	d.Post.Channel, d.Post.Place, d.Post.Text, d.Post.Card = to.Channel, to.Place, post.Text, post.Card
	return true, nil
}

// shownOf returns what people see of a state post.
func shownOf(p outbox.Post) string {
	if p.Card == nil {
		return p.Text
	}
	return p.Text + "\n" + p.Card.Status + "\n" + p.Card.Plain()
}

// sentState records that the platform has a state post under an id. Its next edit is due after the platform's PreviewEvery.
func (o *Outbox) sentState(ctx context.Context, d *outbox.Delivery, id string) error {
	platform, _ := o.Platform(d.Workspace)
	return o.Deliveries.SentState(ctx, d, id, o.Now().Add(platform.Limits.PreviewEvery))
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

// stated returns a state post in the platform's form; without a text for none. Mentions in it have no effect.
func (o *Outbox) stated(s *runs.Stated, platform Platform) (post outbox.Post, err error) {
	defer adapters.Recover(o.Log, &err, "about", "a state post")
	state := StateOf(s, func(name string) bool { return platform.Shows == nil || platform.Shows(s.Agent, name) })
	if state.IsEmpty() {
		return post, nil
	}
	if _, edits := platform.Sender.(adapters.Editor); !edits {
		whole := func(v card.View) string { return strings.Join(platform.Sender.Format(v.Markdown(), nil), "\n\n") }
		post.Text = whole(state.View(func(v card.View) bool { return utf8.RuneCountInString(whole(v)) <= maxStated }))
		return post, nil
	}
	shown := state.View(func(v card.View) bool { return len(platform.card(post, &v)) == 1 })
	return platform.card(post, &shown)[0], nil
}

// ends are the words for the ends of runs after which their plan goes on no more, the status of the tasks that ran, and that of the
// card.
var ends = map[runs.State]struct {
	status plan.Status
	words  string
	card   string
}{
	runs.Failed:      {plan.Failed, "The run failed.", "error"},
	runs.Canceled:    {plan.Stopped, "The run was stopped.", "warning"},
	runs.Interrupted: {plan.Stopped, "A newer message began the run again.", "warning"},
	runs.Dropped:     {plan.Stopped, "Newer messages came before the answer.", "warning"},
	runs.Done:        {plan.Unfinished, "", "success"},
	runs.Quiet:       {plan.Unfinished, "", "success"},
}

// StateOf returns what people see of the state of a run. shows reports whether they see some messages, by a name of turn.Shown.
func StateOf(s *runs.Stated, shows func(name string) bool) *plan.State {
	state := &plan.State{Status: "info"}
	if s.Plan != nil && shows(turn.ShowPlan) {
		state.Title, state.Tasks = plan.ReadTasks(s.Plan.Text, s.Plan.Details)
	}
	if s.Batch != nil && shows(turn.ShowBatch) {
		state.Batch = plan.ReadBatch(s.Batch.Text, s.Batch.Details)
	}
	for _, m := range s.Notes {
		if m.Text != "" && shows(turn.NameOf(m.Type)) {
			state.Notes = append(state.Notes, signs[m.Type]+" "+m.Text)
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
		if isFinal(s) {
			state.Status = end.card
		}
	}
	return state
}

// signs begin the lines of a state post that show messages.
var signs = map[stream.Type]string{stream.Warning: "⚠️", stream.Error: "❌", stream.System: "ℹ️"}

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
