package turn

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
	"parley/ingest/wake"
	"parley/ingest/work"
)

const (
	// maxBatch bounds the messages of one write.
	maxBatch = 500
	// chunkTime is the least time between two writes in a run whose tokens are stored, so that
	// many tokens are stored together. chunkChars bounds the characters of a chunk.
	chunkTime  = 16 * time.Millisecond
	chunkChars = 200
	// storeTime bounds one write of events. A slow store delays the run's end no longer.
	storeTime = 5 * time.Second
)

// recorder stores the messages of a run while the agent works. One goroutine writes, from the first
// message on that does not belong to the run's end: all messages that wait go into its next write. The messages that end the run wait for the run's end, because
// the end decides whether they take effect.
type recorder struct {
	run    *runs.Run
	store  func(messages []stream.Message) error
	log    *slog.Logger
	chunks bool // chunks are stored, too
	names  names
	// before are the messages that an earlier attempt has stored, if the agent continues its run:
	// it emits them once more.
	before []stream.Message

	start    func(func())  // starts the goroutine
	more     wake.Signal   // is set if messages wait
	stopping chan struct{} // closed by stop
	done     chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	writes  bool // the goroutine has begun
	waiting []stream.Message
	held    []stream.Message
}

// newRecorder returns the recorder of an attempt. Its goroutine ends with stop.
func (a *attempt) newRecorder(ctx context.Context) *recorder {
	r := &recorder{
		run: a.run, log: a.Log, chunks: a.settings.API, before: a.before(ctx), more: wake.NewSignal(),
		start: a.show, stopping: make(chan struct{}), done: make(chan struct{}),
		store: func(messages []stream.Message) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
			defer cancel()
			add := func() error { return a.Runs.AppendEvents(ctx, &a.claim.Claim, a.run, messages) }
			err := add()
			if errors.Is(err, storage.ErrUnclear) {
				if err = work.Insist(ctx, storeTime, add); err != nil {
					err = errors.Join(storage.ErrUnclear, err)
				}
			}
			if err == nil && slices.ContainsFunc(messages, func(m stream.Message) bool { return runs.IsStated(m.Type) }) {
				a.Outbox.Posted(a.claim, nil) // the state post changes
			}
			return err
		},
	}
	return r
}

// before returns the messages that an earlier attempt has stored of a run that its agent has taken.
// After an error of the store, the run has them twice.
func (a *attempt) before(ctx context.Context) (messages []stream.Message) {
	if !a.run.Taken || a.run.EventSeq == 0 {
		return nil
	}
	for after := int64(0); ; {
		page, err := a.Runs.RunEvents(ctx, a.run.ID, after, maxBatch)
		if err != nil {
			a.Log.Warn("the earlier messages of a run are not known", "run", a.run.ID, "err", err)
		}
		for _, e := range page.Events {
			messages, after = append(messages, e.Message), e.Seq
		}
		if len(page.Events) < maxBatch {
			return messages
		}
	}
}

// add takes a message. It never waits.
func (r *recorder) add(m stream.Message) {
	if m.Type == stream.StreamingChunk && !r.chunks {
		return
	}
	m = m.WithoutResult() // as the store has it: an attempt that continues a run compares them
	m.Text, m.Workstream, m.ActivityID = event.Text(m.Text), event.Text(m.Workstream), event.Text(m.ActivityID)
	if r.chunks {
		m.ActivityID = r.names.of(m, r.run)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Type == stream.StreamingChunk:
		r.join(m)
	case isHeld(m):
		r.held = append(r.held, m)
		return
	default:
		if m.OfMain() { // answers before it were not the last one
			for _, answer := range r.held {
				r.wait(answer)
			}
			r.held = nil
		}
		r.wait(m)
	}
	if !r.writes {
		r.writes = true
		r.start(r.write)
	}
	r.more.Set()
}

// isHeld reports whether a message belongs to the end of the run.
func isHeld(m stream.Message) bool {
	switch m.Type {
	case stream.Answer, stream.Complete, stream.RequestInput, stream.Idle, stream.Terminated:
		return m.OfMain()
	}
	return false
}

// wait appends a message that is not a chunk, unless it is stored already. The caller holds the lock.
func (r *recorder) wait(m stream.Message) {
	repeats := func(b stream.Message) bool { // the attempt has other activities
		return b.Type == m.Type && b.Workstream == m.Workstream && b.Text == m.Text && bytes.Equal(b.Details, m.Details)
	}
	if i := slices.IndexFunc(r.before, repeats); i >= 0 {
		r.before = slices.Delete(r.before, i, i+1)
		return
	}
	r.waiting = append(r.waiting, m)
}

// join appends a chunk, or adds it to the last one as far as there is room. The caller holds the lock.
func (r *recorder) join(m stream.Message) {
	if n := len(r.waiting); n > 0 {
		last := r.waiting[n-1]
		if last.Type == stream.StreamingChunk && last.ActivityID == m.ActivityID && last.Workstream == m.Workstream && len(last.Details)+len(m.Details) == 0 {
			m.Text, r.waiting = last.Text+m.Text, r.waiting[:n-1]
		}
	}
	r.waiting = append(r.waiting, m.Cut(chunkChars)...)
}

// write stores the waiting messages until stop or a lost claim.
func (r *recorder) write() {
	defer close(r.done)
	for {
		select {
		case <-r.stopping:
			return
		case <-r.more:
		}
		if !r.save() {
			return
		}
		if r.chunks { // meanwhile tokens gather
			select {
			case <-r.stopping:
				return
			case <-time.After(chunkTime):
			}
		}
	}
}

// save stores the waiting messages. If the store cannot take them now, they wait for the next
// message or for the end of the run. They are lost if the outcome of a write stays unknown. It
// returns false if the claim is lost.
func (r *recorder) save() bool {
	r.mu.Lock()
	batch := r.waiting[:min(len(r.waiting), maxBatch)]
	r.waiting = r.waiting[len(batch):]
	if len(r.waiting) > 0 {
		r.more.Set()
	}
	r.mu.Unlock()
	if len(batch) == 0 {
		return true
	}
	err := r.store(batch)
	fenced := errors.Is(err, storage.ErrFenced)
	switch {
	case err == nil:
	case fenced, storage.Unavailable(err) && !errors.Is(err, storage.ErrUnclear):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting = slices.Concat(batch, r.waiting)
	default:
		r.log.Error("messages of a run are lost", "run", r.run.ID, "messages", len(batch), "err", err)
	}
	return !fenced
}

// stop ends the writing; no message is added then. It returns the messages that are not stored, and those that were
// held back.
func (r *recorder) stop() (rest, held []stream.Message) {
	close(r.stopping)
	if r.writes {
		<-r.done
	}
	isChunk := func(m stream.Message) bool { return m.Type == stream.StreamingChunk }
	return slices.DeleteFunc(r.waiting, isChunk), r.held
}
