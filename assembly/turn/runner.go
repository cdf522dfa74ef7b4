package turn

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/config/secret"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
	"parley/ingest/work"
)

// Settings are a channel's settings.
type Settings struct {
	Config
	Window assembly.Window
	// API says that clients may follow the runs: the growing answer is stored for them.
	API bool
	// MaxConcurrent bounds the workspace's runs on this node at one time; 0 for no bound.
	MaxConcurrent int
	// NoMentions lets no mention in answers take effect. Names also lets @Name mention the one person of that name.
	NoMentions, Names bool
	// KeepInputs stores the inputs of agents.
	KeepInputs bool
	// TimeZone is the workspace's; nil for UTC.
	TimeZone *time.Location
	// Tokens are the workspace's limits, to which the tokens of each attempt count.
	Tokens budgets.Tokens
}

// Profile is an agent with the bounds of one run.
type Profile struct {
	ID    string
	Agent Agent
	// Timeout bounds one run; MaxBytes bounds the text that is stored of it.
	Timeout  time.Duration
	MaxBytes int64
	// AnswerWithin bounds the wait for a later answer.
	AnswerWithin time.Duration
	// Show are the messages that people see during a run, of Shown; nil for DefaultShow.
	Show []string
	// Files is FilesText or FilesNames.
	Files string
	// QuietReply is the answer with which the agent says that it has nothing to say; empty for none.
	QuietReply string
	// ImageHosts are the hosts whose images people see in the agent's cards.
	ImageHosts []string
}

// How the input shows the text files of the messages.
const (
	FilesText  = "text"  // the message contains the words of small files
	FilesNames = "names" // every file is only named
)

// Outbox shows a run while it goes on, converts its reply to posts, and sends them.
// Package deliver implements it.
type Outbox interface {
	// Expect notes that the platform shows signs of work below the run's messages by itself. Any end of the
	// run then removes them.
	Expect(ctx context.Context, c *work.Claim, run *runs.Run)
	// Show begins to show that the run goes on. Mentions are the tokens that its
	// answer may use. The preview ends when ctx ends. Its goroutines are begun with
	// start; the caller waits for them.
	Show(ctx context.Context, c *work.Claim, run *runs.Run, mentions Mentions, start func(func())) (LivePreview, error)
	// Notice returns posts that tell the asker of a run something that is not a
	// reply. It returns no posts if the platform has no way to tell, or if it fails.
	Notice(run *runs.Run, text string) []outbox.Post
	// Posted reports that a thread has deliveries. If begun is not nil, the journal
	// has marked that delivery as sending already.
	Posted(c *work.Claim, begun *outbox.Delivery)
}

// Copier gives answers to the programs whose messages they answer. It is the outbox of the daemon, which imports this package; a replay
// has none.
type Copier interface {
	// Copies returns the copies of the answer to a run.
	Copies(ctx context.Context, run *runs.Run) ([]runs.Copy, error)
	// Copied reports that threads have deliveries of copies.
	Copied(threads []int64)
}

// LivePreview shows one run while it goes on.
type LivePreview interface {
	// Grow takes the next part of the growing answer. It never waits.
	Grow(text string)
	// Note takes a message about the agent's work, which replaces the one before. It never
	// waits.
	Note(text string)
	// Stop ends the preview: after it has returned, the preview writes nothing to
	// the journal. It may be called again.
	Stop()
	// Format converts an answer for the thread's platform and splits it, and returns
	// the bounds of its posts. Stop must have been called. If there are no posts, the
	// reader takes the reply from the journal. The options of ask follow the text. The card, if it is not nil, comes
	// behind it.
	Format(text string, ask stream.Ask, shown *card.View, files []outbox.File) ([]outbox.Post, *outbox.Send)
}

