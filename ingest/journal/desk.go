package journal

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Desk holds this node's threads and hands them to workers. A thread that is
// held may have its intake, its turn and its deliveries worked on side by side,
// each by one worker. What is in memory is bounded by the work under way, not
// by the number of threads: the rest waits in the store and is looked up there.
type Desk struct {
	journal *Journal
	bell    Bell // nil where nobody else shares the store
	log     *slog.Logger

	mu    sync.Mutex
	held  map[int64]*hold
	lanes map[laneKey]*lane

	quarantine sync.RWMutex
}

type laneKey struct {
	work  Work
	agent string
}

const (
	// queueLimit bounds the threads that wait in memory for a free worker.
	queueLimit = 4096
	// pollEvery is the longest time between two looks into the store.
	pollEvery = time.Second
	// scanPause is the shortest time between two looks that found less than they could.
	scanPause = 5 * time.Millisecond
	// workerIdle is how long a worker waits for the next thread.
	workerIdle = time.Second
)

// NewDesk returns the desk of this node.
func NewDesk(j *Journal, log *slog.Logger) *Desk {
	bell, _ := j.engine.(Bell)
	return &Desk{journal: j, bell: bell, log: log, held: map[int64]*hold{}, lanes: map[laneKey]*lane{}}
}

// Lane is one kind of work and how many threads of it go on at once. Turns have
// a lane for each agent, so that a slow one holds up nobody else's.
type Lane struct {
	Work  Work
	Agent string // of Turns
	Slots int
}

// lane is a Lane that is being served. The desk's mutex guards it.
type lane struct {
	Lane
	active  map[int64]bool // being worked on; true: look again afterwards
	queue   []int64
	queued  map[int64]bool
	scanAt  time.Time
	changed chan struct{}
	idle    chan int64 // taken by the workers that have nothing to do
}

// Serve hands threads with work of the lane's kind to do, until ctx ends; then
// it waits for the workers. do works on the thread as long as it has something
// to do now. It is called concurrently, but never twice at once for a thread.
func (d *Desk) Serve(ctx context.Context, config Lane, do func(ctx context.Context, lease *Lease)) error {
	l := &lane{Lane: config, active: map[int64]bool{}, queued: map[int64]bool{}, changed: make(chan struct{}, 1), idle: make(chan int64)}
	key := laneKey{config.Work, config.Agent}
	d.mu.Lock()
	d.lanes[key] = l
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		if d.lanes[key] == l {
			delete(d.lanes, key)
		}
		d.mu.Unlock()
	}()

	var workers sync.WaitGroup
	defer workers.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		for {
			thread, ok := d.next(l)
			if !ok {
				break
			}
			select {
			case l.idle <- thread:
			default:
				workers.Go(func() { d.worker(ctx, l, thread, do) })
			}
		}
		timer.Reset(d.refill(ctx, l))
		select {
		case <-ctx.Done():
			return nil
		case <-l.changed:
		case <-timer.C:
		}
	}
}

// worker works on one thread after another. It waits a moment for the next one:
// a goroutine that has read from the store before need not grow its stack again.
func (d *Desk) worker(ctx context.Context, l *lane, thread int64, do func(context.Context, *Lease)) {
	for ok := true; ok; {
		for ; ok; thread, ok = d.next(l) {
			d.work(ctx, l, thread, do)
		}
		select {
		case thread = <-l.idle:
			ok = true
		case <-time.After(workerIdle):
		case <-ctx.Done():
		}
	}
}

// next takes a thread from the queue, if a worker is free.
func (d *Desk) next(l *lane) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(l.queue) > 0 && len(l.active) < l.Slots {
		thread := l.queue[0]
		l.queue = l.queue[1:]
		delete(l.queued, thread)
		if _, busy := l.active[thread]; busy {
			l.active[thread] = true
			continue
		}
		l.active[thread] = false
		return thread, true
	}
	return 0, false
}

// refill looks into the store for work when that is due and a worker is free: for
// no more than workers can begin, so that the rest is left to other nodes. It
// returns how long to wait for the next look.
func (d *Desk) refill(ctx context.Context, l *lane) time.Duration {
	now := time.Now()
	d.mu.Lock()
	slots := l.Slots + len(l.queue)
	wait := l.scanAt.Sub(now)
	full := len(l.active) >= l.Slots
	d.mu.Unlock()
	if full {
		return pollEvery
	}
	if wait > 0 {
		return wait
	}
	threads, err := d.journal.Due(ctx, l.Work, l.Agent, slots)
	if err == nil {
		threads, err = d.claimFree(ctx, l, threads)
	}
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("look for work", "work", l.Work, "err", err)
		}
		return d.scanAfter(l, pollEvery)
	}
	found := 0
	for _, thread := range threads {
		if d.offer(l, thread) {
			found++
		}
	}
	if found > 0 {
		d.scanAfter(l, scanPause)
		return 0
	}
	return d.scanAfter(l, d.untilDue(ctx, l))
}

