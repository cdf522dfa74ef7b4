// Package deliver writes an agent's stream into a chat as readable messages.
//
// What is posted stands in the journal's outbox before, under a key that never
// changes its text, and is marked as being sent before the call. After a call
// with no clear end nobody posts again before the platform was asked.
//
// While an answer grows, a Showing may show it in posts that are previews: the
// first text of each is in the journal, so that it is found again after a crash;
// what follows is not. The answer's own posts then take the previews' places, one
// by one, and state the whole text again wherever it is not known for sure that
// it stands there: the final text always wins.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/journal"
)

const (
	// workers is how many threads' deliveries are worked on at once.
	workers = 256
	// readBackAfter is how long after the end of a call the platform is asked
	// what became of it: a request may take effect after its caller has gone.
	readBackAfter = 5 * time.Second
	// lateStart is how long after it was marked as being sent a call may begin.
	lateStart = 2 * time.Second
	// maxAge is how long a delivery that the platform does not take is tried.
	maxAge = 24 * time.Hour
	// minRetryAfter is how long a channel rests after a refusal that tells no time.
	minRetryAfter = time.Second
	// maxBackoff bounds the wait between two tries.
	maxBackoff = time.Minute
	// readBackFor is how long the platform is asked before the outcome is unknown.
	readBackFor = 20 * time.Minute
	// maxResends is how many tries a delivery may have had and still be sent again
	// though nobody knows whether it arrived: its readers may have it that often.
	maxResends = 3
	// unconfigured is how long a delivery of a workspace that is not configured
	// any more waits before it is looked at again.
	unconfigured = time.Minute
	// margin is how much further apart posts are than their rate asks for: calls
	// that begin evenly arrive less evenly, and the clocks of two nodes differ by
	// some milliseconds. A platform that counts strictly refuses none of them.
	margin = 1.02
	// storePause is how long a delivery leaves a store that refuses a commit.
	storePause = 250 * time.Millisecond
	// storeTime is how long a post that has arrived waits for a store that can't
	// record it; afterwards the platform is asked.
	storeTime = time.Minute
)

// What becomes of a delivery of which nobody can say whether it took effect.
const (
	unknownMarked = "marked"
	unknownHold   = "hold"
)

// mark stands before a text that may stand there twice.
const mark = "(sent again, since it is not known whether it arrived) "

// Platform is a workspace's way out.
type Platform struct {
	// Sender is nil where replies are read from the journal.
	Sender adapters.Sender
	Limits adapters.Limits
	// Unknown resolves what becomes of a delivery with an unknown end, in a channel.
	Unknown func(channel string) string
}

// Observer sees every state that a delivery comes to. It is called concurrently.
type Observer interface {
	Delivery(workspace string, state journal.DeliveryState)
}

// Parts are what an Outbox works with.
type Parts struct {
	Journal *journal.Journal
	Desk    *journal.Desk
	// Platform finds a workspace's way out; false where it is not configured.
	Platform func(workspace string) (Platform, bool)
	Files    Files
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
}

// Outbox sends what the journal holds to be sent.
type Outbox struct {
	Parts

	showing sync.WaitGroup // what shows growing answers

	mu    sync.Mutex
	over  bool                        // showing is waited for: nothing joins it any more
	begun map[int64]*journal.Delivery // marked as being sent, and not sent yet; by thread
	// pieces are what is known of previews' posts, by the delivery's id. What is not
	// here is found out from the platform, or stated again.
	pieces map[int64]*piece
	signed map[int64]*signing // by run
}

// New returns an Outbox that sends nothing yet; see Run.
func New(p Parts) *Outbox {
	return &Outbox{Parts: p, begun: map[int64]*journal.Delivery{}, pieces: map[int64]*piece{}, signed: map[int64]*signing{}}
}

// Bounds implements turn.Outbox: how a workspace's posts are sent.
func (o *Outbox) Bounds(workspace string) *journal.Send {
	platform, ok := o.Platform(workspace)
	if !ok || platform.Sender == nil {
		return nil
	}
	b := bounds(platform.Limits)
	return &b
}

func bounds(limits adapters.Limits) journal.Send {
	send := journal.Send{Timeout: limits.Timeout}
	if limits.PostRate > 0 {
		send.Every = time.Duration(margin * float64(time.Second) / limits.PostRate)
	}
	return send
}

// Posted implements turn.Outbox: a thread has deliveries. The first one may be
// marked as being sent already.
func (o *Outbox) Posted(thread int64, begun *journal.Delivery) {
	if begun != nil {
		o.mu.Lock()
		o.begun[thread] = begun
		o.mu.Unlock()
	}
	o.Desk.Wake(journal.Deliveries, "", thread)
}

// takeBegun returns a delivery that was begun with its run's end, once.
func (o *Outbox) takeBegun(thread int64) *journal.Delivery {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.begun[thread]
	delete(o.begun, thread)
	return d
}

