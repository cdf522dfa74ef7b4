package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// maxClaims is how often a run may have been begun by processes that ended
	// before it did, until it is worked on alone.
	maxClaims = 20
	// aloneClaims is how often it may end the process while it is worked on
	// alone. A process that is killed again and again takes the innocent with it,
	// so that one such end proves nothing.
	aloneClaims = 10
	// maxBackoff bounds the wait between two attempts of a run.
	maxBackoff = time.Minute
)

// attempt is one asking of the agent.
type attempt struct {
	*Runner
	*going
	lease    *journal.Lease
	run      *journal.Run
	profile  Profile
	settings Settings

	report  Report
	said    collector
	showing Showing // nil until the agent is asked
	more    bool    // messages wait for a further turn

	lastMetadata *event.Metadata // that was read
}

// make asks the agent and ends the run, or leaves it to a later attempt. asking
// ends when the run is interrupted or withdrawn, ctx when the work must stop. It
// returns whether the thread's next turn may be taken at once.
func (a *attempt) make(ctx, asking context.Context) bool {
	begun := a.Now()
	err := a.ask(ctx, asking)
	if a.showing != nil {
		a.showing.Stop()
	}
	if err == nil {
		err = a.commit(ctx)
	} else {
		err = a.unanswered(ctx, err)
	}
	a.report.Took = a.Now().Sub(begun)
	switch {
	case errors.Is(err, journal.ErrFenced):
		a.Desk.Lost(a.lease)
		a.report.Outcome = LeftOff
	case err != nil:
		a.report.Outcome, a.report.Err = LeftOff, err
		a.pause(ctx, "end a run", err)
	}
	a.Observer.RunEnded(a.run, a.report)
	switch a.report.Outcome {
	case LeftOff, Retried:
		return false
	case Answered:
		return a.more
	}
	return true
}

var errTimeout = errors.New("the agent did not answer in time")

// ask assembles the input and runs the agent, until it has an answer. What is shown
// meanwhile ends with work, the rest with asking.
func (a *attempt) ask(work, asking context.Context) error {
	if len(a.run.Messages) == 0 {
		return errWithdrawn
	}
	if a.run.Claims > maxClaims+aloneClaims {
		return permanent{fmt.Errorf("the process ended %d times during this run", a.run.Claims-1)}
	}
	ctx, cancel := context.WithTimeoutCause(asking, a.profile.Timeout, errTimeout)
	var watching sync.WaitGroup
	watching.Go(func() { a.watch(ctx) })
	defer watching.Wait()
	defer cancel()

	err := a.guard("assembly", func() (err error) {
		a.report.Input, err = a.input(ctx)
		return err
	})
	if err == nil {
		err = a.guard("showing", func() (err error) {
			a.showing, err = a.Outbox.Show(work, a.lease, a.run, mentions(a.report.Input.Messages))
			return err
		})
	}
	if err == nil {
		a.said.grow = a.showing.Grow
		err = a.guard("the agent", func() error { return a.profile.Agent.Run(ctx, a.report.Input, a.said.emit) })
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errInterrupted), errors.Is(cause, errWithdrawn):
		return cause
	case err != nil && cause != nil:
		return cause
	case a.said.refused != nil:
		return a.said.refused // whatever the agent made of it
	case err == nil && !a.said.answered:
		return errors.New("the agent ended without an answer")
	}
	return err
}

// watch cancels the run once every message of its turn has been deleted. It
// ends with ctx.
func (a *attempt) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.deleted:
			// Where the store can't tell, the end of the run looks once more.
			if withdrawn, err := a.Journal.Withdrawn(ctx, a.run); err == nil && withdrawn {
				a.cancel(errWithdrawn)
			}
		}
	}
}

// guard runs f. A panic is this run's failure, not the process's.
func (a *attempt) guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("a run panicked", "in", what, "agent", a.profile.ID, "run", a.run.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked: %v", what, p)
		}
	}()
	return f()
}

// commit ends the run with the agent's answer.
func (a *attempt) commit(ctx context.Context) error {
	posts, err := a.posts(ctx)
	if err != nil {
		return a.unanswered(ctx, err)
	}
	ended, err := a.commitReply(ctx, journal.Reply{
		Content: a.said.text, AnsweredAt: a.said.first, Posts: posts, Events: a.said.events, Metadata: a.metadata,
		Stale: a.settings.Stale, Interruptible: a.settings.Mode == ModeInterrupt, Send: a.Outbox.Bounds(a.run.Workspace),
	})
	if err != nil {
		return err
	}
	a.report.Outcome, a.report.Reply = outcomes[ended.Outcome], ended.Message
	a.more = ended.More
	switch {
	case ended.Outcome == journal.Committed && len(posts) > 0:
		a.Outbox.Posted(a.run.Thread, ended.Begun)
	case ended.Outcome != journal.Stale:
		a.clears(false)
	}
	return nil
}

// posts are the answer's, with the files that came with it.
func (a *attempt) posts(ctx context.Context) (posts []journal.Post, err error) {
	var files []journal.File
	for _, file := range a.said.files {
		kept, err := a.Files.Put(ctx, file)
		switch {
		case err == nil:
			files = append(files, kept)
		case journal.Unavailable(err):
			return nil, &storeError{err}
		default: // its words are worth more than the file
			a.Log.Error("an agent's file is left out", "agent", a.profile.ID, "run", a.run.ID, "file", file.Name, "err", err)
		}
	}
	err = a.guard("formatting", func() error {
		posts = a.showing.Format(a.said.text, files)
		return nil
	})
	return posts, err
}

