package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/assembly"
	"parley/assembly/stream"
	"parley/ingest/journal"
)

// Settings are what holds in one channel.
type Settings struct {
	Config
	Window assembly.Window
}

// Profile is an agent with the bounds of one run.
type Profile struct {
	ID    string
	Agent Agent
	// Timeout bounds one run; MaxBytes what is kept of its text.
	Timeout  time.Duration
	MaxBytes int64
}

// Outbox shows a run while it goes on, turns its reply into posts, and sends them;
// package deliver does.
type Outbox interface {
	// Show begins to show that the run goes on. Mentions are the tokens that its
	// answer may use. What it does ends with ctx at the latest.
	Show(ctx context.Context, lease *journal.Lease, run *journal.Run, mentions []string) (Showing, error)
	// Notice is what tells the asker of a run something that is no reply. No posts
	// means that nobody can be told.
	Notice(run *journal.Run, text string) ([]journal.Post, error)
	// Bounds are those of a workspace's posts; nil where it has none.
	Bounds(workspace string) *journal.Send
	// Posted says that a thread has deliveries now. The first one may be marked
	// as being sent already; it is nil otherwise.
	Posted(thread int64, begun *journal.Delivery)
}

// Showing is a run that is shown while it goes on.
type Showing interface {
	// Grow takes the next piece of the growing answer. It never waits.
	Grow(text string)
	// Stop ends the showing: nothing of it is written to the journal any more when it
	// returns. It may be called again.
	Stop()
	// Format converts and splits an answer for the thread's platform, once Stop was
	// called. No posts means that the reply needs none: its reader takes it from the
	// journal.
	Format(text string, files []journal.File) []journal.Post
}

// Files keeps what comes with messages and with answers.
type Files interface {
	// Keep copies the attachment, if that was not done yet, and returns how it
	// stands. It never fails: what can't be had is unavailable.
	Keep(ctx context.Context, workspace string, attachment journal.Attachment) journal.Attachment
	// Put keeps a file that an agent has made.
	Put(ctx context.Context, file stream.File) (journal.File, error)
}

// Past reads what was said in a thread before the journal knew it; package ingest does.
type Past interface {
	// Preface stores, before a thread's first turn, its root and the newest few of
	// its messages, where they are not known, and sets run.Preface. It takes a few
	// seconds at the most, and nothing where the thread began with a message of the
	// run. An error is the store's or ctx's: a platform that can't be read is a gap.
	Preface(ctx context.Context, lease *journal.Lease, run *journal.Run, newest int) error
}

// Observer sees how each attempt of a run ended: for metrics, and for replay.
// It is called concurrently.
type Observer interface {
	RunEnded(run *journal.Run, report Report)
}

// Outcome is how one attempt of a run ended.
type Outcome string

// The outcomes.
const (
	Answered    Outcome = "answered"
	Retried     Outcome = "retried"     // it failed, and will be tried again
	Failed      Outcome = "failed"      // it failed for the last time
	Canceled    Outcome = "canceled"    // its messages were deleted
	Interrupted Outcome = "interrupted" // a newer message begins it again
	Rerun       Outcome = "rerun"       // stale, asked again
	Dropped     Outcome = "dropped"     // stale, kept and not sent
	LeftOff     Outcome = "left"        // the daemon stops, or lost the thread
)

// Report is one attempt of a run.
type Report struct {
	Outcome Outcome
	Input   assembly.Input
	Reply   *journal.Message // of Answered
	Err     error
	Took    time.Duration
}

// Parts are what a Runner works with.
type Parts struct {
	Journal  *journal.Journal
	Desk     *journal.Desk
	Outbox   Outbox
	Files    Files
	Past     Past // nil where there is none
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
	// Settings resolves what holds in a workspace's channel.
	Settings func(workspace, channel string) Settings
	// Profile finds an agent; false where it is not configured any more.
	Profile func(agent string) (Profile, bool)
}

// Runner takes the turns that are due and asks their agents.
type Runner struct {
	Parts

	mu     sync.Mutex
	going  map[int64]*going // by thread
	handed map[int64]*going // begun with their message, and not taken up yet; by thread
}

