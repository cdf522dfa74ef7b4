// Package deliver writes an agent's stream into a chat as readable messages.
//
// A delivery is stored in the journal before its call, under a key whose text never
// changes, and is marked as sending before the call begins. If the outcome of a call is
// unclear, the outbox asks the platform before it sends the delivery again.
//
// During a run, a LivePreview may show the growing answer in posts that are previews. The
// journal holds the first text of each preview, so that the preview is found again after
// a crash, but not its later texts. The answer's final posts take over the previews'
// posts one by one. Each final post states its whole text again, unless the platform is
// known to show that text: the final text always wins.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/wake"
	"parley/ingest/work"
)

const (
	// workers is the number of threads whose deliveries are processed concurrently. A workspace gets
	// a share of them, so that a platform that hangs delays only its own posts.
	workers = 256
	// readBackAfter is the time between the end of a call and the query whether it took
	// effect: a request may take effect after its caller has given up.
	readBackAfter = 5 * time.Second
	// lateStart bounds the time between the mark as sending and the begin of the call.
	lateStart = 2 * time.Second
	// maxAge bounds how long a delivery that the platform does not take is tried.
	maxAge = 24 * time.Hour
	// minRetryAfter is the shortest wait after a rate limit.
	minRetryAfter = time.Second
	// longRest is the shortest wait after a rate limit that the log names.
	longRest = 5 * time.Second
	// maxBackoff bounds the wait between two attempts. It is also the wait of a delivery
	// whose workspace is not configured.
	maxBackoff = time.Minute
	// readBackFor bounds how long the outbox asks the platform before it treats the
	// outcome as unknown.
	readBackFor = 20 * time.Minute
	// maxResends bounds the calls of a delivery whose outcome is unknown, because its
	// readers may see each of them.
	maxResends = 3
	// margin is the time that is added to the interval between two posts, which their
	// rate demands. Calls that begin evenly arrive less evenly, and the clocks of two
	// nodes differ by some milliseconds. With the margin, a platform that counts strictly
	// refuses no post.
	margin = 1.02
	// storeTime bounds how long a post that has arrived waits for a failing store. After
	// that, the outbox asks the platform.
	storeTime = time.Minute
)

// mark begins a text that readers may see twice.
const mark = "(sent again, since it is not known whether it arrived) "

// Platform sends the posts of a workspace.
type Platform struct {
	// Sender is nil if replies are read from the journal.
	Sender adapters.Sender
	Limits adapters.Limits
	// Unknown returns the policy of a delivery's channel for an unknown outcome.
	Unknown func(*outbox.Delivery) string
	// Beside reports whether the answers in a channel have the destination of Of.Beside; nil if none has.
	Beside func(channel, parent string) bool
	// Shows reports whether the state posts of an agent's runs show some messages, by a name of turn.Shown; nil for all.
	Shows func(agent, messages string) bool
	// Of describes the platform, and Agent returns the agent of a channel; for posts of programs.
	Of    adapters.Platform
	Agent func(channel string) string
	// Page is the address of a page that shows a thread if its UUID is appended; empty for none.
	Page string
}

// Observer sees each call about a delivery, its final state, and the first post of each run. It is called concurrently.
type Observer interface {
	// Sending returns the context of a call about a delivery.
	Sending(ctx context.Context, d *outbox.Delivery) context.Context
	// Delivery is called when a delivery has its final state, when a preview has its last text, and after each call that has changed a state
	// post.
	Delivery(d *outbox.Delivery, state outbox.State)
	// Answered is called when the first post of a run is on the platform. asked is when the oldest message that
	// the run answers was accepted.
	Answered(workspace string, asked time.Time)
}