// Files stores the files of messages and of answers.
type Files interface {
	// Keep copies a pending attachment and returns its new state, and how the copying ended; empty if it may be tried
	// again. An attachment that cannot be read becomes unavailable. One that cannot be stored stays pending.
	Keep(ctx context.Context, workspace, sender string, attachment files.Attachment) (files.Attachment, Copying)
	// Open returns the bytes of a stored copy.
	Open(ctx context.Context, bucket, path string) (io.ReadCloser, error)
	// Put stores a file that an agent has made.
	Put(ctx context.Context, file stream.File) (outbox.File, error)
}

// History completes what the journal knows of a thread before a turn.
type History interface {
	// Ready reports whether the thread's next turn may begin, and then whether earlier
	// messages of the thread may be missing in it. If the turn may not begin, missed
	// messages of the thread are being read; wake is called once it may, after some
	// seconds at most. Ready never waits.
	Ready(claim *threads.Claim, wake func()) (ready, gap bool)
	// ReadHistory stores, before a thread's first turn, the thread's root and its newest
	// messages, unless they are stored already, and sets run.History. It takes a few
	// seconds at most, and clears run.Fresh if the run's messages may have changed meanwhile. It does nothing if the thread began with a message of the
	// run. An error is the store's, or that ctx ended: a platform that cannot be read
	// is a gap.
	ReadHistory(ctx context.Context, claim *threads.Claim, run *runs.Run, newest int) error
}

// Tools are the functions of Parley that agents may call while they work on a run.
type Tools interface {
	// Offered returns the functions that the agent of a run may call; none for most agents. missing says in words which ones cannot
	// be offered now. It takes a few seconds at most.
	Offered(ctx context.Context, run *runs.Run) (tools []runinput.Tool, missing []string)
	// Call makes a call and returns its result as JSON, also if something is wrong with the call. A repetition with the
	// same key has no further effect. An error is the store's.
	Call(ctx context.Context, run *runs.Run, key string, call runinput.Call) (result string, err error)
}

// Observer sees the attempts of runs, for metrics, traces and replay. It is called concurrently.
type Observer interface {
	// RunBegins returns the context of an attempt that begins now.
	RunBegins(ctx context.Context, run *runs.Run, now time.Time) context.Context
	RunEnded(run *runs.Run, report Report)
	// WaitingRunEnded is called if a run has ended while it waited for its next attempt.
	WaitingRunEnded(run string, outcome Outcome)
}

// Outcome is the end of one attempt of a run.
type Outcome string

// The outcomes.
const (
	Answered    Outcome = "answered"
	Retried     Outcome = "retried"     // it failed; another attempt follows
	Failed      Outcome = "failed"      // its last attempt failed
	Canceled    Outcome = "canceled"    // its messages were deleted, or a person stopped it
	Interrupted Outcome = "interrupted" // a newer message begins the turn again
	Awaited     Outcome = "awaited"     // the agent has taken the run and answers later
	Rerun       Outcome = "rerun"       // the reply was stale; the agent is asked again
	Dropped     Outcome = "dropped"     // the reply was stale; it is stored and not sent
	Quiet       Outcome = "quiet"       // the agent chose to say nothing
	LeftOff     Outcome = "left"        // the daemon stops, or the store or the claim failed
)

// Report describes one attempt of a run.
type Report struct {
	Outcome Outcome
	Input   assembly.Input
	Reply   *messages.Message // of Answered
	Card    string            // the card of the reply in plain text; empty for none
	CardErr error             // the faults of a card that is not shown; nil for none
	Err     error
	BegunAt time.Time
	Took    time.Duration
	Usage   assembly.Usage
	// Tools are the calls of tools in an attempt whose context has a place in a trace; nil in any other.
	Tools []Tool
	// FirstToken is the time to the agent's first message; 0 if it said nothing.
	FirstToken time.Duration
}

// Workspaces knows what applies to the runs of each workspace. It is called concurrently.
type Workspaces interface {
	// Settings returns the settings of the channel of a place, or those of its workspace if the place has no channel.
	Settings(at threads.Place) Settings
	// Self returns the account of a run's workspace; the zero value if it is unknown.
	Self(run *runs.Run) event.Self
	// Sight returns what the agent of a run sees of the messages of its workspace. It is nil if that is everything.
	Sight(ctx context.Context, run *runs.Run) (*runs.Sight, error)
}