// New returns a Runner that serves nobody yet; see Serve.
func New(p Parts) *Runner {
	return &Runner{Parts: p, going: map[int64]*going{}, handed: map[int64]*going{}}
}

// Serve runs the turns of one agent, so many at once: it takes new ones until
// ctx ends, and then waits for those that are going on, which end with work.
func (r *Runner) Serve(ctx, work context.Context, agent string, slots int) error {
	lane := journal.Lane{Work: journal.Turns, Agent: agent, Slots: slots}
	return r.Desk.Serve(ctx, lane, func(_ context.Context, lease *journal.Lease) {
		for ctx.Err() == nil && r.turn(work, lease, agent) {
			continue
		}
	})
}

// turn takes the thread's next turn, if one is due, and sees it to an end. It
// returns whether it may be called again at once.
func (r *Runner) turn(ctx context.Context, lease *journal.Lease, agent string) bool {
	profile, ok := r.Profile(agent)
	if !ok {
		r.pause(ctx, "find an agent", fmt.Errorf("%q is not configured", agent))
		return false
	}
	asking, g := r.enter(ctx, lease)
	defer r.exit(lease.Thread, g)
	run := g.run
	if run == nil {
		var err error
		if run, err = r.Journal.BeginRun(ctx, lease, profile.ID, r.each); err != nil || run == nil {
			return r.left(ctx, lease, "begin a run", err)
		}
	}
	run.Agent = profile.ID // who has taken over the threads of an agent that is gone
	a := &attempt{
		Runner: r, going: g, lease: lease, run: run, profile: profile,
		settings: r.Settings(run.Workspace, run.Channel), said: collector{limit: profile.MaxBytes, now: r.Now},
	}
	interruptible := a.settings.Mode == ModeInterrupt
	if run.NotBefore.After(r.Now()) {
		return r.putOff(ctx, lease, run, interruptible)
	}
	g.begun(run, interruptible)
	if run.Claims > maxClaims {
		again := false
		r.Desk.Alone(func() { again = a.make(ctx, asking) })
		return again
	}
	return a.make(ctx, asking)
}

// putOff leaves a run whose next attempt is not due: a message that came during
// its backoff has woken the thread.
func (r *Runner) putOff(ctx context.Context, lease *journal.Lease, run *journal.Run, interruptible bool) bool {
	interrupted, err := r.Journal.PutOffRun(ctx, lease, run, run.NotBefore, interruptible)
	if err != nil {
		return r.left(ctx, lease, "put off a run", err)
	}
	r.Desk.WakeAt(journal.Turns, run.Agent, run.NotBefore)
	return interrupted
}

// left leaves the thread's turn as it is: it was lost, or the store is in trouble.
func (r *Runner) left(ctx context.Context, lease *journal.Lease, what string, err error) bool {
	if errors.Is(err, journal.ErrFenced) {
		r.Desk.Lost(lease)
	} else if err != nil {
		r.pause(ctx, what, err)
	}
	return false
}

// each says whether every message of a channel is a turn of its own. What
// interrupts a run joins it, and so is none.
func (r *Runner) each(workspace, channel string) bool {
	settings := r.Settings(workspace, channel)
	return settings.Coalesce == 0 && settings.Mode != ModeInterrupt
}

// Recorded implements ingest.Turns.
func (r *Runner) Recorded(thread int64, agent string, outcome journal.Outcome) {
	r.signal(thread, outcome)
	if outcome.Begun != nil {
		r.hand(outcome.Begun)
	}
	switch {
	case outcome.TurnDue.IsZero() || outcome.Pending > 0: // a run begins once its thread's intake is done
	case outcome.TurnDue.After(r.Now()):
		r.Desk.WakeAt(journal.Turns, agent, outcome.TurnDue)
	default:
		r.Desk.Wake(journal.Turns, agent, thread)
	}
}

// pause leaves what is in trouble alone for a moment.
func (r *Runner) pause(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	r.Log.Warn("a turn waits", "what", what, "err", err)
	select {
	case <-ctx.Done():
	case <-time.After(storePause):
	}
}

// storePause is how long a turn waits for a store that refuses a commit, or for
// an agent that the configuration does not have.
const storePause = 250 * time.Millisecond
