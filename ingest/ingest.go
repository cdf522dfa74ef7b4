package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
	"parley/ingest/work"
)

const (
	// acceptTimeout bounds how long a platform waits for the durable accept; Slack
	// gives up after three seconds.
	acceptTimeout = 2 * time.Second
	// acceptBytes bounds the envelopes that wait for the durable accept.
	acceptBytes = 64 << 20
	// lookEvery is the interval at which Wait reads the store.
	lookEvery = 100 * time.Millisecond
	// maxPayload bounds the body of an envelope that Accept hands to intake in
	// memory. Intake reads larger ones from the store.
	maxPayload = 16 << 10
)

// Turns hears what intake has recorded, so that a run can begin, be cancelled or be
// interrupted. It must not block.
type Turns interface {
	// Recorded is called by the thread's intake.
	Recorded(c *work.Claim, agent string, result record.Result)
	// Unasked tells that nobody has answered the question of an agent's run in time.
	Unasked(agent string, thread int64, run string)
}

// Observer hears of each payload, for metrics, operators and replay. It is called concurrently.
type Observer interface {
	// Accepted tells of a payload that has become durable, before Processed tells of its result. thread is empty if the
	// payload names only a message.
	Accepted(envelope *event.Envelope, thread event.ThreadKey)
	// Processed tells of the result of an envelope, of which not everything may be known. Its ID is 0 for a payload that was stored
	// already.
	Processed(p *envelopes.Pending, result record.Result)
}

// Notifier formats what Parley itself says to the sender of a message, and knows where people read it.
type Notifier interface {
	// Notice returns the posts that show a text to the author of a run's last message; none
	// if the platform has no way to show it, or if it fails.
	Notice(run *runs.Run, text string) []outbox.Post
	// Announce returns the posts that show people a message, to the thread of a run; none if the platform shows it
	// already, or if it fails.
	Announce(run *runs.Run, m *event.Message) []outbox.Post
	// Clear returns the posts that remove the signs of work which the platform shows by itself below the
	// messages of a run's thread, up to the run's last one.
	Clear(run *runs.Run) []outbox.Post
	// Above returns the key of the thread of ours whose first post has an external id, so that people answer it in the thread
	// under that post; empty for none.
	Above(ctx context.Context, workspace, post string) (event.ThreadKey, error)
}

// Parts are the components that Ingest uses.
type Parts struct {
	Journal  *journal.Journal
	Work     *work.Scheduler
	Turns    Turns
	Observer Observer
	Notices  Notifier
	Pauses   *Pauses // nil for none
	// Strangers has the decisions about strangers; nil for none. ServeStrangers needs it.
	Strangers *Strangers
	Log       *slog.Logger
	Now       func() time.Time
}

// Ingest accepts envelopes and records them as the events of their threads.
type Ingest struct {
	Parts
	workspaces atomic.Pointer[map[scope]*workspace]
	waiting    atomic.Int64 // in bytes
	refusals   refusals
	waiters    wake.Group[int64] // by envelope id
}

var (
	_ adapters.Inbox   = (*Ingest)(nil)
	_ adapters.Results = (*Ingest)(nil)
)

// New returns an Ingest without workspaces; see Configure.
func New(p Parts) *Ingest {
	in := &Ingest{Parts: p}
	in.workspaces.Store(&map[scope]*workspace{})
	return in
}

// Configure sets the workspaces, at the start and at a reload. A workspace that remains
// keeps its memory.
func (in *Ingest) Configure(ctx context.Context, list []Workspace) error {
	before := *in.workspaces.Load()
	next := make(map[scope]*workspace, len(list))
	var served []string
	for _, config := range list {
		at := scope{config.Platform, config.ID}
		config.Normalizer = withOurs{config.Normalizer}
		w := &workspace{config: config, strangers: in.Strangers}
		if known := before[at]; known != nil {
			w.memory = known.memory
		} else {
			w.memory = &memory{since: in.Now(), channels: map[string]knownType{}}
			w.self.Store(&event.Self{})
			if err := in.readSelf(ctx, w); err != nil {
				return err
			}
		}
		next[at], served = w, append(served, config.ID)
	}
	in.workspaces.Store(&next)
	in.Work.Serves(served)
	in.Strangers.Changed()
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
	defer in.waiting.Add(-size)
	if in.waiting.Add(size) > acceptBytes {
		in.lost(w, envelope)
		return adapters.Receipt{}, adapters.ErrBusy
	}
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	keys, stored, recorded, err := in.store(ctx, w, &envelope)
	if err != nil {
		in.refused(w.config.ID, err)
		in.lost(w, envelope)
		return adapters.Receipt{}, errors.Join(adapters.ErrBusy, err)
	}
	receipt := adapters.Receipt{ID: stored.ID, MessageUUID: stored.MessageUUID, Thread: keys.Thread, Duplicate: stored.Duplicate}
	if !recorded {
		in.Observer.Accepted(&envelope, keys.Thread)
	}
	if stored.Duplicate {
		in.repeated(&envelope, keys)
		return receipt, nil
	}
	in.StoreWorks()
	w.arrived(envelope, keys.Channel.ID)
	switch {
	case stored.Result != nil:
		in.settledAtOnce(pendingOf(stored, envelope, keys), keys.Thread, *stored.Result)
	case stored.Thread == 0:
		receipt.Waits = true
	case recorded: // and its turn has begun
	case stored.Only && keys.Needs == "" && len(envelope.Body) <= maxPayload:
		in.Work.Accepted(stored, task{pendingOf(stored, envelope, keys), &keys})
	default:
		in.Work.Accepted(stored, nil)
	}
	return receipt, nil
}

