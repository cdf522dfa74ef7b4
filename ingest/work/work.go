// Package work schedules threads: claims, leases, fences and work queues.
//
// A node claims a thread before it works on it. A claim is bounded by a lease and
// guarded by a fence, a number that rises whenever the thread gets another owner and
// that every write of the thread's work names. Three workers may work on a claimed
// thread concurrently, one for each Kind. The scheduler keeps in memory only the
// threads that are worked on or that can begin soon. All other work waits in the
// store, where the scheduler looks for it.
package work

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/ingest/journal/storage"
)

// Kind is a kind of work of a thread.
type Kind string

// The kinds of work.
const (
	Intake     Kind = "intake"
	Turns      Kind = "turns"
	Deliveries Kind = "deliveries"
)

// ErrSuspect is returned by Queue.Do if the thread's work ended its process several
// times: the scheduler runs it again in the serial queue, beside the other workers.
var ErrSuspect = errors.New("the work ended its process several times")

// ErrWaits is returned by Queue.Do if the thread's work was postponed. The scheduler gives
// the claim back: if the process ends now, that proves nothing about the work.
var ErrWaits = errors.New("the work waits")

// Queue is one kind of work and its workers. Turns have a queue for each agent, so
// that a slow agent delays only its own threads.
type Queue struct {
	Kind  Kind
	Agent string // of Turns; empty for the other kinds
	Slots int    // number of threads that are worked on concurrently
	Drain bool   // Serve finishes the threads that wait in memory when its ctx ends
	// Do works on a thread while something is due now. It is called concurrently, but for
	// each thread only once at a time. A panic is an error.
	//
	// It returns nil if nothing is due any more, an error that wraps storage.ErrFenced if
	// another node claimed the thread, an error for which storage.Unavailable holds if
	// the store is unavailable, ErrWaits if the work was postponed, and ErrSuspect if it
	// must run in the serial queue. The scheduler logs any other error, and calls Do again
	// after a pause. After ctx has ended, it ignores all errors.
	Do func(ctx context.Context, c *Claim) error
	// Bound returns the number of threads of a workspace that may have work of the kind at once, in
	// all queues; 0 for no bound. A further thread waits in the store, and the workers are free
	// for other workspaces. It must not block or call the scheduler; nil for no bounds.
	Bound func(workspace string) int
	// Fair also bounds a workspace to half of the workers that the others leave. The queue must
	// have a Bound.
	Fair bool
	// Begun reports whether the work of a claim has begun, so that no bound may make it wait. It
	// must not block or call the scheduler; nil if no work has.
	Begun func(c *Claim) bool
	// Heard is called when another node hints at work of a thread, which a worker may have
	// already. It is also called now and then while a worker has the thread, because a hint may
	// be lost. It must not block or call the scheduler; nil for none.
	Heard func(thread int64)
}

// Options are the settings of a Scheduler.
type Options struct {
	// Node names this process, in at most 50 bytes. No other process ever has the same name.
	Node string
	// Lease is the duration of a claim that is not renewed. Zero is for an engine that
	// admits one process at a time: the claims of other nodes have ended.
	Lease time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	Log *slog.Logger
	// Words takes words of other nodes that are not about work. It returns false for unknown
	// ones. Missed is called whenever such words may have been lost. Both may be nil.
	Words  func(words string) bool
	Missed func()
}

// Scheduler claims threads for this node and hands them to workers.
type Scheduler struct {
	db       *storage.DB
	notifier storage.Notifier // nil if no other node shares the store
	Options
	begun time.Time

	// serial is held by the worker that runs a suspect, and while the process is young.
	serial chan struct{}
	logAt  atomic.Int64 // when Warn may log again
	silent atomic.Int64 // failures of the store since Warn has logged one

	mu     sync.Mutex
	claims map[int64]*Claim // by thread
	queues map[queueKey]*queue
	shares map[share]int // the threads that workers of bounded queues work on
	served string        // the configured workspaces, between commas; empty: all
}

// New returns a scheduler that serves no queue yet.
func New(engine storage.Engine, o Options) *Scheduler {
	if o.Now == nil {
		o.Now = time.Now
	}
	notifier, _ := engine.(storage.Notifier)
	s := &Scheduler{
		db: &storage.DB{Engine: engine, Node: o.Node, Lease: o.Lease, Now: o.Now}, notifier: notifier, Options: o, begun: time.Now(), serial: make(chan struct{}, 1),
		claims: map[int64]*Claim{}, queues: map[queueKey]*queue{}, shares: map[share]int{},
	}
	s.serial <- struct{}{} // the process is young
	time.AfterFunc(suspectsAfter, func() { <-s.serial })
	return s
}

// Run renews leases, forgets idle claims, receives hints of work from other nodes, and corrects the times of a shared
// clock that led, until ctx ends.
func (s *Scheduler) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	defer listening.Wait()
	if s.notifier != nil {
		listening.Go(func() { s.notifier.Listen(ctx, s.Node, s.heard, s.missed) })
	}
	var adjust <-chan time.Time
	if s.Lease > 0 {
		adjust = time.Tick(adjustEvery)
	}
	for tick := time.Tick(sweepEvery); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
			s.sweep(ctx)
		case <-adjust:
			if err := s.AdjustClock(ctx); err != nil && ctx.Err() == nil {
				s.Warn("due times are not compared with the clock", "err", err)
			}
		}
	}
}

// Close releases every claim, so that other nodes can claim the threads at once and no
// claim counts as one that ended with its process. No worker may be running.
func (s *Scheduler) Close(ctx context.Context) error {
	s.mu.Lock()
	claims := slices.Collect(maps.Values(s.claims))
	clear(s.claims)
	s.mu.Unlock()
	if s.Lease == 0 {
		return s.releaseDue(ctx)
	}
	err := s.release(ctx, claims, s.Now().Add(s.Lease)) // also what was extended just now
	s.notify("", lookAgain)
	return err
}

// logEvery is the shortest time between two log entries about an unavailable store: a full one
// refuses hundreds of payloads a second.
const logEvery = time.Second

// since returns the time since the start of the scheduler.
func (s *Scheduler) since() time.Duration { return time.Since(s.begun) }

// Warn logs a failure of the store, at most once each logEvery, and the number of other failures
// since the entry before.
func (s *Scheduler) Warn(words string, args ...any) {
	s.silent.Add(1)
	now, next := s.since(), s.logAt.Load()
	if int64(now) >= next && s.logAt.CompareAndSwap(next, int64(now+logEvery)) {
		s.Log.Warn(words, append(args, "others", s.silent.Swap(0)-1)...)
	}
}