// Parts are the collaborators of an Outbox.
type Parts struct {
	Deliveries *outbox.Outbox
	Records    *record.Recorder
	Runs       *runs.Runs
	Threads    *threads.Threads
	Work       *work.Scheduler
	// Platform finds the platform of a workspace. It returns the zero Platform and false
	// if the workspace is not configured.
	Platform func(workspace string) (Platform, bool)
	Files    Files
	// Hook returns the address of a program that gets the answers to its messages, as event.InjectedBy names it; nil for none.
	Hook func(by string) (Hook, bool)
	// Caller returns the program that sends messages of a web workspace in its own name, in the same form; nil for none.
	Caller func(workspace, sender string) (by string, ok bool)
	// Paused returns the error of a program that posts in a channel where an operator has paused the agent; nil for none.
	Paused   func(workspace, channel, parent, agent string) error
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
}

// Outbox sends the journal's deliveries.
type Outbox struct {
	Parts
	programs *http.Client // calls the programs that get answers, and follows no redirects
	resting  sync.Map     // the end of the last rest that was logged, a time.Time, by workspace
	unclears sync.Map     // see unclear, an *atomic.Int64, by workspace
}

// New returns an Outbox that sends nothing yet; see Run.
func New(p Parts) *Outbox {
	return &Outbox{Parts: p, programs: httpcall.NewClient(httpcall.NewTransport())}
}

// bounds returns the bounds of a workspace's posts.
func bounds(limits adapters.Limits) outbox.Send {
	send := outbox.Send{Timeout: limits.Timeout}
	if limits.PostRate > 0 {
		send.Every = time.Duration(margin * float64(time.Second) / limits.PostRate)
	}
	return send
}

// begunDelivery holds the delivery of a claim that was marked as sending when its run ended.
var begunDelivery = work.Slot[*outbox.Delivery]{Key: "begun"}

// Posted implements turn.Outbox: a thread has deliveries. The first one may be marked
// as sending already.
func (o *Outbox) Posted(c *work.Claim, begun *outbox.Delivery) {
	if begun != nil {
		begunDelivery.Put(c, begun)
	}
	o.Work.Wake(work.Deliveries, "", c.Thread)
}

