// Package backfill reads missed messages from platforms.
//
// A gap is a time range in which messages of a channel may be missing. It opens after the
// connection was away, after a payload was refused, after a retried hook, and when a
// running connection reports missed messages. A thread is behind while a gap of its
// channel is open, unless its first message is later than the gap's end or the thread was
// read on its own. The next turn of a thread that is behind waits for that read, at most
// ten seconds; nothing else waits. One node reads the rest of each channel in the
// background.
//
// The read that follows a time without a connection may come too early: the platform may
// show a message in its history later, or tell later that a channel exists. If the
// adapter says so (adapters.SlowHistory), such a gap is read at once, twice more within that time, and
// again after it: a message that is shown soon is answered soon.
//
// Gaps are compared with the platform's times, so they are in wall time. A time that a wrong clock put
// into the future counts as unknown from the last known arrival on.
//
// Missed messages pass through the same Accept as live ones: the dedupe key alone decides
// whether a message is new.
package backfill

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/supervise"
	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// turnWait bounds how long a turn waits for its thread's missed messages.
	turnWait = 10 * time.Second
	// clockLag bounds the difference of the platform's clock, and the age of an event on
	// arrival. The watermark stays that far behind.
	clockLag = 2 * time.Minute
	// clockLead bounds the lead of the platform's clock over ours, which may have been set wrong. A
	// read reaches that far beyond the gap's end; the messages there are known already.
	clockLead = 24 * time.Hour
	// stepBack is the least step of our clock into the past that is noticed.
	stepBack = time.Second
	// refreshOpen is the interval at which gaps that other nodes have stored or closed
	// are read while a gap is open, and refreshClosed the interval otherwise.
	refreshOpen, refreshClosed = time.Second, 5 * time.Second
	// watermarkStep is the smallest move of the watermark.
	watermarkStep = 10 * time.Second
	// retryMin and retryMax bound the wait before a failed call is repeated: a platform that
	// answers again is read soon.
	retryMin, retryMax = time.Second, 10 * time.Second
)

// Store stores watermarks and gaps. The journal implements it.
type Store interface {
	// Gaps returns the watermark, which is zero in a workspace that was never connected,
	// and the open gaps. A time later than now was stored while our clock led: it is pulled back
	// to the last known arrival, or, as the end of a gap, to now.
	Gaps(ctx context.Context, workspace string, now time.Time) (watermark time.Time, gaps []event.Gap, err error)
	// OpenGaps stores gaps, each of which widens its channel's gap, and moves the
	// watermark on; zero leaves it.
	OpenGaps(ctx context.Context, workspace string, gaps []event.Gap, watermark time.Time) error
	// CloseGap removes the range that was read from a channel's gap. If the gap was
	// widened meanwhile, the last part of the range, as long as lag, remains in it.
	CloseGap(ctx context.Context, workspace string, read event.Gap, lag time.Duration) error
	// RecentThreads returns a channel's threads with a message since a time, the
	// answered and newest first.
	RecentThreads(ctx context.Context, workspace, channel string, since time.Time, limit int) ([]event.ThreadKey, error)
}

// Parts are the dependencies of a Workspace.
type Parts struct {
	ID       string // of the workspace
	Platform adapters.Backfiller
	HookOnly bool // see adapters.Hook
	Inbox    adapters.Inbox
	Store    Store
	// Lease lets one node at a time read in the background; New sets its Name and Log.
	Lease  supervise.Lease
	Config func() Config
	// Now is the wall clock, because its times are compared with the platform's.
	Now func() time.Time
	Log *slog.Logger
}

// Workspace knows the gaps of one workspace and reads the missed messages. It is safe for
// concurrent use. Up, Down, Standby, Missed, Accepted, Refused, Behind and
// Ready never wait for the store or the platform.
type Workspace struct {
	Parts
	wake wakes
	lag  time.Duration // of the platform's history; 0 if it has none

	// refreshing is held during a refresh: an older view of the store must not replace a
	// newer one.
	refreshing sync.Mutex

	mu        sync.Mutex
	watermark time.Time
	up        bool                 // events can arrive
	synced    time.Time            // when sync last began
	unstored  map[string]event.Gap // by channel; the gap of a time without a connection is under everywhere
	again     event.Gap            // of a time without a connection, that is to be read again
	next      time.Duration        // from the end of again to the next read of it
	stored    map[string]event.Gap // by channel
	threads   map[event.ThreadKey]*threadRead
	asked     []*threadRead // urgent reads that have not begun
	arrivals  arrivals
}

