package work

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

const (
	// queueLimit bounds the threads of a queue that wait in memory for a worker.
	queueLimit = 4096
	// pollEvery is the longest time between two reads of the store.
	pollEvery = time.Second
	// suspectsAfter is the age of a process at which it runs suspects. The other work comes
	// first, and a process that is killed early proves nothing about a suspect.
	suspectsAfter = 10 * time.Second
	// lookPause is the shortest time between two reads, while each finds new work.
	lookPause = 5 * time.Millisecond
	// maxSuspects bounds the suspects of a queue that wait for the serial queue.
	maxSuspects = 64
	// minPause and maxPause bound the pause of a queue while the store is unavailable.
	minPause, maxPause = 250 * time.Millisecond, 2 * time.Second
)

type queueKey struct {
	kind  Kind
	agent string
}

// queue is a served Queue. The scheduler's mutex guards it. Its times count from the
// start of the scheduler.
type queue struct {
	Queue
	// busy are the threads that wait for a worker or have one. The value is true if
	// the thread was woken since the worker began.
	busy    map[int64]bool
	waiting []int64 // of busy
	suspect int     // of busy: those in the serial queue
	workers int     // goroutines, without those of suspects
	working int     // threads that workers of a bounded queue work on
	// handed is the work that a look found and handed to a worker. It counts as new again
	// only after the given time: if it is still due, the worker could not do it.
	handed map[dueAt]time.Duration

	lookAt   time.Duration // of the next look
	resumeAt time.Duration // no look before this, because the store was unavailable
	pause    time.Duration

	changed wake.Signal
	spawn   func(f func(ctx context.Context))
}

// Serve hands threads with work of a kind to the queue's Do, until ctx ends. Then it
// waits for the workers. If the queue drains, these also finish the waiting threads.
func (s *Scheduler) Serve(ctx context.Context, config Queue) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	q := &queue{
		Queue: config, busy: map[int64]bool{}, changed: wake.NewSignal(),
		spawn: func(f func(context.Context)) { workers.Go(func() { f(ctx) }) },
	}
	key := queueKey{config.Kind, config.Agent}
	s.mu.Lock()
	s.queues[key] = q
	s.mu.Unlock()
	for ctx.Err() == nil {
		if wait := s.look(ctx, q); wait > 0 {
			select {
			case <-ctx.Done():
			case <-q.changed:
			case <-time.After(wait):
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queues, key)
	return nil
}

// free is the number of further threads that workers could begin with.
func (q *queue) free() int { return q.Slots + q.suspect - len(q.busy) }

// look reads due work from the store, if a look is due and a worker is free. It returns
// the time until the next look.
func (s *Scheduler) look(ctx context.Context, q *queue) time.Duration {
	begun, now := s.since(), s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := max(q.lookAt, q.resumeAt) - begun
	switch {
	case q.free() <= 0:
		return pollEvery // a worker that ends makes the queue look
	case wait > 0:
		return wait
	}
	limit := len(q.busy) + len(q.handed) + q.free() + 1
	q.lookAt = begun + pollEvery // or earlier, if WakeAt says so during the read
	s.mu.Unlock()
	list, err := s.due(ctx, q, now, limit)
	s.mu.Lock()
	if err != nil {
		s.trouble(ctx, q, err)
	} else {
		s.offer(q, list, begun, now.UnixMilli(), len(list) == limit)
	}
	return max(q.lookAt, q.resumeAt) - begun
}

// offer queues the threads that can begin, at most one for each free worker and as many of a
// workspace as it may have, and plans the next look. Work that was handed to a worker counts as
// new again after pollEvery. If there are more due threads than the list has, the next look comes
// soon, because those of a full workspace may hide others.
func (s *Scheduler) offer(q *queue, list []dueAt, begun time.Duration, now int64, more bool) {
	handed, added := map[dueAt]time.Duration{}, map[string]int{}
	for _, d := range list {
		_, busy := q.busy[d.thread]
		switch {
		case d.at > now:
			q.lookAt = min(q.lookAt, begun+time.Duration(d.at-now)*time.Millisecond)
		case busy:
			handed[d] = begun + pollEvery
		case begun < q.handed[d]:
			handed[d] = q.handed[d]
		case q.Bound != nil && s.isFull(q, d.workspace, added[d.workspace]):
			if more {
				q.lookAt = min(q.lookAt, begun+lookPause)
			}
		case q.free() > 0:
			s.add(q, d.thread)
			added[d.workspace]++
			handed[d] = begun + pollEvery
		default: // a further look finds it as soon as a worker is free
			q.lookAt = min(q.lookAt, begun+lookPause)
		}
	}
	q.handed = handed
}

// add queues a thread and starts a worker, if one may begin.
func (s *Scheduler) add(q *queue, thread int64) {
	q.busy[thread] = false
	q.waiting = append(q.waiting, thread)
	s.begin(q)
}

// begin starts a worker, if one may begin.
func (s *Scheduler) begin(q *queue) {
	if q.workers < q.Slots {
		q.workers++
		q.spawn(func(ctx context.Context) { s.worker(ctx, q) })
	}
}

// lookBy makes the queue look by a time.
func (q *queue) lookBy(at time.Duration) {
	q.lookAt = min(q.lookAt, at)
	q.changed.Set()
}

// Wake reports that a thread has work now.
func (s *Scheduler) Wake(kind Kind, agent string, thread int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queueKey{kind, agent}]
	if q == nil {
		return
	}
	switch _, busy := q.busy[thread]; {
	case busy:
		q.busy[thread] = true
	case len(q.waiting) >= queueLimit:
		q.lookAt = 0
	default:
		s.add(q, thread)
	}
}

