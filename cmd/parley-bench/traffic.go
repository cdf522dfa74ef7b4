package main

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// traffic is a load of messages and of further events about them. The fake of Slack
// delivers the events by its own rules: to the hook or over sockets, and again after a
// failure.
type traffic struct {
	*trial
	conversations []*conversation
	// workers is the number of concurrent senders, which share the conversations. Each
	// sends its next message when Slack has finished the events of the last one. 0 means
	// one for each conversation.
	workers int
	// rate is the number of messages per second of all workers; 0 for no limit. With a
	// rate, the time of a message is its planned time, so a worker's delay counts.
	rate           float64
	messages, each int // the number of all workers, or of each worker; 0 for no limit
	// bare sends one event for each message and keeps the message away from Slack's API.
	// Each worker goes around its conversations.
	bare   bool
	mix    mix
	stream uint64 // the draws of the first worker, from which the others count on
}

// mix is the probability of each further event for a message.
type mix struct {
	twice   float64 // the message event is delivered twice at the same moment
	again   float64 // the event of an older message is delivered once more
	edits   float64
	deletes float64
	reacts  float64
}

// run sends until stop is closed or all messages are sent. It returns early when ctx ends.
func (t traffic) run(ctx context.Context, stop <-chan struct{}) {
	t.workers = cmp.Or(t.workers, len(t.conversations))
	t.messages = cmp.Or(t.messages, t.each*t.workers)
	times := make(chan time.Time)
	var group sync.WaitGroup
	for n := range t.workers {
		w := &worker{traffic: t, random: t.draws(1 + t.stream + uint64(n))}
		w.conversations = nil
		for i := n; i < len(t.conversations); i += t.workers {
			w.conversations = append(w.conversations, t.conversations[i])
		}
		group.Go(func() { w.run(ctx, times) })
	}
	t.pace(ctx, stop, times)
	group.Wait()
}