// pendingOf returns an envelope as it was accepted.
func pendingOf(stored envelopes.AcceptResult, envelope event.Envelope, keys event.Keys) envelopes.Pending {
	return envelopes.Pending{
		ID: stored.ID, Envelope: envelope, AcceptedAt: stored.At, MessageUUID: stored.MessageUUID, Kind: keys.Kind, MessageID: keys.MessageID, Dedupe: keys.Dedupe,
	}
}

// store makes an envelope durable. If that takes no wait, it also records the envelope's message in the same
// transaction.
func (in *Ingest) store(ctx context.Context, w *workspace, envelope *event.Envelope) (keys event.Keys, result envelopes.AcceptResult, recorded bool, err error) {
	if keys, err = in.readKeys(ctx, w, envelope); err != nil {
		return keys, result, false, err
	}
	if envelope.Transport == event.Backfilled { // most of these messages are stored already
		if result, err = in.Journal.Envelopes.Accepted(ctx, w.config.ID, keys.Dedupe); !errors.Is(err, storage.ErrNotFound) {
			return keys, result, false, err
		}
	}
	learn := w.news(keys.Channel)
	result, recorded, err = in.accept(ctx, w, envelopes.AcceptRequest{
		Envelope: *envelope, Keys: keys, LearnChannel: learn, Claim: in.Work.Room(work.Intake, "", ""),
	})
	if err == nil && learn {
		w.remember(keys.Channel)
	}
	return keys, result, recorded, err
}

// readKeys reads the keys of an envelope. If that panics, the envelope is a dead letter, and a hash of its
// bytes is its dedupe key.
func (in *Ingest) readKeys(ctx context.Context, w *workspace, envelope *event.Envelope) (keys event.Keys, err error) {
	err = in.guard(func() (err error) {
		keys, err = in.keys(ctx, w, envelope)
		return err
	})
	if errors.Is(err, adapters.ErrPanic) {
		return event.Keys{Kind: event.KindOther, Dedupe: adapters.BodyKey(envelope.Body), Result: event.Refuse(err)}, nil
	}
	return keys, err
}

// repeated reports an envelope that is stored already. The read of missed messages tells of its own.
func (in *Ingest) repeated(envelope *event.Envelope, keys event.Keys) {
	if envelope.Transport != event.Backfilled {
		in.Log.Debug("a repeated payload is known", "workspace", envelope.Workspace, "kind", keys.Kind, "thread", keys.Thread, "key", keys.Dedupe)
	}
	in.Observer.Processed(&envelopes.Pending{Envelope: *envelope}, record.Result{Kind: keys.Kind, Result: event.Result{Disposition: event.Duplicate}})
}

// settledAtOnce reports an envelope whose keys have its result.
func (in *Ingest) settledAtOnce(p envelopes.Pending, thread event.ThreadKey, result event.Result) {
	if result.Disposition == event.Dead {
		in.warnDead(p, thread, result.Error)
	}
	in.processed(&p, record.Result{Kind: p.Kind, Trigger: messages.TriggerNone, Result: result})
}

// warnDead tells the operator of a dead letter, by the names that it has on its platform.
func (in *Ingest) warnDead(p envelopes.Pending, thread event.ThreadKey, cause string) {
	in.Log.Warn("a payload is a dead letter; see parley dead", "workspace", p.Envelope.Workspace, "envelope", p.ID, "kind", p.Kind,
		"thread", thread, "message", p.MessageID, "key", p.Dedupe, "err", cause)
}

// processed reports the result of an envelope to the log, unless warnDead has, to the observer and to
// every Wait.
func (in *Ingest) processed(p *envelopes.Pending, result record.Result) {
	if result.Disposition != event.Dead {
		in.Log.Debug("an envelope is processed", "workspace", p.Envelope.Workspace, "envelope", p.ID, "kind", result.Kind,
			"thread", result.Thread, "disposition", result.Disposition, "trigger", result.Trigger, "reason", result.Reason)
	}
	in.Observer.Processed(p, result)
	in.waiters.Wake(p.ID)
}

// Wait waits for an envelope's result. It returns nil if ctx ends first.
func (in *Ingest) Wait(ctx context.Context, envelope int64) (*envelopes.Result, error) {
	here, stop := in.waiters.Wait(envelope)
	defer stop()
	for {
		settled, err := in.Journal.Envelopes.Envelope(ctx, envelope)
		switch {
		case settled != nil, ctx.Err() != nil:
			return settled, nil
		case err != nil:
			return nil, err
		}
		select {
		case <-here:
		case <-time.After(lookEvery): // another node may have recorded it
		case <-ctx.Done():
		}
	}
}

// Runs implements adapters.Results.
func (in *Ingest) Runs(ctx context.Context, envelope int64) (runs, known bool) {
	settled, _ := in.Wait(ctx, envelope) // nil after an error
	if settled == nil {
		return false, false
	}
	m := settled.Message
	return m != nil && (m.Trigger == messages.TriggerRun || m.Reason == event.ReasonCommand), true
}