// WakeAt reports that some thread will have work at a time, or has work now if that
// has passed.
func (s *Scheduler) WakeAt(kind Kind, agent string, at time.Time) {
	wait := at.Sub(s.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queueKey{kind, agent}]
	if q == nil {
		return
	}
	if wait <= 0 { // work that could not be done before may be possible now
		clear(q.handed)
	}
	q.lookBy(s.since() + wait)
}

// Room reports whether a worker of a queue could begin with a further thread of a workspace
// soon. An envelope takes milliseconds, so many of them may wait for a worker.
func (s *Scheduler) Room(kind Kind, agent, workspace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queueKey{kind, agent}]
	return q != nil && (q.free() > 0 || kind == Intake && len(q.waiting) < queueLimit/2) && !s.isFull(q, workspace, 0)
}

// Resize sets the number of threads of a queue that are worked on concurrently.
func (s *Scheduler) Resize(kind Kind, agent string, slots int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[queueKey{kind, agent}]; q != nil {
		q.Slots = slots
		for range q.waiting {
			s.begin(q)
		}
		q.lookBy(0)
	}
}

// worker works on one thread after another, until no thread waits.
func (s *Scheduler) worker(ctx context.Context, q *queue) {
	for thread, ok := s.next(ctx, q); ok; thread, ok = s.next(ctx, q) {
		suspect := errors.Is(s.once(ctx, q, thread, false), ErrSuspect)
		s.mu.Lock()
		if suspect && q.suspect < maxSuspects {
			q.suspect++
			q.spawn(func(ctx context.Context) { s.serially(ctx, q, thread) })
		} else {
			s.done(q, thread)
		}
		s.mu.Unlock()
	}
}

// next takes a thread from the queue. If none waits, the worker ends, and requests a look
// if one is due.
func (s *Scheduler) next(ctx context.Context, q *queue) (thread int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(q.waiting) == 0 || q.workers > q.Slots || ctx.Err() != nil && !q.Drain {
		q.workers--
		if len(q.waiting) == 0 && s.since() >= q.lookAt {
			q.lookBy(0)
		}
		return 0, false
	}
	thread = q.waiting[0]
	q.waiting = q.waiting[1:]
	q.busy[thread] = false
	return thread, true
}