// commitReply commits the answer. A store in trouble is waited for as long as the
// work may go on: what the agent has said is not asked for again.
func (a *attempt) commitReply(ctx context.Context, reply journal.Reply) (journal.Ended, error) {
	for {
		ended, err := a.Journal.CommitReply(context.WithoutCancel(ctx), a.lease, a.run, reply)
		if err == nil || ctx.Err() != nil || !journal.Unavailable(err) || errors.Is(err, journal.ErrClosed) {
			return ended, err
		}
		reply.Again = reply.Again || errors.Is(err, journal.ErrUnclear)
		a.pause(ctx, "commit a reply", err)
	}
}

var outcomes = map[journal.ReplyOutcome]Outcome{
	journal.Committed:   Answered,
	journal.Stale:       Rerun,
	journal.Dropped:     Dropped,
	journal.Withdrawn:   Canceled,
	journal.Interrupted: Interrupted,
}

// metadata is the reply's own, in the contract's terms and with its run's figures.
func (a *attempt) metadata(messageID string, latency time.Duration) ([]byte, error) {
	runID, err := json.Marshal(a.run.ID)
	if err != nil {
		return nil, err
	}
	m := event.Metadata{
		Source: string(a.run.Platform), SenderID: "agent:" + a.run.Agent, SenderDisplayName: a.run.Agent, SenderType: event.Bot,
		Extra: []event.Extra{
			{Key: "run_id", Value: runID},
			{Key: "stage", Value: []byte(`"answer"`)},
			{Key: "latency_ms", Value: strconv.AppendInt(nil, latency.Milliseconds(), 10)},
			{Key: "message_id", Value: []byte(`"` + messageID + `"`)}, // a UUID
		},
	}
	return m.Bytes(), nil
}

// unanswered ends, or puts off, a run that has no answer.
func (a *attempt) unanswered(ctx context.Context, cause error) error {
	var store *storeError
	switch stored := context.WithoutCancel(ctx); {
	case errors.Is(cause, errWithdrawn):
		a.report.Outcome = Canceled
		defer a.clears(false)
		return a.Journal.CancelRun(stored, a.lease, a.run, cause.Error())
	case errors.Is(cause, errInterrupted):
		a.report.Outcome = Interrupted
		defer a.clears(false)
		return a.Journal.InterruptRun(stored, a.lease, a.run)
	case ctx.Err() != nil:
		a.report.Outcome = LeftOff // asked again when the daemon starts
		return nil
	case errors.As(cause, &store):
		return cause // asked again when the store is back
	default:
		return a.failed(stored, cause)
	}
}

// failed counts a failed attempt: another one follows, or the thread hears of it.
func (a *attempt) failed(ctx context.Context, cause error) error {
	a.report.Err = cause
	a.Log.Warn("a run failed", "agent", a.profile.ID, "workspace", a.run.Workspace, "run", a.run.ID, "attempt", a.run.Attempts+1, "err", cause)
	if int(a.run.Attempts)+1 >= a.settings.MaxAttempts || isPermanent(cause) {
		return a.fail(ctx, cause)
	}
	at := a.Now().Add(backoff(a.run.Attempts))
	if err := a.Journal.RetryRun(ctx, a.lease, a.run, at, cause); err != nil {
		return err
	}
	a.report.Outcome = Retried
	a.Desk.WakeAt(journal.Turns, a.profile.ID, at)
	return nil
}

// backoff is the wait after so many failures and one more: 1 s, 4 s, 16 s, a minute.
func backoff(failures int64) time.Duration {
	return min(time.Second<<(2*min(failures, 3)), maxBackoff)
}

// fail ends the run for good, with one sentence to the thread.
func (a *attempt) fail(ctx context.Context, cause error) error {
	notice, err := a.notice(apology(cause))
	if err != nil {
		a.Log.Error("tell a thread that its run failed", "run", a.run.ID, "err", err)
	}
	a.report.Outcome = Failed
	if err := a.Journal.FailRun(ctx, a.lease, a.run, cause, notice, a.said.events); err != nil {
		return err
	}
	a.clears(len(notice) > 0)
	return nil
}

func (a *attempt) notice(text string) (posts []journal.Post, err error) {
	err = a.guard("formatting", func() (err error) {
		posts, err = a.Outbox.Notice(a.run, text)
		return err
	})
	return posts, err
}

// clears sees to it that what the run has shown is taken away, now that it has ended,
// and that what it has said is posted.
func (a *attempt) clears(posts bool) {
	if posts || a.run.Previews > 0 || a.run.Sign != "" {
		a.Outbox.Posted(a.run.Thread, nil)
	}
}

// apology is what the people in the thread read. The operator has the cause.
func apology(cause error) string {
	if errors.Is(cause, errTimeout) {
		return "Sorry, I couldn't answer this in time. Please ask again later."
	}
	return "Sorry, something went wrong while I was answering this. Please ask again later."
}

// permanent marks a failure that another attempt can't mend.
type permanent struct{ error }

// Temporary says so.
func (permanent) Temporary() bool { return false }

// isPermanent says whether an agent's error tells that trying again is of no use.
func isPermanent(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && !e.Temporary()
}