// Run sends until ctx ends. Then it makes the calls of the deliveries that are marked as
// sending, and waits for the calls in progress. All calls end with calling.
func (o *Outbox) Run(ctx, calling context.Context) error {
	begun := func(c *work.Claim) bool { return begunDelivery.Get(c) != nil }
	return o.Work.Serve(ctx, work.Queue{Kind: work.Deliveries, Slots: workers, Drain: true, Bound: o.share, Fair: true, Begun: begun, Do: func(_ context.Context, c *work.Claim) error {
		for {
			more, err := o.next(calling, c)
			switch {
			case errors.Is(err, outbox.ErrDelivered): // a preview, or another node, was faster; read it again
			case err != nil || !more:
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
		}
	}})
}

// next advances the thread's first delivery by one step. It returns whether the thread
// may have more to do.
func (o *Outbox) next(ctx context.Context, c *work.Claim) (more bool, err error) {
	now := o.Now()
	d := begunDelivery.Take(c)
	begun := d != nil
	if !begun {
		if d, err = o.Deliveries.NextDelivery(ctx, c.Thread); err != nil || d == nil {
			return false, err
		}
		if d.DueAt.After(now) {
			o.Work.WakeAt(work.Deliveries, "", d.DueAt)
			return false, nil
		}
	}
	platform := o.platformOf(d)
	switch {
	case platform.Sender == nil: // its state stays: the call of a sending delivery may have taken effect
		return true, o.Deliveries.AwaitReadBack(ctx, d, now.Add(maxBackoff), "the workspace is not configured")
	case event.PersonOf(d.ThreadKey) != "":
		return o.open(ctx, c, d, platform)
	case d.State == outbox.Sending && !begun:
		return o.readBack(ctx, c, d, platform)
	case d.States() && !d.Frozen():
		if sends, err := o.prepare(ctx, d, platform); err != nil || !sends {
			return true, err
		}
	}
	if err := o.address(ctx, d, platform, begun); err != nil {
		return true, err
	}
	return o.begin(ctx, c, d, platform)
}

// begin makes the call of a delivery that is due, if the channel's pace allows it now.
// The run's end may have marked the delivery as sending already.
func (o *Outbox) begin(ctx context.Context, c *work.Claim, d *outbox.Delivery, platform Platform) (more bool, err error) {
	at, stands := earlier(c, d)
	switch {
	case at.After(o.Now()):
		return true, o.Deliveries.Resend(ctx, d, at, "an earlier call about the same post may still take effect")
	case stands: // it does not count against the pace
		return o.sent(ctx, c, d, d.Replaces.PlatformID)
	}
	if d.State == outbox.Pending {
		slot, err := o.Deliveries.BeginSend(ctx, &c.Claim, d, bounds(platform.Limits))
		if err != nil || !slot.Wait.IsZero() {
			return true, err
		}
		d.SendBy, d.Attempts = slot.SendBy, d.Attempts+1
	}
	var id string
	err = o.call(ctx, platform, d, d.SendBy, func(ctx context.Context) (err error) {
		id, err = o.put(ctx, c, d, platform)
		return err
	})
	if err != nil {
		return true, o.failed(context.WithoutCancel(ctx), d, platform, err)
	}
	return o.sent(ctx, c, d, id)
}

// call runs f, which calls the platform about a delivery, with a deadline on the store's
// clock. This node's clock may differ. It does not run f if a part of the call's time has
// passed already: a late request may take effect after another caller has asked whether
// it did. A panic is a failure of f, not of the process, and its outcome is unclear.
func (o *Outbox) call(ctx context.Context, platform Platform, d *outbox.Delivery, sendBy time.Time, f func(ctx context.Context) error) (err error) {
	left := sendBy.Sub(o.Now())
	calling, cancel := context.WithTimeout(o.Observer.Sending(ctx, d), left)
	defer cancel()
	defer adapters.Recover(o.Log, &err, "about", d.Key)
	if calling.Err() != nil || left < platform.Limits.Timeout-lateStart {
		return errLate
	}
	defer func() { o.note(ctx, d.Workspace, err) }()
	if err = f(calling); isFailure(err, adapters.RateLimited) {
		o.rest(context.WithoutCancel(ctx), d, failureOf(err))
	}
	return err
}

// rest makes the posts in the scope of a rate limit wait. The adapter itself refuses
// further calls of a method.
func (o *Outbox) rest(ctx context.Context, d *outbox.Delivery, limit *adapters.SendError) {
	o.logRest(d.Workspace, limit)
	channel := d.Post.Channel
	switch limit.Scope {
	case adapters.ScopeMethod:
		return
	case adapters.ScopeWorkspace:
		channel = ""
	}
	if err := o.Deliveries.HoldUp(ctx, d.Workspace, channel, o.Now().Add(pauseAfter(limit, 0))); err != nil {
		o.Log.Warn("a rate limit cannot be recorded", "workspace", d.Workspace, "err", err)
	}
}

// logRest logs a long wait after a rate limit. A workspace has one entry until the wait ends.
func (o *Outbox) logRest(workspace string, limit *adapters.SendError) {
	now := o.Now()
	last, _ := o.resting.Load(workspace)
	if end, _ := last.(time.Time); limit.RetryAfter < longRest || end.After(now) {
		return
	}
	o.resting.Store(workspace, now.Add(limit.RetryAfter))
	o.Log.Warn("the platform limits the rate of our calls; posts wait", "workspace", workspace, "wait", limit.RetryAfter, "err", limit.Err)
}

// pauseAfter returns the wait after a failed call: the wait that a rate limit asks for, and
// otherwise another one.
func pauseAfter(failure *adapters.SendError, otherwise time.Duration) time.Duration {
	if failure.Failure != adapters.RateLimited {
		return otherwise
	}
	return max(failure.RetryAfter, minRetryAfter)
}

// errLate is the error of a call that did not begin.
var errLate = &adapters.SendError{Failure: adapters.NotSent, Err: errors.New("too little of the call's time was left to begin it")}

// sent records that a delivery has arrived. It waits for a failing store, until storeTime
// has passed.
func (o *Outbox) sent(ctx context.Context, c *work.Claim, d *outbox.Delivery, id string) (more bool, err error) {
	postSlot(d).Take(c)
	ctx = context.WithoutCancel(ctx)
	err = work.Insist(ctx, storeTime, func() (err error) {
		if d.States() {
			return o.sentState(ctx, d, id)
		}
		if err = o.openUnder(ctx, d, id); err == nil {
			more, err = o.Deliveries.Sent(ctx, d, id)
		}
		return err
	})
	switch {
	case err == nil:
		o.observe(d, outbox.Sent)
	case !storage.Unavailable(err):
		return true, o.giveUp(ctx, d, outbox.Unknown, fmt.Errorf("sent as %q, which cannot be recorded: %w", id, err))
	}
	return more || d.States(), err
}

// failed handles a failed call.
func (o *Outbox) failed(ctx context.Context, d *outbox.Delivery, platform Platform, cause error) error {
	now := o.Now()
	failure := failureOf(cause)
	unclear := failure.Failure == adapters.Unclear && !platform.isOnce(d)
	switch {
	case failure.Failure == adapters.Permanent && takesOver(d):
		return o.Deliveries.Repost(ctx, d, cause.Error())
	case failure.Failure == adapters.Permanent && d.Kind == outbox.KindRestate && now.Sub(d.CreatedAt) < maxStateAge:
		return o.restateLater(ctx, d, failure)
	case failure.Failure == adapters.Permanent:
		return o.refused(ctx, d, failure)
	case !unclear && now.Sub(d.CreatedAt) > maxAge:
		return o.giveUp(ctx, d, outbox.Failed, cause)
	case unclear && d.Kind == outbox.KindTell:
		return o.giveUp(ctx, d, outbox.Unknown, cause)
	case !unclear:
		if failure.Failure != adapters.RateLimited {
			o.Log.Warn("a post was not taken; it is tried again", "workspace", d.Workspace, "delivery", d.Key, "err", cause)
		}
		return o.Deliveries.Resend(ctx, d, now.Add(pauseAfter(failure, backoff(d.Attempts))), cause.Error())
	}
	o.Log.Warn("the outcome of a post is unclear", "workspace", d.Workspace, "delivery", d.Key, "err", cause)
	return o.Deliveries.AwaitReadBack(ctx, d, d.SendBy.Add(readBackAfter), cause.Error())
}

// backoff returns the wait before the next attempt.
func backoff(attempts int64) time.Duration {
	return wake.Backoff(time.Second, maxBackoff, int(attempts)-1)
}

// giveUp ends a delivery that will not be sent, and reports it to the operator.
func (o *Outbox) giveUp(ctx context.Context, d *outbox.Delivery, state outbox.State, cause error) error {
	o.Log.Error("a delivery is given up", "workspace", d.Workspace, "delivery", d.Key, "kind", d.Kind, "state", state, "err", cause)
	return o.end(ctx, d, state, cause.Error())
}

// end ends a delivery that will not be sent.
func (o *Outbox) end(ctx context.Context, d *outbox.Delivery, state outbox.State, cause string) error {
	err := o.Deliveries.GiveUp(ctx, d, state, cause)
	if err == nil {
		o.observe(d, state)
	}
	return err
}

// observe tells of the end of a delivery.
func (o *Outbox) observe(d *outbox.Delivery, state outbox.State) {
	o.Observer.Delivery(d, state)
	if state == outbox.Sent && d.IsRead() && d.Begins() && !d.AskedAt.IsZero() {
		o.Observer.Answered(d.Workspace, d.AskedAt)
	}
}
