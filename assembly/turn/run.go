package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/assembly/runinput"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
	"parley/ingest/trace"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// commitTime bounds the time for which an answer, which exists only in memory, waits for a
// failing store. After that time, the agent is asked again.
const commitTime = 10 * time.Minute

// attempt is one request to the agent.
type attempt struct {
	*Runner
	*going
	claim    *work.Claim
	profile  Profile
	settings Settings
	show     func(func()) // starts a goroutine of the preview

	asked   asked
	tools   []runinput.Tool // of Parley, which the agent may call
	report  Report
	said    collector
	preview LivePreview // nil until the agent is asked
	more    bool        // messages wait for a further turn, or the run begins again at once
	// rest are the agent's messages that are not stored; ends are those that end its run.
	rest, ends []stream.Message
}

// make asks the agent and ends the run, or leaves it to a later attempt. asking
// ends if the run is interrupted or withdrawn, ctx if the work must stop. It returns
// whether the thread may have a further turn now.
func (a *attempt) make(ctx, asking context.Context) (more bool, err error) {
	a.asked.BegunAt = a.Now()
	asking = a.Observer.RunBegins(asking, a.run, a.asked.BegunAt)
	a.said.tells = !trace.From(asking).IsZero()
	a.said.events = a.newRecorder(ctx)
	err = a.ask(ctx, asking)
	if a.preview != nil {
		a.preview.Stop()
	}
	a.rest, a.ends = a.said.events.stop()
	a.measureOwn()
	if err == nil {
		err = a.commit(ctx)
	} else {
		err = a.unanswered(ctx, err)
	}
	if err != nil {
		a.report.Outcome, a.report.Err = LeftOff, err
	}
	a.toldTools()
	a.report.BegunAt, a.report.Took, a.report.Usage = a.asked.BegunAt, a.Now().Sub(a.asked.BegunAt), a.asked.usage
	if !a.said.first.IsZero() {
		a.report.FirstToken = a.said.first.Sub(a.asked.BegunAt)
	}
	a.Observer.RunEnded(a.run, a.report)
	switch a.report.Outcome {
	case LeftOff, Retried, Awaited, Answered:
		return a.more, err
	}
	return true, nil
}

var errTimeout = errors.New("the agent did not answer in time")

// ask assembles the input and runs the agent until it has an answer. The preview
// ends with running, everything else with asking.
func (a *attempt) ask(running, asking context.Context) error {
	if len(a.run.Messages) == 0 {
		if a.run.Taken {
			a.abandon(running, a.claim.Thread, a.profile, a.run.ID)
		}
		return ErrWithdrawn
	}
	_ = a.guard("the sign of work", func() error { a.Outbox.Expect(asking, a.claim, a.run); return nil }) // logged
	if a.run.Claims >= envelopes.DeadClaims {
		return permanent{fmt.Errorf("the process ended %d times during this run", a.run.Claims)}
	}
	ctx, cancel := context.WithCancelCause(asking)
	defer cancel(nil)
	late := time.AfterFunc(a.profile.Timeout, func() { cancel(errTimeout) })
	defer late.Stop()
	err := a.guard("the run", func() (err error) {
		if a.report.Input, err = a.input(ctx); storage.Unavailable(err) {
			return storeError{err}
		} else if err != nil {
			return err
		}
		if a.preview, err = a.Outbox.Show(running, a.claim, a.run, a.mentions(), a.show); err != nil {
			return err
		}
		a.showSaid()
		if a.Tools != nil {
			var missing []string
			a.tools, missing = a.Tools.Offered(ctx, a.run)
			for _, words := range missing {
				a.said.events.add(stream.Message{Type: stream.Warning, Text: words})
			}
		}
		a.showWorkstreams(ctx)
		if err := a.addWorking(ctx); err != nil {
			return err
		}
		if a.run.Answer != nil {
			return a.later(*a.run.Answer)
		}
		steering := a.steer(ctx, a.report.Input)
		defer steering.end()
		a.report.Input.Taken = a.run.Taken
		a.report.Input.Untake = func() error { return a.Runs.TakeRun(context.WithoutCancel(ctx), &a.claim.Claim, a.run, false) }
		a.report.Input.Take = func() error {
			err := a.Runs.TakeRun(context.WithoutCancel(ctx), &a.claim.Claim, a.run, true)
			if err == nil && steering != nil {
				steering.begin()
			}
			return err
		}
		a.report.Input.Measure = a.measure
		a.report.Input.Began = func() { late.Reset(a.profile.Timeout) }
		if err := a.keep(a.report.Input.Messages); err != nil {
			return err
		}
		defer a.noteLearnt()()
		return a.work(a.proved(ctx), a.report.Input)
	})
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrInterrupted), errors.Is(cause, ErrWithdrawn), errors.Is(cause, ErrStopped):
		return cause
	case errors.Is(err, ErrLater) && errors.Is(cause, errTimeout):
		return err
	case err != nil && cause != nil:
		return cause
	case a.said.refused != nil:
		return a.said.refused // even if the agent has ignored it
	case a.isQuiet(err):
		return errQuiet
	case err == nil && a.isEmpty():
		return fmt.Errorf("the agent ended without an answer: %w", ErrEmpty)
	}
	return err
}