// Run sends until ctx ends, and then waits for the calls under way, which end
// with work.
func (o *Outbox) Run(ctx, work context.Context) error {
	defer o.shown()
	lane := journal.Lane{Work: journal.Deliveries, Slots: workers}
	return o.Desk.Serve(ctx, lane, func(_ context.Context, lease *journal.Lease) {
		for ctx.Err() == nil && o.next(work, lease) {
			continue
		}
	})
}

// shown waits for what shows growing answers. A run that is only now about to be shown
// is not: it ends with the process, or has its answer posted.
func (o *Outbox) shown() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.showing.Wait()
}

// show lets f show something, as long as somebody will wait for it.
func (o *Outbox) show(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.showing.Go(f)
	}
}

// next brings the thread's first delivery one step on. It returns whether there
// is more to do at once.
func (o *Outbox) next(ctx context.Context, lease *journal.Lease) bool {
	if d := o.takeBegun(lease.Thread); d != nil {
		if platform, ok := o.Platform(d.Workspace); ok && platform.Sender != nil {
			if at := o.settlesAt(d); at.After(o.Now()) {
				return o.settle(ctx, lease, d, at)
			}
			if o.stands(d) {
				return o.sent(ctx, lease, d, d.Replaces.PlatformID)
			}
			return o.call(ctx, lease, d, platform)
		}
	}
	d, err := o.Journal.NextDelivery(ctx, lease.Thread)
	if err != nil || d == nil {
		return o.ok(ctx, lease, err, false)
	}
	platform, configured := o.Platform(d.Workspace)
	now := o.Now()
	switch {
	case !configured || platform.Sender == nil: // it stays as it is: a post with no clear end is not sent again blindly
		at := now.Add(unconfigured)
		return o.later(ctx, lease, o.Journal.AwaitReadBack(ctx, lease, d, at, "the workspace is not configured"), at)
	case d.State == journal.DeliverySending:
		return o.readBack(ctx, lease, d, platform)
	}
	return o.begin(ctx, lease, d, platform)
}

// begin makes the call, if the channel's pace allows it now.
func (o *Outbox) begin(ctx context.Context, lease *journal.Lease, d *journal.Delivery, platform Platform) bool {
	if at := o.settlesAt(d); at.After(o.Now()) {
		return o.settle(ctx, lease, d, at)
	}
	if o.stands(d) { // which takes no place in the pace
		return o.sent(ctx, lease, d, d.Replaces.PlatformID)
	}
	slot, err := o.Journal.BeginSend(ctx, lease, d, bounds(platform.Limits))
	if err != nil || !slot.Wait.IsZero() {
		return o.later(ctx, lease, err, slot.Wait)
	}
	d.SendBy, d.Attempts = slot.SendBy, d.Attempts+1
	return o.call(ctx, lease, d, platform)
}

// settle leaves a delivery until what was shown before can't change any more.
func (o *Outbox) settle(ctx context.Context, lease *journal.Lease, d *journal.Delivery, at time.Time) bool {
	return o.later(ctx, lease, o.Journal.Resend(ctx, lease, d, at, "what was shown before may still change", false), at)
}

// call sends a delivery that is marked as being sent.
func (o *Outbox) call(ctx context.Context, lease *journal.Lease, d *journal.Delivery, platform Platform) bool {
	id, err := o.send(ctx, d, platform)
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return o.failed(ctx, lease, d, err)
	}
	return o.sent(ctx, lease, d, id)
}

// send makes the call that was begun, unless a part of its time is gone already: what
// is asked for late may take effect after others have read back. A panic leaves an end
// that is not clear.
func (o *Outbox) send(ctx context.Context, d *journal.Delivery, platform Platform) (id string, err error) {
	if left := d.SendBy.Sub(o.Now()); ctx.Err() != nil || left <= 0 || left < platform.Limits.Timeout-lateStart {
		return "", errLate
	}
	ctx, cancel := context.WithTimeout(ctx, d.SendBy.Sub(o.Now())) // by this node's clock, whatever it shows
	defer cancel()
	defer o.recover(d, &err)
	return o.put(ctx, d, platform)
}

// errLate is a call that was not begun.
var errLate = &adapters.SendError{Failure: adapters.NotSent, Err: errors.New("the call's time was running out before it began")}

// recover makes a panic in an adapter the delivery's failure, not the process's.
func (o *Outbox) recover(d *journal.Delivery, err *error) {
	if p := recover(); p != nil {
		*err = o.panicked(p, "workspace", d.Workspace, "delivery", d.Key)
	}
}

func (o *Outbox) panicked(p any, about ...any) error {
	o.Log.Error("an adapter panicked", append(about, "panic", p, "stack", string(debug.Stack()))...)
	return fmt.Errorf("the adapter panicked: %v", p)
}