// Agents knows the configured agents. It is called concurrently.
type Agents interface {
	// Profile finds an agent. It returns false if the agent is not configured.
	Profile(id string) (Profile, bool)
	// AgentIDs returns the ids of all agents, so that nobody's name reads like one.
	AgentIDs() []string
}

// Names knows the names of people and places on the platforms. It is called concurrently.
type Names interface {
	// Name returns the name behind a token in the input of a run, such as "<@U06STGBF4Q0>", if it
	// knows the name in time.
	Name(ctx context.Context, run *runs.Run, token string) (name string, known bool)
	// Place returns the names of the place of a run's channel, if it knows them in time.
	Place(ctx context.Context, run *runs.Run) (place event.Place, known bool)
}

// Tokens makes the tokens with which agents use Parley's tools and report about their work. An error is the store's.
type Tokens interface {
	// Token returns the token of the agent of a run, by the run's id.
	Token(ctx context.Context, run string) (secret.Value, error)
	// Push returns the place of reports about a run, by the id that its agent knows; none if we have no address for agents.
	Push(ctx context.Context, known string) (assembly.Push, error)
}

// Parts are the collaborators of a Runner.
type Parts struct {
	Runs        *runs.Runs
	Workstreams *workstreams.Workstreams
	Threads     *threads.Threads
	Deliveries  *outbox.Outbox
	Work        *work.Scheduler
	Outbox      Outbox
	Files       Files
	History     History // nil for none
	Copies      Copier  // nil for none
	Observer    Observer
	Log         *slog.Logger
	Now         func() time.Time
	Workspaces  Workspaces
	Agents      Agents
	// Mentions knows the platforms' mention tokens.
	Mentions assembly.Mentions
	Names    Names  // nil for none
	Tokens   Tokens // nil for none
	// Tools are the functions of Parley that agents may call; nil for none.
	Tools Tools
}

// Runner takes the turns that are due and asks their agents.
type Runner struct {
	Parts
	works sync.Map // *going by thread: the runs that this node works on
	left  sync.Map // leftRun by thread
}

// New returns a Runner that runs no turns yet; see Serve.
func New(p Parts) *Runner { return &Runner{Parts: p} }

// Serve runs the turns of one agent, as many concurrently as there are slots. It
// takes new turns until ctx ends, and then waits for the active runs, which end with
// running.
func (r *Runner) Serve(ctx, running context.Context, agent string, slots int) error {
	var previews sync.WaitGroup
	defer previews.Wait()
	heard := func(thread int64) { previews.Go(func() { r.verify(running, thread) }) }
	bound := func(workspace string) int {
		return r.Workspaces.Settings(threads.Place{Workspace: workspace}).MaxConcurrent
	}
	return r.Work.Serve(ctx, work.Queue{Kind: work.Turns, Agent: agent, Slots: slots, Bound: bound, Heard: heard, Do: func(_ context.Context, c *work.Claim) error {
		for ctx.Err() == nil {
			if more, err := r.turn(running, c, agent, previews.Go); err != nil || !more {
				return err
			}
		}
		return nil
	}})
}

