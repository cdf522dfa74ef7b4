package turn

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"parley/assembly"
	"parley/assembly/stream"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// maxClaims is how often a run may have been begun by processes that ended
	// before it did, until it is worked on alone.
	maxClaims = 20
	// maxBackoff bounds the wait between two attempts of a run.
	maxBackoff = time.Minute
)

// turn takes the thread's next turn, if one is due, and sees it to an end. It
// returns whether it may be called again at once.
func (r *Runner) turn(ctx context.Context, lease *journal.Lease, agent string) bool {
	profile, ok := r.Profile(agent)
	if !ok {
		return false
	}
	runCtx, g := r.enter(ctx, lease.Thread)
	defer r.exit(lease.Thread, g)
	run, err := r.Journal.BeginRun(ctx, lease, profile.ID, r.each)
	switch {
	case errors.Is(err, journal.ErrFenced):
		r.Desk.Lost(lease.Thread)
		return false
	case err != nil:
		r.pause(ctx, "begin a run", err)
		return false
	case run == nil:
		return false
	}
	if run.Claims > maxClaims {
		again := false
		r.Desk.Alone(func() { again = r.attempt(runCtx, g, lease, run, profile) })
		return again
	}
	return r.attempt(runCtx, g, lease, run, profile)
}

// each says whether every message of a channel is a turn of its own. What
// interrupts a run joins it, and so is none.
func (r *Runner) each(workspace, channel string) bool {
	settings := r.Settings(workspace, channel)
	return settings.Coalesce == 0 && settings.Mode != ModeInterrupt
}

// attempt is one asking of the agent.
type attempt struct {
	*Runner
	ctx      context.Context // the run's own: ends when it is interrupted or withdrawn
	lease    *journal.Lease
	run      *journal.Run
	profile  Profile
	settings Settings
	begun    time.Time

	report Report
	said   collector
}

func (r *Runner) attempt(ctx context.Context, g *going, lease *journal.Lease, run *journal.Run, profile Profile) bool {
	a := &attempt{Runner: r, ctx: ctx, lease: lease, run: run, profile: profile,
		settings: r.Settings(run.Workspace, run.Channel), begun: r.Now(), said: collector{limit: profile.MaxBytes, now: r.Now}}
	g.begun(run, a.settings.Mode == ModeInterrupt)
	err := a.ask()
	if err == nil {
		err = a.commit()
	} else {
		err = a.unanswered(err)
	}
	a.report.Took = r.Now().Sub(a.begun)
	switch {
	case errors.Is(err, journal.ErrFenced):
		r.Desk.Lost(lease.Thread)
		a.report.Outcome = LeftOff
	case err != nil:
		a.report.Outcome, a.report.Err = LeftOff, err
		r.pause(context.WithoutCancel(ctx), "end a run", err)
	}
	r.Observer.RunEnded(run, a.report)
	return err == nil && a.report.Outcome != LeftOff && a.report.Outcome != Retried
}

// ask assembles the input and runs the agent.
func (a *attempt) ask() (err error) {
	if len(a.run.Messages) == 0 {
		return errWithdrawn
	}
	if a.run.Claims > maxClaims+1 {
		return permanent{fmt.Errorf("the process ended %d times during this run", a.run.Claims-1)}
	}
	ctx, cancel := context.WithTimeoutCause(a.ctx, a.profile.Timeout, errTimeout)
	defer cancel()
	if a.report.Input, err = a.input(ctx); err != nil {
		return err
	}
	err = a.callAgent(ctx)
	if cause := context.Cause(ctx); cause != nil && (err != nil || !errors.Is(cause, context.Canceled)) {
		return cause // but an answer that came before the daemon stops counts
	}
	if err == nil && !a.said.answered {
		err = errors.New("the agent ended without an answer")
	}
	return err
}

var errTimeout = errors.New("the agent did not answer in time")

// callAgent runs the agent. A panic is this run's failure, not the process's.
func (a *attempt) callAgent(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("an agent panicked", "agent", a.profile.ID, "run", a.run.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the agent panicked: %v", p)
		}
	}()
	return a.profile.Agent.Run(ctx, a.report.Input, a.said.emit)
}

// commit ends the run with the agent's answer.
func (a *attempt) commit() error {
	posts, err := a.Outbox.Format(a.run.Workspace, a.run.ThreadKey, a.said.text)
	if err != nil {
		return a.unanswered(err)
	}
	ctx := context.WithoutCancel(a.ctx)
	ended, err := a.Journal.CommitReply(ctx, a.lease, a.run, journal.Reply{
		Content: a.said.text, AnsweredAt: a.said.first, Posts: posts, Events: a.said.events, Metadata: a.metadata,
		Stale: a.settings.Stale, Interruptible: a.settings.Mode == ModeInterrupt,
	})
	if err != nil {
		return err
	}
	a.report.Outcome, a.report.Reply = outcomes[ended.Outcome], ended.Message
	if ended.Outcome == journal.Committed && len(posts) > 0 {
		a.Desk.Wake(journal.Deliveries, "", a.run.Thread)
	}
	return nil
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
	m := event.Metadata{
		Source: string(a.run.Platform), SenderID: "agent:" + a.run.Agent, SenderDisplayName: a.run.Agent, SenderType: event.Bot,
		Extra: []event.Extra{
			{Key: "run_id", Value: fmt.Appendf(nil, "%q", a.run.ID)},
			{Key: "stage", Value: []byte(`"answer"`)},
			{Key: "latency_ms", Value: fmt.Appendf(nil, "%d", latency.Milliseconds())},
			{Key: "message_id", Value: fmt.Appendf(nil, "%q", messageID)},
		},
	}
	return m.Bytes(), nil
}