// sent records that a delivery has arrived. A store in trouble is waited for: until
// it knows, the platform would have to be asked.
func (o *Outbox) sent(ctx context.Context, lease *journal.Lease, d *journal.Delivery, id string) bool {
	more, err := o.Journal.Sent(ctx, lease, d, id)
	for until := o.Now().Add(storeTime); err != nil && journal.Unavailable(err) && !errors.Is(err, journal.ErrClosed) && o.Now().Before(until); {
		o.ok(ctx, lease, err, false)
		more, err = o.Journal.Sent(ctx, lease, d, id)
	}
	if err != nil && !errors.Is(err, journal.ErrFenced) && !journal.Unavailable(err) {
		return o.giveUp(ctx, lease, d, journal.DeliveryUnknown, fmt.Errorf("sent as %q, which can't be recorded: %w", id, err))
	}
	if err == nil {
		o.observe(d, journal.DeliverySent)
		if d.Awaited {
			o.Desk.Wake(journal.Intake, "", lease.Thread)
		}
	}
	return o.ok(ctx, lease, err, more)
}

// failed handles a call that did not succeed, by what it left behind.
func (o *Outbox) failed(ctx context.Context, lease *journal.Lease, d *journal.Delivery, cause error) bool {
	now := o.Now()
	var failure *adapters.SendError
	if !errors.As(cause, &failure) {
		failure = &adapters.SendError{Failure: adapters.Unclear, Err: cause}
	}
	unclear := failure.Failure == adapters.Unclear
	switch {
	case failure.Failure == adapters.Permanent && takesOver(d):
		return o.ok(ctx, lease, o.Journal.Repost(ctx, lease, d, cause.Error()), true)
	case failure.Failure == adapters.Permanent, !unclear && now.Sub(d.CreatedAt) > maxAge:
		return o.giveUp(ctx, lease, d, journal.DeliveryFailed, cause)
	case unclear && d.Kind == journal.DeliveryTell: // it leaves nothing to be found
		return o.giveUp(ctx, lease, d, journal.DeliveryUnknown, cause)
	case failure.Failure == adapters.RateLimited:
		at := now.Add(max(failure.RetryAfter, minRetryAfter))
		return o.later(ctx, lease, o.Journal.Resend(ctx, lease, d, at, cause.Error(), puts(d)), at)
	case failure.Failure == adapters.NotSent:
		at := now.Add(backoff(d.Attempts))
		return o.later(ctx, lease, o.Journal.Resend(ctx, lease, d, at, cause.Error(), false), at)
	}
	at := d.SendBy.Add(readBackAfter)
	o.Log.Warn("a post has no clear end", "workspace", d.Workspace, "delivery", d.Key, "err", cause)
	return o.later(ctx, lease, o.Journal.AwaitReadBack(ctx, lease, d, at, cause.Error()), at)
}

// backoff is the wait before the next try.
func backoff(attempts int64) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 10), maxBackoff)
}

func (o *Outbox) giveUp(ctx context.Context, lease *journal.Lease, d *journal.Delivery, state journal.DeliveryState, cause error) bool {
	o.Log.Error("a delivery was given up", "workspace", d.Workspace, "delivery", d.Key, "kind", d.Kind, "state", state, "err", cause)
	return o.drop(ctx, lease, d, state, cause)
}

// drop ends a delivery that will not be sent.
func (o *Outbox) drop(ctx context.Context, lease *journal.Lease, d *journal.Delivery, state journal.DeliveryState, cause error) bool {
	more, err := o.Journal.GiveUp(ctx, lease, d, state, cause.Error())
	if err == nil {
		o.observe(d, state)
	}
	return o.ok(ctx, lease, err, more)
}

// observe counts what people were meant to read.
func (o *Outbox) observe(d *journal.Delivery, state journal.DeliveryState) {
	if d.Kind == journal.DeliveryPost || d.Kind == journal.DeliveryTell {
		o.Observer.Delivery(d.Workspace, state)
	}
}

// later leaves the thread until a time that the journal knows of.
func (o *Outbox) later(ctx context.Context, lease *journal.Lease, err error, at time.Time) bool {
	more := o.ok(ctx, lease, err, true)
	if err == nil {
		o.Desk.WakeAt(journal.Deliveries, "", at)
		return false
	}
	return more
}

// ok returns more, unless the store has failed or the thread was lost.
func (o *Outbox) ok(ctx context.Context, lease *journal.Lease, err error, more bool) bool {
	switch {
	case err == nil:
		return more
	case errors.Is(err, journal.ErrDelivered): // what showed the growing answer has heard of it meanwhile
		return true
	case errors.Is(err, journal.ErrFenced):
		o.Desk.Lost(lease)
	case ctx.Err() == nil:
		o.Log.Warn("a delivery waits for the store", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(storePause):
		}
	}
	return false
}