// claimFree returns those of some threads that this node has, after it has taken
// what is free. A single one is claimed by who works on it.
func (d *Desk) claimFree(ctx context.Context, l *lane, threads []int64) ([]int64, error) {
	var ours, free []int64
	now := d.journal.now()
	d.mu.Lock()
	for _, thread := range threads {
		if h := d.held[thread]; h == nil || h.expired(now) {
			free = append(free, thread)
		} else {
			ours = append(ours, thread)
		}
	}
	d.mu.Unlock()
	if len(free) < 2 {
		return threads, nil
	}
	leases, err := d.journal.ClaimAll(ctx, free, l.Work)
	for _, lease := range leases {
		d.adopt(lease)
		ours = append(ours, lease.Thread)
	}
	return ours, err
}

// untilDue is how long nothing further is due.
func (d *Desk) untilDue(ctx context.Context, l *lane) time.Duration {
	at, err := d.journal.NextDue(ctx, l.Work, l.Agent)
	if err != nil || at == 0 {
		return pollEvery
	}
	return min(max(instant(at).Sub(d.journal.now()), scanPause), pollEvery)
}

func (d *Desk) scanAfter(l *lane, wait time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.scanAt = time.Now().Add(wait)
	return wait
}

// offer queues a thread that is neither queued nor being worked on.
func (d *Desk) offer(l *lane, thread int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := l.active[thread]; busy || l.queued[thread] {
		return false
	}
	l.queued[thread] = true
	l.queue = append(l.queue, thread)
	return true
}

// served are the lanes that there are.
func (d *Desk) served() []*lane {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.lanes))
}

// Wake says that a thread has work now.
func (d *Desk) Wake(work Work, agent string, thread int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[laneKey{work, agent}]
	if l == nil || l.queued[thread] {
		return
	}
	switch _, busy := l.active[thread]; {
	case busy:
		l.active[thread] = true
		return
	case len(l.queue) >= queueLimit:
		l.scanAt = time.Time{}
	default:
		l.queued[thread] = true
		l.queue = append(l.queue, thread)
	}
	l.signal()
}

// WakeAt says that some thread will have work at a time; zero is ignored.
func (d *Desk) WakeAt(work Work, agent string, at time.Time) {
	if at.IsZero() {
		return
	}
	at = time.Now().Add(at.Sub(d.journal.now()))
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.lanes[laneKey{work, agent}]; l != nil && at.Before(l.scanAt) {
		l.scanAt = at
		l.signal()
	}
}

func (l *lane) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Soon says whether work of a kind could begin on another thread before long: what
// waits for a worker here is known, and not too much.
func (d *Desk) Soon(work Work, agent string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.lanes[laneKey{work, agent}]
	return l != nil && len(l.queue) < queueLimit/2
}

// work holds the thread, and works on it until nobody has woken it meanwhile.
func (d *Desk) work(ctx context.Context, l *lane, thread int64, do func(context.Context, *Lease)) {
	for again := true; again; {
		if h := d.take(ctx, l, thread); h != nil {
			lease := Lease{Thread: thread, Fence: h.lease.Fence, Key: h.lease.Key}
			d.quarantine.RLock()
			do(ctx, &lease)
			d.quarantine.RUnlock()
			d.leave(h)
		}
		d.mu.Lock()
		again = l.active[thread] && ctx.Err() == nil
		if again {
			l.active[thread] = false
		} else {
			delete(l.active, thread)
		}
		l.signal()
		d.mu.Unlock()
	}
}

// Alone runs f with no other thread's work going on. It is for what has ended
// the process again and again, and may be called by a worker only.
func (d *Desk) Alone(f func()) {
	d.quarantine.RUnlock()
	defer d.quarantine.RLock()
	d.quarantine.Lock()
	defer d.quarantine.Unlock()
	f()
}

// Resize changes how many threads of a lane go on at once.
func (d *Desk) Resize(work Work, agent string, slots int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.lanes[laneKey{work, agent}]; l != nil {
		l.Slots = slots
		l.signal()
	}
}
