package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// acceptTimeout is how long a platform waits for custody at the most; Slack
	// gives up after three seconds.
	acceptTimeout = 2 * time.Second
	// acceptBytes bounds the envelopes that wait for custody at one time.
	acceptBytes = 64 << 20
	// intakeWorkers is how many threads' envelopes are worked on at once. They
	// wait for names at times, and for commits always.
	intakeWorkers = 64
	// lookEvery is how often who waits for an envelope's end looks into the store:
	// another node may have the thread.
	lookEvery = 100 * time.Millisecond
)

// Turns is told what intake has recorded, so that a run can begin, be cancelled
// or be interrupted. It is called by the thread's intake, and must not block.
type Turns interface {
	Recorded(thread int64, agent string, outcome journal.Outcome)
}

// Observer sees each envelope's end: for metrics, and for replay. It is called
// concurrently. Envelope is 0 for a payload that was in custody already.
type Observer interface {
	Settled(workspace string, envelope int64, outcome journal.Outcome)
}

// Ingest takes custody of envelopes and turns them into the thread's events.
type Ingest struct {
	journal  *journal.Journal
	desk     *journal.Desk
	turns    Turns
	observer Observer
	log      *slog.Logger
	now      func() time.Time

	workspaces atomic.Pointer[map[scope]*workspace]
	waiting    atomic.Int64 // bytes
	refusals   refusals

	mu      sync.Mutex
	waiters map[int64][]chan struct{}
	handed  map[int64]task // by thread
	// handedBytes is the size of what is handed.
	handedBytes int
}

var _ adapters.Inbox = (*Ingest)(nil)

// Parts are what Ingest works with.
type Parts struct {
	Journal  *journal.Journal
	Desk     *journal.Desk
	Turns    Turns
	Observer Observer
	Log      *slog.Logger
	Now      func() time.Time
}

// New returns an Ingest without workspaces; see Configure.
func New(p Parts) *Ingest {
	in := &Ingest{journal: p.Journal, desk: p.Desk, turns: p.Turns, observer: p.Observer, log: p.Log, now: p.Now,
		waiters: map[int64][]chan struct{}{}, handed: map[int64]task{}}
	in.workspaces.Store(&map[scope]*workspace{})
	return in
}

// Configure sets the workspaces, at the start and at a reload. What is
// remembered of those that stay is kept.
func (in *Ingest) Configure(ctx context.Context, list []Workspace) error {
	before := *in.workspaces.Load()
	next := make(map[scope]*workspace, len(list))
	var served []string
	for _, w := range list {
		served = append(served, w.ID)
		at := scope{w.Platform, w.ID}
		if known := before[at]; known != nil {
			next[at] = &workspace{w, known.memory}
			continue
		}
		self, err := in.journal.Self(ctx, w.ID)
		if err != nil {
			return fmt.Errorf("read who we are in %s: %w", w.ID, err)
		}
		next[at] = &workspace{w, &memory{id: w.ID, journal: in.journal, self: self, channels: map[string]event.ChannelType{}}}
	}
	in.workspaces.Store(&next)
	in.journal.Serve(served)
	return nil
}

func (in *Ingest) workspace(platform event.Platform, id string) *workspace {
	return (*in.workspaces.Load())[scope{platform, id}]
}

// Accept implements adapters.Inbox.
func (in *Ingest) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	w := in.workspace(envelope.Platform, envelope.Workspace)
	if w == nil {
		return adapters.Receipt{}, fmt.Errorf("workspace %q is not configured", envelope.Workspace)
	}
	size := int64(len(envelope.Body))
	if in.waiting.Add(size) > acceptBytes {
		in.waiting.Add(-size)
		w.misses(envelope)
		return adapters.Receipt{}, adapters.ErrBusy
	}
	defer in.waiting.Add(-size)

	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	t := task{Pending: journal.Pending{Envelope: envelope}}
	custody, err := in.custody(ctx, w, &t, true)
	if err != nil {
		in.refused(w.id, err)
		w.misses(envelope)
		return adapters.Receipt{}, errors.Join(adapters.ErrBusy, err)
	}
	if !custody.Duplicate {
		in.refusals.over()
	}
	in.accepted(w, t, custody)
	waits := !custody.Duplicate && custody.Settled == nil && custody.Thread == 0
	return adapters.Receipt{ID: custody.ID, Duplicate: custody.Duplicate, Waits: waits}, nil
}

