package live

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// maxBatch bounds the events that are accepted concurrently.
	maxBatch = 256
	// acceptPause is the wait before events that the store did not take are offered again.
	acceptPause = 100 * time.Millisecond
	// noteTime bounds what the adapter stores by itself about one event. Then the event is offered
	// again.
	noteTime = 2 * time.Second
)

// received is an event in the order of its arrival.
type received struct {
	body    []byte
	at      time.Time
	seq     int64 // 0 if the frame cannot be read
	name    string
	data    json.RawMessage
	session string
}

// accepts passes the events of a shard to the inbox, in their order. Many are in flight at a
// time. They outlive the connection: the events that wait for the store when it ends are not
// sent again.
type accepts struct {
	*shard
	inbox     adapters.Inbox
	committed atomic.Int64 // the sequence up to which every event is committed
	answers   sync.WaitGroup
	upserting atomic.Bool // the commands are being registered

	mu      sync.Mutex
	waiting []received
	size    int
	busy    bool // a batch is on its way
	changed chan struct{}
}

var errTooSlow = errors.New("too many events wait for the store")

// add appends an event. It never waits. Its error ends the connection; the event is then sent
// again in the resumed session.
func (a *accepts) add(r received) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.size+len(r.body) > a.Limits.Waiting {
		return errTooSlow
	}
	a.waiting, a.size = append(a.waiting, r), a.size+len(r.body)
	a.signal()
	return nil
}

// signal wakes the waiting goroutines. The caller holds the lock.
func (a *accepts) signal() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// drained waits until no event waits for the store. It returns false if ctx ends first.
func (a *accepts) drained(ctx context.Context) bool {
	for {
		a.mu.Lock()
		idle, changed := len(a.waiting) == 0 && !a.busy, a.changed
		a.mu.Unlock()
		if idle {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// run passes events to the inbox until ctx ends.
func (a *accepts) run(ctx context.Context) {
	defer a.answers.Wait()
	for {
		a.mu.Lock()
		n := min(len(a.waiting), maxBatch)
		batch, changed := a.waiting[:n:n], a.changed
		a.waiting, a.busy = a.waiting[n:], n > 0
		a.mu.Unlock()
		if n > 0 {
			a.all(ctx, batch)
			a.done(batch)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// done notes that a batch is no longer on its way.
func (a *accepts) done(batch []received) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range batch {
		a.size -= len(r.body)
	}
	a.busy = false
	a.signal()
}

// all accepts a batch. The events that fail are offered again, in their order, until ctx ends.
// Then the sequence moves on.
func (a *accepts) all(ctx context.Context, batch []received) {
	open := batch
	for {
		if open = a.offer(ctx, open); len(open) == 0 {
			break
		}
		if !wake.After(ctx, acceptPause) {
			return
		}
	}
	for _, r := range batch {
		if r.seq > 0 {
			a.committed.Store(r.seq)
		}
	}
}

// offer submits events to the inbox in their order, and returns those that failed.
func (a *accepts) offer(ctx context.Context, batch []received) (failed []received) {
	errs := adapters.InOrder(ctx, len(batch), func(i int, placed func(), series *event.Batch) error {
		return a.accept(ctx, batch[i], placed, series)
	})
	for i, err := range errs {
		if err != nil {
			failed = append(failed, batch[i])
		}
	}
	return failed
}

// accept accepts one event. Events about servers and channels change the adapter's memory alone.
func (a *accepts) accept(ctx context.Context, r received, placed func(), series *event.Batch) (err error) {
	defer adapters.Recover(a.link.Log, &err)
	storing := context.WithoutCancel(ctx)
	noting, cancel := context.WithTimeout(storing, noteTime)
	defer cancel()
	var asked payload.Interaction
	switch {
	case r.name == "READY", r.name == "RESUMED":
		a.begun(ctx, r.name == "RESUMED")
		return nil
	case isGuildEvent(r.name):
		return a.learnGuild(noting, r)
	case r.name == "INTERACTION_CREATE":
		if r, asked, err = a.noteInteraction(noting, r); err != nil {
			return err
		}
	}
	envelope := event.Envelope{
		Workspace: a.workspace, Platform: event.Discord, Transport: "gateway", ReceivedAt: r.at, Body: withSession(r), Queued: placed, Batch: series,
	}
	p := payload.Of(envelope)
	envelope.Parsed = p
	if err := a.noteMessage(noting, p); err != nil {
		return err
	}
	if parent := a.memory.Servers.Parent(p.Place()); parent != "" {
		envelope.Body = payload.WithMember(envelope.Body, "parent_id", parent)
		p.SetParent(parent)
	}
	receipt, err := a.inbox.Accept(storing, envelope)
	if err != nil {
		return err
	}
	if channel, id, ok := p.Target(); ok && r.name == "MESSAGE_CREATE" {
		a.memory.Coverage.Heard(channel, id)
	}
	if asked.ID != "" {
		a.answers.Go(func() { a.respond(ctx, a.inbox, receipt, asked) })
	}
	return nil
}

// begun reports that events can arrive, and lets the first shard register the commands.
func (a *accepts) begun(ctx context.Context, continues bool) {
	self := a.memory.Servers.Self()
	if !continues {
		a.memory.Coverage.Broke(a.client.Now())
	}
	a.begins(self, continues)
	if a.id == 0 && a.link.Wants().AnyServer {
		a.warned.Do(func() { a.answers.Go(func() { a.warn(ctx, a.link) }) })
	}
	if !continues && a.id == 0 && a.settings.Commands && a.upserting.CompareAndSwap(false, true) {
		a.answers.Go(func() {
			defer a.upserting.Store(false)
			a.upsertCommands(ctx, self.AppID)
		})
	}
}

// withSession adds the session's id to a frame. With the sequence it identifies a reaction.
func withSession(r received) []byte {
	if r.session == "" || r.seq == 0 {
		return r.body
	}
	return payload.WithMember(r.body, "session_id", r.session)
}

// noteMessage notes the nonce of a message of ours, and the channel of a direct message.
func (a *accepts) noteMessage(ctx context.Context, p *payload.Payload) error {
	if nonce, id, ok := p.OwnPost(a.memory.Servers.Self()); ok {
		a.memory.Nonces.Add(nonce, id)
	}
	if channel := p.DirectChannel(); channel != "" {
		return a.memory.Servers.RememberDirect(ctx, a.memory.State, channel)
	}
	return nil
}