// turn works on the thread's next turn, if one is due. It returns whether the thread
// may have a further turn.
func (r *Runner) turn(ctx context.Context, c *work.Claim, agent string, show func(func())) (more bool, err error) {
	profile, ok := r.Agents.Profile(agent)
	if !ok {
		return false, work.ErrWaits // for its heir, or for a node that has the agent
	}
	if of, ok := r.left.LoadAndDelete(c.Thread); ok {
		left := of.(leftRun)
		r.abandon(ctx, c.Thread, profile, left.run)
		if left.stopped {
			r.Observer.WaitingRunEnded(left.run, Canceled)
		}
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := enter(c, agent)
	if g == nil {
		return false, nil
	}
	defer currentRun.Take(c)
	if g.run == nil {
		g.run, err = r.begin(asking, c, profile.ID)
		if other, ok := errors.AsType[runs.OtherAgentError](err); ok {
			r.Work.Wake(work.Turns, string(other), c.Thread)
			return false, nil
		}
		if errors.Is(err, runs.ErrMissed) {
			r.Work.Wake(work.Intake, "", c.Thread)
			return false, nil
		}
		if g.run == nil {
			return false, err
		}
	}
	run := g.run
	run.Agent = profile.ID // it may have taken over the threads of a removed agent
	a := &attempt{
		Runner: r, going: g, claim: c, profile: profile,
		settings: r.Workspaces.Settings(run.Place), said: collector{limit: profile.MaxBytes, now: r.Now, quiet: profile.QuietReply}, show: show,
	}
	if run.IsScheduled() && profile.QuietReply == "" {
		a.said.quiet = DefaultQuietReply
	}
	a.said.speaks = a.said.quiet == ""
	run.Followed = a.settings.API
	interruptible := a.interruptible()
	switch {
	case run.NotBefore.After(r.Now()): // a message during the backoff has woken the thread
		next, err := r.Runs.EndAttempt(ctx, &c.Claim, run, runs.Unanswered{Interruptible: interruptible})
		if err == nil && next.IsZero() {
			if run.Taken {
				r.abandon(ctx, c.Thread, profile, run.ID)
			}
			r.Observer.WaitingRunEnded(run.ID, Interrupted)
		}
		r.Work.WakeAt(work.Turns, agent, run.NotBefore)
		return err == nil && next.IsZero(), err
	case run.Claims >= envelopes.SuspectClaims && run.Claims < envelopes.DeadClaims && !c.Serial():
		return false, work.ErrSuspect
	}
	r.works.Store(c.Thread, g)
	defer r.works.Delete(c.Thread)
	g.begun(interruptible, cancel)
	return a.make(ctx, asking)
}

// begin begins the thread's next run, or resumes the one that goes on.
func (r *Runner) begin(ctx context.Context, c *work.Claim, agent string) (run *runs.Run, err error) {
	ready, gap := true, false
	if r.History != nil {
		if ready, gap = r.History.Ready(&c.Claim, func() { r.Work.Wake(work.Turns, agent, c.Thread) }); !ready {
			return nil, nil
		}
	}
	most := int64(envelopes.SuspectClaims)
	if c.Serial() {
		most = envelopes.DeadClaims
	}
	run, err = r.Runs.BeginRun(ctx, &c.Claim, agent, gap, r.each, most)
	if run != nil {
		begunRun.Put(c, run.ID)
	}
	return run, err
}

// each reports whether every message of a thread is a turn of its own. A message
// that interrupts a run joins its turn.
func (r *Runner) each(run *runs.Run) bool {
	settings := r.Workspaces.Settings(run.Place)
	return settings.Coalesce == 0 && settings.Mode != ModeInterrupt
}

// Recorded implements ingest.Turns: the thread's intake, whose claim is c, reports a recorded
// event. It never waits.
func (r *Runner) Recorded(c *work.Claim, agent string, result record.Result) {
	report(c, agent, result)
	if result.Stopped != "" && currentRun.Get(c) == nil {
		r.leave(agent, c.Thread, leftRun{result.Stopped, true})
	}
	if result.Unasked != "" {
		r.leave(agent, c.Thread, leftRun{run: result.Unasked})
	}
	if result.Told {
		r.Outbox.Posted(c, nil)
	}
	if result.Begun != nil {
		handedRun.Put(c, newGoing(agent, result.Begun))
	}
	switch {
	case result.TurnDue.IsZero() || result.Pending > 0: // the turn begins after the intake of all envelopes
	case result.TurnDue.After(r.Now()):
		r.Work.WakeAt(work.Turns, agent, result.TurnDue)
	default:
		r.Work.Wake(work.Turns, agent, c.Thread)
	}
}