// custody makes an envelope durable: in its thread, or aside where it may be.
func (in *Ingest) custody(ctx context.Context, w *workspace, t *task, mayWait bool) (custody journal.Custody, err error) {
	envelope := t.Envelope
	if introduce := w.config.Introduce; introduce != nil {
		if err := in.setSelf(ctx, w, introduce(envelope.Body, w.Self())); err != nil {
			return custody, err
		}
	}
	if err := in.keys(ctx, w, t); err != nil {
		return custody, err
	}
	learn := w.news(t.keys.Channel)
	a := journal.Acceptance{Envelope: envelope, Keys: t.keys, LearnChannel: learn}
	if mayWait {
		if custody, aside, err := w.aside(ctx, a); aside || err != nil {
			return custody, err
		}
	}
	a.Claim = in.desk.Soon(journal.Intake, "")
	custody, err = in.journal.Accept(ctx, a)
	if err == nil && learn {
		w.remember(t.keys.Channel)
	}
	t.ID = custody.ID
	return custody, err
}

// keys reads an envelope's keys. One that makes its normaliser panic is a dead
// letter, known by its bytes.
func (in *Ingest) keys(ctx context.Context, w *workspace, t *task) error {
	err := guard(func() (err error) {
		t.keys, t.facts, err = w.keys(ctx, t.Envelope)
		return err
	})
	var panicked *panicError
	if errors.As(err, &panicked) {
		in.log.Error("a payload's keys can't be read", "workspace", w.id, "err", err, "stack", string(panicked.stack))
		sum := sha256.Sum256(t.Envelope.Body)
		t.keys = event.Keys{Kind: event.KindOther, Dedupe: "body:" + hex.EncodeToString(sum[:]), Settled: event.Refuse(err)}
		return nil
	}
	return err
}

// accepted hands what is durable now to the thread's intake.
func (in *Ingest) accepted(w *workspace, t task, custody journal.Custody) {
	switch {
	case custody.Duplicate:
		in.observer.Settled(w.id, 0, journal.Outcome{Kind: t.keys.Kind, Fate: event.Fate{Disposition: event.Duplicate}})
	case custody.Settled != nil:
		in.settled(w.id, custody.ID, journal.Outcome{Kind: t.keys.Kind, Trigger: journal.TriggerNone, Fate: *custody.Settled})
	case custody.Thread != 0:
		if custody.Only && custody.Fence != 0 && t.keys.Needs == "" {
			in.hand(custody.Thread, t)
		}
		in.desk.Accepted(custody)
	}
}

// maxHanded and handedBytes bound the envelopes that are in memory for an intake
// that has not begun; the others are read from the store.
const maxHanded, handedBytes = 2048, 16 << 20

// hand keeps an envelope that is the only one of its thread for its intake.
func (in *Ingest) hand(thread int64, t task) {
	in.mu.Lock()
	defer in.mu.Unlock()
	size := in.handedBytes + len(t.Envelope.Body)
	if _, full := in.handed[thread]; !full && len(in.handed) < maxHanded && size <= handedBytes {
		in.handedBytes = size
		in.handed[thread] = t
	}
}

// takeHanded returns the envelope that was kept for a thread's intake.
func (in *Ingest) takeHanded(thread int64) (task, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	p, ok := in.handed[thread]
	in.handedBytes -= len(p.Envelope.Body)
	delete(in.handed, thread)
	return p, ok
}

// settled tells whoever waits that an envelope has come to its end.
func (in *Ingest) settled(workspace string, envelope int64, outcome journal.Outcome) {
	in.observer.Settled(workspace, envelope, outcome)
	in.mu.Lock()
	waiters := in.waiters[envelope]
	delete(in.waiters, envelope)
	in.mu.Unlock()
	for _, waiter := range waiters {
		close(waiter)
	}
}

// Wait returns an envelope's end once it has come; nil where ctx ends before.
func (in *Ingest) Wait(ctx context.Context, envelope int64) (*journal.Settled, error) {
	done := make(chan struct{})
	in.mu.Lock()
	in.waiters[envelope] = append(in.waiters[envelope], done)
	in.mu.Unlock()
	defer in.forget(envelope, done)

	elsewhere := time.NewTicker(lookEvery)
	defer elsewhere.Stop()
	for {
		settled, err := in.journal.Envelope(ctx, envelope)
		switch {
		case settled != nil:
			return settled, nil
		case ctx.Err() != nil:
			return nil, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-done:
			return in.journal.Envelope(ctx, envelope)
		case <-elsewhere.C:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (in *Ingest) forget(envelope int64, done chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	left := in.waiters[envelope][:0:0]
	for _, waiter := range in.waiters[envelope] {
		if waiter != done {
			left = append(left, waiter)
		}
	}
	if len(left) == 0 {
		delete(in.waiters, envelope)
	} else {
		in.waiters[envelope] = left
	}
}