// everywhere is the channel of a gap that every channel has.
const everywhere = ""

// wakes are set when a part of Run has work.
type wakes struct{ store, read, urgent wake.Signal }

// New returns the backfill of a workspace; Run does its work. If the workspace was
// connected before, messages may be missing since its watermark.
func New(ctx context.Context, parts Parts) (*Workspace, error) {
	parts.Lease.Name, parts.Lease.Log = "backfill/"+parts.ID, parts.Log
	now := parts.Now
	// The store has microseconds: a gap must not change when it is stored. A truncated time
	// also has no monotonic clock, which stands still while a machine is suspended.
	parts.Now = func() time.Time { return now().Truncate(time.Microsecond) }
	w := &Workspace{
		Parts: parts, wake: wakes{wake.NewSignal(), wake.NewSignal(), wake.NewSignal()},
		unstored: map[string]event.Gap{}, stored: map[string]event.Gap{}, threads: map[event.ThreadKey]*threadRead{},
	}
	if slow, ok := parts.Platform.(adapters.SlowHistory); ok {
		w.lag = slow.HistoryLag()
	}
	if err := w.refresh(ctx); err != nil {
		return nil, err
	}
	w.change(func() {
		w.synced = w.Now()
		w.arrivals.begin(w.watermark)
		w.awayUntil(w.synced)
	})
	return w, nil
}

// change runs f under the lock and then drops the thread reads that no gap needs.
func (w *Workspace) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	for thread, r := range w.threads {
		if _, open := w.gap(r.gap.Channel); !open && r.ended {
			delete(w.threads, thread)
		}
	}
}

// awayUntil notes that messages between the watermark and a time may be missing. While
// events could arrive, the platform may also have given up a payload that it first sent
// within retryHorizon. A workspace that was never connected has missed nothing.
func (w *Workspace) awayUntil(until time.Time) {
	from := w.watermark
	if first := w.arrivals.times[0]; w.up && first.Before(from) {
		from = first
	}
	if !from.IsZero() && w.Config().MaxAge > 0 {
		w.unstored[everywhere] = w.unstored[everywhere].Union(event.Gap{From: from, Until: until})
	}
}

// Up notes that events can arrive from now on, and that earlier ones may be missing. A
// workspace's first watermark is stored before Up returns.
func (w *Workspace) Up(ctx context.Context) {
	now := w.Now()
	first := false
	w.change(func() {
		w.awayUntil(now)
		w.up = true
		if first = w.watermark.IsZero(); first {
			w.watermark = now
			w.arrivals.begin(now)
		}
	})
	if first {
		if err := w.Store.OpenGaps(ctx, w.ID, nil, now); err != nil {
			w.Log.Warn("store the watermark", "err", err)
		}
	}
	w.wake.store.Set()
}

// Down notes that events cannot arrive.
func (w *Workspace) Down() { w.change(func() { w.up = false }) }

// Standby notes that another node has the connection, and with it knows the gaps.
func (w *Workspace) Standby() {
	w.change(func() {
		w.up, w.again = false, event.Gap{}
		delete(w.unstored, everywhere)
	})
}

// Run stores gaps and reads missed messages, until ctx ends.
func (w *Workspace) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { w.background(ctx) })
	parts.Go(func() { w.keepGaps(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake.urgent:
			w.mu.Lock()
			asked := w.asked
			w.asked = nil
			w.mu.Unlock()
			for _, r := range asked {
				parts.Go(func() { w.readUrgently(ctx, r) })
			}
		}
	}
}

// retry calls f until it succeeds, with growing pauses. If more is set, f has more to do,
// and the pause is a short one.
func (w *Workspace) retry(ctx context.Context, what string, more wake.Signal, f func(context.Context) error) {
	for wait := retryMin; ctx.Err() == nil; wait = min(2*wait, retryMax) {
		err := f(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		w.Log.Warn(what, "err", err, "wait", wait)
		if !wake.After(ctx, retryMin) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait - retryMin):
		case <-more:
			wait = retryMin / 2
		}
	}
}