// noteLearnt returns a function that logs what the agent has learnt meanwhile.
func (a *attempt) noteLearnt() func() {
	agent, ok := a.profile.Agent.(Learner)
	if !ok {
		return func() {}
	}
	before := agent.Learnt()
	return func() {
		for _, note := range agent.Learnt() {
			if !slices.Contains(before, note) {
				a.Log.Warn("an agent's server has refused a request; further ones have another form", "agent", a.profile.ID, "run", a.run.ID, "form", note)
			}
		}
	}
}

// later takes the answer that the agent gave later, its question, or the end of its run.
func (a *attempt) later(m stream.Message) error {
	agent, ok := a.profile.Agent.(AnswersLater)
	switch {
	case m.Type == stream.Error || m.Type == stream.Terminated:
		return permanent{fmt.Errorf("the agent ended its run with %v: %s", m.Type, m.Text)}
	case ok && m.Type == stream.Answer:
		return agent.Later(a.report.Input, m, a.said.emit)
	}
	return a.said.emit(m)
}

// guard runs f. A panic is this run's failure, not the process's.
func (a *attempt) guard(part string, f func() error) (err error) {
	defer adapters.Recover(a.Log, &err, "in", part, "agent", a.profile.ID, "run", a.run.ID)
	return f()
}

// commit ends the run with the agent's answer.
func (a *attempt) commit(ctx context.Context) error {
	question := a.question()
	var ask stream.Ask
	if question != nil {
		ask = question.Ask
	}
	shown := a.card()
	posts, files, send, err := a.posts(ctx, ask, shown)
	if err != nil {
		return a.unanswered(ctx, err)
	}
	copies, err := a.copies(ctx)
	if err != nil {
		return a.unanswered(ctx, storeError{err})
	}
	reply := runs.Reply{
		Content: ask.Numbered(a.said.text), Question: question, AnsweredAt: a.said.first, Attempt: a.record(nil), Posts: posts, Files: files, Send: send, Events: append(a.rest, a.ends...), Metadata: a.metadata, Copies: copies,
		Stale: a.stale(), Interruptible: a.interruptible(), Withdrawn: a.notice(withdrawn),
	}
	if shown != nil {
		a.report.Card = shown.Plain()
		if strings.TrimSpace(reply.Content) == "" && !a.settings.API { // the thread's later input has what people have read
			reply.Content, a.report.Card = a.report.Card, ""
		}
	}
	var ended runs.EndResult
	err = work.Insist(ctx, commitTime, func() (err error) {
		ended, err = a.Runs.CommitReply(context.WithoutCancel(ctx), &a.claim.Claim, a.run, reply)
		reply.Again = reply.Again || errors.Is(err, storage.ErrUnclear)
		return err
	})
	if err != nil {
		return err
	}
	a.report.Outcome, a.report.Reply = outcomes[ended.State], ended.Message
	a.more = ended.More
	a.copied(ended.Copied)
	switch {
	case ended.State == runs.Done && len(posts) > 0:
		a.Outbox.Posted(a.claim, ended.Begun)
	case ended.State != runs.Unfinished:
		a.clears(false)
	}
	return nil
}