// unanswered ends, or puts off, a run that has no answer.
func (a *attempt) unanswered(cause error) error {
	ctx := context.WithoutCancel(a.ctx)
	switch {
	case errors.Is(cause, errWithdrawn):
		a.report.Outcome = Canceled
		return a.Journal.CancelRun(ctx, a.lease, a.run, cause.Error())
	case errors.Is(cause, errInterrupted):
		a.report.Outcome = Interrupted
		return a.Journal.InterruptRun(ctx, a.lease, a.run)
	case errors.Is(cause, context.Canceled), journal.Unavailable(cause):
		a.report.Outcome = LeftOff // asked again when the daemon starts, or the store is back
		return nil
	}
	a.report.Err = cause
	a.Log.Warn("a run failed", "agent", a.profile.ID, "workspace", a.run.Workspace, "run", a.run.ID, "attempt", a.run.Attempts+1, "err", cause)
	if int(a.run.Attempts)+1 < a.settings.MaxAttempts && !isPermanent(cause) {
		a.report.Outcome = Retried
		at := a.Now().Add(min(time.Second<<(2*a.run.Attempts), maxBackoff))
		a.Desk.WakeAt(journal.Turns, a.profile.ID, at)
		return a.Journal.RetryRun(ctx, a.lease, a.run, at, cause)
	}
	return a.fail(ctx, cause)
}

// fail ends the run for good, with one sentence to the thread.
func (a *attempt) fail(ctx context.Context, cause error) error {
	notice, err := a.Outbox.Format(a.run.Workspace, a.run.ThreadKey, apology(cause))
	if err != nil {
		a.Log.Error("tell a thread that its run failed", "run", a.run.ID, "err", err)
	}
	a.report.Outcome = Failed
	if err := a.Journal.FailRun(ctx, a.lease, a.run, cause, notice, a.said.events); err != nil {
		return err
	}
	if len(notice) > 0 {
		a.Desk.Wake(journal.Deliveries, "", a.run.Thread)
	}
	return nil
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

// input assembles what the agent is given.
func (a *attempt) input(ctx context.Context) (assembly.Input, error) {
	window := a.settings.Window
	turns, err := a.Journal.Transcript(ctx, a.run, journal.Window{Turns: window.Turns, Bytes: window.Bytes, Context: window.Thread})
	if err != nil {
		return assembly.Input{}, err
	}
	a.keepFiles(ctx, &turns[len(turns)-1])
	input := assembly.Input{ThreadID: a.run.ThreadID, RunID: a.run.ID}
	lines, err := a.lines(turns)
	if err != nil {
		return input, err
	}
	input.Messages = assembly.Assemble(a.run.Agent, lines, window)
	for _, m := range turns[len(turns)-1].Messages {
		said := assembly.Said{Content: m.Content}
		for _, file := range m.Attachments {
			said.Files = append(said.Files, file.Name)
		}
		input.Said = append(input.Said, said)
	}
	return input, nil
}

// keepFiles copies the files of the turn's own messages before they are needed.
func (a *attempt) keepFiles(ctx context.Context, current *journal.Turn) {
	for i := range current.Messages {
		for k, file := range current.Messages[i].Attachments {
			current.Messages[i].Attachments[k] = a.Files.Keep(ctx, a.run.Workspace, file)
		}
	}
}

// collector gathers what an agent says, within bounds.
type collector struct {
	limit    int64
	now      func() time.Time
	text     string
	answered bool
	streamed []byte
	events   []stream.Message
	first    time.Time
	bytes    int64
}

// maxEvents bounds what is kept of one run beside its answer.
const maxEvents = 1000

// emit takes one message. Chunks are kept only until the answer replaces them.
func (c *collector) emit(m stream.Message) error {
	if c.first.IsZero() {
		c.first = c.now()
	}
	if c.bytes += int64(len(m.Text) + len(m.Details)); c.bytes > 2*c.limit { // chunks, and the answer that repeats them
		return permanent{fmt.Errorf("the agent said more than %d bytes", c.limit)}
	}
	main := m.Workstream == "" || m.Workstream == stream.Main
	if m.Type == stream.StreamingChunk {
		if main {
			c.streamed = append(c.streamed, m.Text...)
		}
		return nil
	}
	if m.Time.IsZero() {
		m.Time = c.now()
	}
	if len(c.events) < maxEvents {
		c.events = append(c.events, m)
	}
	if main && m.Type == stream.Answer {
		c.text, c.answered = event.Text(m.Text), true
	}
	if main && m.Type == stream.Complete && !c.answered && (m.Text != "" || len(c.streamed) > 0) {
		c.text, c.answered = event.Text(m.Text), true
		if m.Text == "" {
			c.text = event.Text(string(c.streamed))
		}
	}
	return nil
}