// done ends the work on a thread, or queues the thread if it was woken meanwhile.
func (s *Scheduler) done(q *queue, thread int64) {
	woken := q.busy[thread]
	delete(q.busy, thread)
	if woken {
		s.add(q, thread)
	}
}

// serially works on a suspect in the serial queue.
func (s *Scheduler) serially(ctx context.Context, q *queue, thread int64) {
	select {
	case s.serial <- struct{}{}:
		_ = s.once(ctx, q, thread, true)
		<-s.serial
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q.suspect--
	s.done(q, thread)
}

// once claims a thread and calls Do. It handles the errors of all workers, and returns
// them so that the caller can recognise a suspect.
func (s *Scheduler) once(ctx context.Context, q *queue, thread int64, serial bool) error {
	waits := false
	c, err := s.take(ctx, q, thread)
	if c != nil {
		err = ErrWaits // for a node that serves the workspace
		if s.serves(c.Workspace) {
			err = s.bounded(ctx, q, &Claim{c.Claim, serial, c.held})
		}
		waits = errors.Is(err, ErrWaits) || errors.Is(err, ErrSuspect) && !serial
		now, release := s.leave(c, errors.Is(err, storage.ErrFenced), waits)
		if release { // while the work waits, the end of this process proves nothing about it
			err = errors.Join(err, s.release(ctx, []*Claim{c}, now))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		q.pause = 0
	case ctx.Err() != nil, errors.Is(err, storage.ErrFenced):
	case storage.Unavailable(err):
		s.trouble(ctx, q, err)
	case !waits:
		s.Log.Error("work on a thread fails", "kind", q.Kind, "agent", q.Agent, "thread", thread, "err", err)
	}
	return err
}

// share names the workers that a workspace has for a kind of work.
type share struct {
	kind      Kind
	workspace string
}

// isFull reports whether a workspace, with some more threads, has as many workers as it may. The
// caller holds the mutex.
func (s *Scheduler) isFull(q *queue, workspace string, more int) bool {
	if q.Bound == nil {
		return false
	}
	now := s.shares[share{q.Kind, workspace}]
	most, own := q.Bound(workspace), now+more
	return most > 0 && own >= most || q.Fair && own > 0 && 2*own >= q.Slots-(q.working-now)
}

// bounded calls Do, or returns ErrWaits if the workspace is full.
func (s *Scheduler) bounded(ctx context.Context, q *queue, c *Claim) error {
	if q.Bound == nil {
		return do(ctx, q, c)
	}
	of := share{q.Kind, c.Workspace}
	s.mu.Lock()
	if s.isFull(q, c.Workspace, 0) && (q.Begun == nil || !q.Begun(c)) {
		s.mu.Unlock()
		return ErrWaits
	}
	s.shares[of]++
	q.working++
	s.mu.Unlock()
	err := do(ctx, q, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isFull(q, c.Workspace, 0) { // from now on the threads that wait can begin
		for key, other := range s.queues {
			if key.kind == q.Kind && other.Bound != nil {
				clear(other.handed)
				other.lookBy(0)
			}
		}
	}
	q.working--
	if s.shares[of]--; s.shares[of] == 0 {
		delete(s.shares, of)
	}
	return err
}

// do calls Do and returns a panic as an error.
func do(ctx context.Context, q *queue, c *Claim) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return q.Do(ctx, c)
}

// trouble makes the queue pause its use of the store, longer after each failure in a row.
func (s *Scheduler) trouble(ctx context.Context, q *queue, err error) {
	now := s.since()
	if ctx.Err() != nil || now < q.resumeAt {
		return
	}
	q.pause = min(max(2*q.pause, minPause), maxPause)
	q.resumeAt, q.handed = now+q.pause, nil
	q.lookBy(q.resumeAt)
	s.Warn("store unavailable; a work queue pauses", "err", err)
}