// copies returns what tells programs of the run's end.
func (a *attempt) copies(ctx context.Context) ([]runs.Copy, error) {
	if a.Copies == nil {
		return nil, nil
	}
	return a.Copies.Copies(ctx, a.run)
}

// copied sends the copies in some threads.
func (a *attempt) copied(threads []int64) {
	if len(threads) > 0 {
		a.Copies.Copied(threads)
	}
}

// posts returns the posts of the answer and of the agent's files, and the bounds of the
// first post. Without posts, it returns the files as the reply's attachments.
func (a *attempt) posts(ctx context.Context, ask stream.Ask, shown *card.View) (posts []outbox.Post, attached []event.Attachment, send *outbox.Send, err error) {
	var files []outbox.File
	for _, file := range a.said.files {
		var stored outbox.File
		err := work.Insist(ctx, commitTime, func() (err error) {
			stored, err = a.Files.Put(ctx, file)
			return err
		})
		switch {
		case err == nil:
			files = append(files, stored)
		case storage.Unavailable(err):
			return nil, nil, nil, storeError{err}
		default: // the answer is sent without the file
			a.Log.Error("an agent's file is left out", "agent", a.profile.ID, "run", a.run.ID, "file", file.Name, "err", err)
			a.rest = append(a.rest, fileSaid(event.Attachment{Name: file.Name, MimeType: file.MimeType, Size: int64(len(file.Data))}, Refused))
		}
	}
	err = a.guard("formatting", func() error {
		posts, send = a.preview.Format(a.said.text, ask, shown, files)
		return nil
	})
	for _, f := range files {
		if len(posts) == 0 {
			attached = append(attached, event.Attachment{ID: path.Base(f.Path), Name: f.Name, MimeType: f.MimeType, Size: f.Size, Copy: &event.Copy{Bucket: f.Bucket, Path: f.Path}})
		}
	}
	return posts, attached, send, err
}

var outcomes = map[runs.State]Outcome{
	runs.Done:        Answered,
	runs.Unfinished:  Rerun,
	runs.Dropped:     Dropped,
	runs.Canceled:    Canceled,
	runs.Interrupted: Interrupted,
}

// card returns the card of the answer as people see it; nil for none.
func (a *attempt) card() *card.View {
	if a.said.card == nil || a.profile.Show != nil && !slices.Contains(a.profile.Show, ShowCard) {
		return nil
	}
	v := card.ViewOf(*a.said.card, a.profile.ImageHosts, func(n int) string { return runs.CardButton(a.run.ID, n) })
	if len(v.Parts) == 0 {
		return nil
	}
	return &v
}

// metadata returns the reply's metadata in the contract's terms, with the run's figures and
// the agent's own keys.
func (a *attempt) metadata(messageID string, latency time.Duration) []byte {
	m := event.Metadata{
		Source: string(a.run.Platform), SenderID: "agent:" + a.run.Agent, SenderDisplayName: a.run.Agent, SenderType: event.Bot,
		Extra: []event.Extra{
			a.runID(),
			{Key: event.KeyStage, Value: []byte(`"answer"`)},
			{Key: event.KeyLatency, Value: strconv.AppendInt(nil, latency.Milliseconds(), 10)},
			{Key: event.KeyMessageID, Value: []byte(`"` + messageID + `"`)}, // a UUID
		},
	}
	for _, own := range ownKeys(a.said.own) {
		if event.MayClaim(event.Agent, own.Key) {
			m.Extra = append(m.Extra, own)
		}
	}
	return m.Bytes()
}

// runID returns the key of the metadata with the run's id, which a client may have chosen.
func (a *attempt) runID() event.Extra {
	id, _ := json.Marshal(a.run.ID) // a text always encodes
	return event.Extra{Key: event.KeyRunID, Value: id}
}

