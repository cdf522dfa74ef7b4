package acp

import (
	"context"
	"errors"
	"sync"
	"time"
)

// endTime bounds the wait for a program that is to end because its input has ended.
const endTime = 500 * time.Millisecond

// pool has the processes of an agent, one for each thread. It may be used concurrently.
type pool struct {
	agent *Agent

	mu       sync.Mutex
	threads  map[string]*process
	living   int           // processes that run, begin or end
	freed    chan struct{} // closed when a process is free or has ended
	isClosed bool
}

func newPool(a *Agent) *pool {
	return &pool{agent: a, threads: map[string]*process{}, freed: make(chan struct{})}
}

var errClosed = errors.New("the agent is no longer configured")

// take returns the process of a thread for a run, which gives it back. It starts one if the thread has none. If as many run as may, the one
// that has been idle for the longest time ends; if none is idle, take waits.
func (p *pool) take(ctx context.Context, thread string) (*process, error) {
	for {
		found, idle, wait := p.find(thread)
		switch {
		case found != nil:
			return p.ready(ctx, found)
		case idle != nil:
			idle.stop()
			p.gone()
			continue
		case wait == nil:
			return nil, errClosed
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// find returns the process of a thread, which is busy then, or the idle one that must end first, or else what is closed when a
// process is free.
func (p *pool) find(thread string) (found, idle *process, wait chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		return nil, nil, nil
	}
	if found = p.threads[thread]; found != nil {
		if found.busy {
			return nil, nil, p.freed
		}
		found.busy = true
		found.timer.Stop()
		return found, nil, nil
	}
	if p.living < p.agent.config.Processes {
		p.living++
		found = &process{agent: p.agent, thread: thread, busy: true, timer: time.NewTimer(0)}
		found.timer.Stop()
		p.threads[thread] = found
		return found, nil, nil
	}
	for _, one := range p.threads {
		if !one.busy && one.open == nil && (idle == nil || one.since.Before(idle.since)) {
			idle = one
		}
	}
	if idle != nil {
		delete(p.threads, idle.thread)
		return nil, idle, nil
	}
	return nil, nil, p.freed
}

// ready starts the process, unless it runs.
func (p *pool) ready(ctx context.Context, found *process) (*process, error) {
	err := found.begin(ctx)
	if err != nil {
		p.drop(found)
		return nil, err
	}
	return found, nil
}

// give gives a process back. It ends if it is of no more use.
func (p *pool) give(one *process, ends bool) {
	p.mu.Lock()
	one.busy, one.since = false, time.Now()
	ends = ends || p.isClosed
	if !ends {
		one.timer = time.AfterFunc(p.agent.config.Idle, func() { p.retire(one) })
		if one.open != nil {
			one.timer.Stop()
		}
		p.free()
	}
	p.mu.Unlock()
	if ends {
		p.drop(one)
	}
}

// retire ends an idle process.
func (p *pool) retire(one *process) {
	p.mu.Lock()
	stays := one.busy || one.open != nil || p.threads[one.thread] != one
	if !stays {
		delete(p.threads, one.thread)
	}
	p.mu.Unlock()
	if !stays {
		one.stop()
		p.gone()
	}
}

// drop ends a process at once.
func (p *pool) drop(one *process) {
	p.mu.Lock()
	known := p.threads[one.thread] == one
	if known {
		delete(p.threads, one.thread)
	}
	p.mu.Unlock()
	if one.conn != nil {
		one.conn.kill()
		<-one.conn.done
	}
	one.clean()
	if known {
		p.gone()
	}
}

// gone notes that a process has ended.
func (p *pool) gone() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.living--
	p.free()
}

// free wakes those that wait. The caller holds the mutex.
func (p *pool) free() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// unopen takes a process that still waits for the answer to the question with which a run ended. A later run of the same prompt may have ended with
// another question.
func (p *pool) unopen(one *process, asked string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one.busy || p.threads[one.thread] != one || one.open == nil || one.open.run != asked {
		return false
	}
	one.busy = true
	return true
}

// close ends the processes: those of runs after their runs.
func (p *pool) close() {
	p.mu.Lock()
	p.isClosed = true
	var idle []*process
	for thread, one := range p.threads {
		if !one.busy {
			idle = append(idle, one)
			delete(p.threads, thread)
			one.timer.Stop()
		}
	}
	p.free()
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, one := range idle {
		ending.Go(func() {
			one.stop()
			p.gone()
		})
	}
	ending.Wait()
}