// pace sends each message's planned time, zero without a rate, to the workers, and closes
// the channel after the last one. A delay of more than a second is not made up for.
func (t traffic) pace(ctx context.Context, stop <-chan struct{}, times chan<- time.Time) {
	defer close(times)
	var at time.Time
	for n := 0; t.messages == 0 || n < t.messages; n++ {
		if t.rate > 0 {
			at = at.Add(time.Duration(float64(time.Second) / t.rate))
			if now := time.Now(); at.Before(now.Add(-time.Second)) {
				at = now
			}
			wake.After(ctx, time.Until(at))
		}
		select {
		case times <- at:
		case <-stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// during runs a load while action runs. Then it closes the load's channel and waits for
// the load.
func during(load func(stop <-chan struct{}), action func() error) error {
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { load(stop) })
	err := action()
	close(stop)
	group.Wait()
	return err
}

// endless is a number of messages that no run reaches.
const endless = math.MaxInt

// pump calls say n times at a rate, or until stop is closed. It makes up for every delay.
func pump(ctx context.Context, rate float64, n int, stop <-chan struct{}, say func()) {
	begun := time.Now()
	for said := 0; said < n; {
		for due := min(n, int(time.Since(begun).Seconds()*rate)); said < due; said++ {
			say()
		}
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// repeat calls do n times, each time after a random pause of less than longest.
func repeat(ctx context.Context, random *rand.Rand, n int, longest time.Duration, do func() error) error {
	for range n {
		if !wake.After(ctx, time.Duration(random.Int64N(int64(longest)))) {
			return ctx.Err()
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// worker is one sender of a traffic with its own conversations.
type worker struct {
	traffic
	random *rand.Rand
	said   []*message // acknowledged messages
}

func (w *worker) run(ctx context.Context, times <-chan time.Time) {
	for n := 0; w.each == 0 || n < w.each; n++ {
		at, more := <-times
		if !more {
			return
		}
		w.message(ctx, n, at)
	}
}

// chance returns true with probability p.
func (w *worker) chance(p float64) bool { return w.random.Float64() < p }

// recent returns one of the worker's last messages: it is followed by 0 to 3 others.
func (w *worker) recent() *message {
	return w.said[len(w.said)-1-w.random.IntN(min(4, len(w.said)))]
}

// message sends the worker's n-th message, and further events about its last ones.
func (w *worker) message(ctx context.Context, n int, at time.Time) {
	if w.bare {
		m := w.ledger.say(w.conversations[n%len(w.conversations)])
		w.await(ctx, m, at, w.push(m))
		return
	}
	m, deliveries := w.say(w.conversations[w.random.IntN(len(w.conversations))], false)
	if w.chance(w.mix.twice) {
		deliveries = append(deliveries, w.push(m))
	}
	w.await(ctx, m, at, deliveries...)
	if m.attempts == 0 {
		return
	}
	w.said = append(w.said, m)
	if w.chance(w.mix.edits) {
		w.edit(ctx, w.recent())
	}
	if old := w.recent(); w.chance(w.mix.deletes) && old.deleted == nil {
		old.deleted = &span{sent: time.Now()}
		old.deleted.acked, _ = deliver(ctx, w.api.Push(w.api.Delete(old.place.channel, old.ts)))
	}
	if old := w.recent(); w.chance(w.mix.reacts) && old.deleted == nil {
		_, _ = deliver(ctx, w.api.Push(w.api.React(old.place.channel, old.ts, user(m.id), "eyes"))) // it changes no reply
	}
	if w.chance(w.mix.again) {
		_, _ = deliver(ctx, w.push(w.said[w.random.IntN(len(w.said))])) // Slack sends it until it is acknowledged
	}
}

// say puts a conversation's next message on Slack, which sends its events: a message
// event, and in a channel an app_mention. From now on the message must get a reply,
// since the daemon can read it, unless it is in a channel and unaddressed.
func (t *trial) say(c *conversation, unaddressed bool) (*message, []slacktest.Delivery) {
	unaddressed = unaddressed && c.place.channel[0] != 'D'
	m := t.ledger.add(c, message{unaddressed: unaddressed, silent: unaddressed, onSlack: true})
	said, deliveries := t.api.Say(m.slack())
	c.setTS(m, said.TS)
	return m, deliveries
}

// put puts a message on Slack without an event. It must get no reply.
func (t *trial) put(c *conversation, ts string) {
	m := t.ledger.add(c, message{silent: true})
	said := m.slack()
	c.setTS(m, t.api.Put(slacktest.Post{Channel: said.Channel, User: said.User, Text: said.Text, TS: ts, ThreadTS: said.ThreadTS}).TS)
}

// push sends a message's event once more.
func (t *trial) push(m *message) slacktest.Delivery {
	return t.api.PushRaw(slacktest.EventsAPI, m.slack().Event())
}

// edit changes the message on Slack, sends the event, and waits until Slack has finished
// it. It does nothing to a deleted message.
func (t *trial) edit(ctx context.Context, m *message) {
	if m.deleted == nil {
		m.revisions = append(m.revisions, span{sent: time.Now()})
		newest := len(m.revisions) - 1
		m.revisions[newest].acked, _ = deliver(ctx, t.api.Push(t.api.Edit(m.place.channel, m.ts, m.text(newest))))
	}
}

// await waits until Slack has finished a message's events. A time of the message that is
// not zero replaces the time of its sending.
func (t *trial) await(ctx context.Context, m *message, at time.Time, deliveries ...slacktest.Delivery) {
	if !at.IsZero() {
		m.revisions[0].sent = at
	}
	m.revisions[0].acked, m.attempts = deliver(ctx, deliveries...)
}

// deliver waits until Slack has finished some events. It returns the time of the first
// acknowledgement and the number of that event's attempts; 0 if no event was
// acknowledged.
func deliver(ctx context.Context, deliveries ...slacktest.Delivery) (acked time.Time, attempts int) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, d := range deliveries {
		group.Go(func() {
			end, err := d.Wait(ctx)
			now := time.Now()
			mu.Lock()
			defer mu.Unlock()
			if err == nil && end.State == slacktest.Acked && attempts == 0 {
				acked, attempts = now, end.Attempts
			}
		})
	}
	group.Wait()
	return acked, attempts
}