// interruptible reports whether a newer message interrupts the run. A run under a client's own
// id answers its message alone. A run that answers a question would answer it twice.
func (a *attempt) interruptible() bool {
	return a.settings.Mode == ModeInterrupt && !a.run.Named && a.run.Question == ""
}

// stale returns what becomes of a stale reply. A run that answers a question is not repeated: the
// agent would get the answer twice, and act twice on an approval.
func (a *attempt) stale() string {
	if a.run.Question != "" && a.settings.Stale == StaleRerun {
		return StaleSend
	}
	return a.settings.Stale
}

// unanswered ends a run that has no answer, or leaves it to a later attempt.
func (a *attempt) unanswered(ctx context.Context, cause error) error {
	var store storeError
	switch committing := context.WithoutCancel(ctx); {
	case errors.Is(cause, ErrWithdrawn):
		return a.end(committing, Canceled, runs.Unanswered{State: runs.Canceled, Cause: cause.Error(), Notice: a.notice(withdrawn)}, cause)
	case errors.Is(cause, ErrStopped): // the journal has ended the run already
		a.report.Outcome = Canceled
		if err := a.Runs.AddAttempt(committing, a.run, a.record(cause)); err != nil {
			a.Log.Warn("the attempt of a stopped run is not stored", "run", a.run.ID, "err", err)
		}
		a.clears(false)
		return nil
	case errors.Is(cause, ErrInterrupted):
		return a.end(committing, Interrupted, runs.Unanswered{State: runs.Interrupted}, cause)
	case errors.Is(cause, errQuiet):
		return a.end(committing, Quiet, runs.Unanswered{State: runs.Quiet}, nil)
	case ctx.Err() != nil:
		a.report.Outcome = LeftOff // the next start resumes the run
		if a.asked.usage.TokensIn+a.asked.usage.TokensOut > 0 {
			if err := a.Runs.AddAttempt(committing, a.run, a.record(context.Cause(ctx))); err != nil {
				a.Log.Warn("the attempt of a run that goes on later is not stored, nor its tokens", "run", a.run.ID, "err", err)
			}
		}
		return nil
	case errors.Is(cause, ErrLater):
		return a.await(committing, pauseOf(cause))
	case errors.As(cause, &store):
		return store.error // the run is resumed when the store works again
	case errors.Is(cause, errOutdated):
		a.report.Outcome, a.report.Err, a.more = LeftOff, cause, true
		return nil
	default:
		return a.failed(committing, cause)
	}
}

// await leaves the run to the agent, which answers later, or fails the run if the agent did
// not answer in time. A start of the process makes the run due earlier, and so does the pause after which the agent wants to look; 0 for none.
func (a *attempt) await(ctx context.Context, pause time.Duration) error {
	until := a.run.BegunAt.Add(a.profile.AnswerWithin)
	if !until.After(a.Now()) {
		return a.failed(ctx, permanent{fmt.Errorf("%w (answer_within)", errTimeout)})
	}
	a.asked.usage.Finish = runs.AnswersLater
	if look := a.Now().Add(pause); pause > 0 && look.Before(until) {
		until = look
	}
	return a.end(ctx, Awaited, runs.Unanswered{At: until, Taken: true}, nil)
}

// end ends an attempt that has no answer; cause is nil if it has not failed. A failure of the store leaves the run to a later
// attempt, and loses the messages of this one that are not stored.
func (a *attempt) end(ctx context.Context, outcome Outcome, u runs.Unanswered, cause error) error {
	a.report.Outcome, u.Events, u.Attempt = outcome, a.rest, a.record(cause)
	if u.State == runs.Failed {
		u.Events = append(u.Events, a.ends...)
	}
	if u.State != runs.Unfinished && u.State != runs.Interrupted {
		copies, err := a.copies(ctx)
		if err != nil {
			return storeError{err}
		}
		u.Copies = copies
	}
	next, err := a.Runs.EndAttempt(ctx, &a.claim.Claim, a.run, u)
	a.copied(a.run.Copied)
	switch {
	case u.State != runs.Unfinished:
		a.clears(len(u.Notice.Posts) > 0)
	case err == nil:
		a.Work.WakeAt(work.Turns, a.profile.ID, next)
	}
	return err
}

// failed counts a failed attempt. It schedules another attempt, or fails the run.
func (a *attempt) failed(ctx context.Context, cause error) error {
	cause = a.unquoted(ctx, cause)
	a.report.Err = cause
	a.Log.Warn("a run failed", "agent", a.profile.ID, "workspace", a.run.Workspace, "run", a.run.ID, "attempt", a.run.Attempts+1, "err", cause)
	pause := pauseOf(cause)
	if int(a.run.Attempts)+1 >= a.settings.MaxAttempts || isPermanent(cause) || pause > a.profile.Timeout {
		return a.fail(ctx, cause)
	}
	at := a.Now().Add(max(backoff(a.run.Attempts), pause))
	return a.end(ctx, Retried, runs.Unanswered{At: at, Failed: true}, cause)
}

// unquoted returns the cause of a failure without the words of the agent's server, which may quote the input, unless the run is in
// a room: every operator reads the causes and the log, but not each of them what is said elsewhere. The log has the words at debug.
func (a *attempt) unquoted(ctx context.Context, cause error) error {
	var quoting interface{ Unquoted() error }
	if !errors.As(cause, &quoting) {
		return cause
	}
	kind, err := a.Threads.ChannelType(ctx, a.run.Workspace, a.run.Channel)
	if err == nil && kind == event.ChannelRoom {
		return cause
	}
	a.Log.Debug("the words of an agent's server", "agent", a.profile.ID, "run", a.run.ID, "err", cause)
	return quoting.Unquoted()
}

// backoff returns the wait before the next attempt, for the number of earlier failures: 1 s,
// 4 s, 16 s, then a minute.
func backoff(failures int64) time.Duration {
	return wake.Backoff(time.Second, time.Minute, 2*int(failures))
}

// fail ends the run for good and posts one sentence to the thread, if people wait for an answer. The agent's server may work on: it is told.
func (a *attempt) fail(ctx context.Context, cause error) error {
	var notice outbox.Notice
	if !a.run.IsScheduled() {
		notice = a.notice(apology(cause))
		notice.Posts = a.Outbox.Notice(a.run, notice.Text)
	}
	err := a.end(ctx, Failed, runs.Unanswered{State: runs.Failed, Cause: cause.Error(), Notice: notice}, cause)
	if err == nil {
		a.abandon(ctx, a.claim.Thread, a.profile, a.run.ID)
	}
	return err
}

// clears wakes the deliveries of a run that has ended: those that remove its previews
// and its sign of work, and those that post its notice.
func (a *attempt) clears(posts bool) {
	if posts || a.run.Previews > 0 || a.run.Signed {
		a.Outbox.Posted(a.claim, nil)
	}
}

// withdrawn is the notice of a run whose messages were deleted. It is not posted.
const withdrawn = "The question was deleted, so it was not answered."

// notice returns a notice of the run.
func (a *attempt) notice(text string) outbox.Notice {
	return outbox.NewNotice(a.run.Platform, text, a.runID())
}

// apology returns the sentence for the people in the thread. The operator gets the cause. An
// agent's error can have a sentence of its own.
func apology(cause error) string {
	var own interface{ Sentence() string }
	if errors.As(cause, &own) && own.Sentence() != "" {
		return own.Sentence()
	}
	switch {
	case errors.Is(cause, errTooLong):
		return LongAnswer
	case errors.Is(cause, errTimeout):
		return LateAnswer
	}
	return "Sorry, something went wrong while I was answering this. Please ask again later."
}

// permanent marks a failure that another attempt would repeat.
type permanent struct{ error }

// Temporary returns false.
func (permanent) Temporary() bool { return false }

// Unwrap returns the failure, whose kind decides about the sentence to the thread.
func (p permanent) Unwrap() error { return p.error }

// pauseOf returns the pause that the agent's server asks for before another attempt.
func pauseOf(err error) time.Duration {
	var e interface{ Pause() time.Duration }
	if errors.As(err, &e) {
		return e.Pause()
	}
	return 0
}

// isPermanent reports whether an agent's error says that another attempt is useless.
func isPermanent(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && !e.Temporary()
}
