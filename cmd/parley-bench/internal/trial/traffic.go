package trial

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/ingest/wake"
)

// Traffic is a load of messages and of further events about them. The fake of Slack
// delivers the events by its own rules: to the hook or over sockets, and again after a
// failure.
type Traffic struct {
	*Trial
	Conversations []*ledger.Conversation
	// Workers is the number of concurrent senders, which share the conversations. Each
	// sends its next message when Slack has finished the events of the last one. 0 means
	// one for each conversation.
	Workers int
	// Rate is the number of messages per second of all workers; 0 for no limit. With a
	// rate, the time of a message is its planned time, so a worker's delay counts.
	Rate           float64
	Messages, Each int // the number of all workers, or of each worker; 0 for no limit
	// Bare sends one event for each message and keeps the message away from Slack's API.
	// Each worker goes around its conversations.
	Bare   bool
	Mix    Mix
	Stream uint64 // the draws of the first worker, from which the others count on
}

// Mix is the probability of each further event for a message.
type Mix struct {
	Twice   float64 // the message event is delivered twice at the same moment
	Again   float64 // the event of an older message is delivered once more
	Edits   float64
	Deletes float64
	Reacts  float64
}

// Run sends until stop is closed or all messages are sent. It returns early when ctx ends.
func (t Traffic) Run(ctx context.Context, stop <-chan struct{}) {
	t.Workers = cmp.Or(t.Workers, len(t.Conversations))
	t.Messages = cmp.Or(t.Messages, t.Each*t.Workers)
	times := make(chan time.Time)
	var group sync.WaitGroup
	for n := range t.Workers {
		w := &worker{Traffic: t, random: t.Draws(1 + t.Stream + uint64(n))}
		w.Conversations = nil
		for i := n; i < len(t.Conversations); i += t.Workers {
			w.Conversations = append(w.Conversations, t.Conversations[i])
		}
		group.Go(func() { w.run(ctx, times) })
	}
	t.pace(ctx, stop, times)
	group.Wait()
}

// pace sends each message's planned time, zero without a rate, to the workers, and closes
// the channel after the last one. A delay of more than a second is not made up for.
func (t Traffic) pace(ctx context.Context, stop <-chan struct{}, times chan<- time.Time) {
	defer close(times)
	var at time.Time
	for n := 0; t.Messages == 0 || n < t.Messages; n++ {
		if t.Rate > 0 {
			at = at.Add(time.Duration(float64(time.Second) / t.Rate))
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

// During runs a load while action runs. Then it closes the load's channel and waits for
// the load.
func During(load func(stop <-chan struct{}), action func() error) error {
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { load(stop) })
	err := action()
	close(stop)
	group.Wait()
	return err
}

// Endless is a number of messages that no run reaches.
const Endless = math.MaxInt

// Pump calls say n times at a rate, or until stop is closed. It makes up for every delay.
func Pump(ctx context.Context, rate float64, n int, stop <-chan struct{}, say func()) {
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

// Repeat calls do n times, each time after a random pause of less than longest.
func Repeat(ctx context.Context, random *rand.Rand, n int, longest time.Duration, do func() error) error {
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
	Traffic
	random *rand.Rand
	said   []*ledger.Message // acknowledged messages
}

func (w *worker) run(ctx context.Context, times <-chan time.Time) {
	for n := 0; w.Each == 0 || n < w.Each; n++ {
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
func (w *worker) recent() *ledger.Message {
	return w.said[len(w.said)-1-w.random.IntN(min(4, len(w.said)))]
}

// message sends the worker's n-th message, and further events about its last ones.
func (w *worker) message(ctx context.Context, n int, at time.Time) {
	if w.Bare {
		m := w.Ledger.Say(w.Conversations[n%len(w.Conversations)])
		w.Await(ctx, m, at, w.Push(m))
		return
	}
	m, deliveries := w.Say(w.Conversations[w.random.IntN(len(w.Conversations))], false)
	if w.chance(w.Mix.Twice) {
		deliveries = append(deliveries, w.Push(m))
	}
	w.Await(ctx, m, at, deliveries...)
	if m.Attempts == 0 {
		return
	}
	w.said = append(w.said, m)
	if w.chance(w.Mix.Edits) {
		w.Edit(ctx, w.recent())
	}
	if old := w.recent(); w.chance(w.Mix.Deletes) && old.Deleted == nil {
		old.Deleted = &ledger.Span{Sent: time.Now()}
		old.Deleted.Acked, _ = deliver(ctx, w.API.Push(w.API.Delete(old.Place.Channel, old.TS)))
	}
	if old := w.recent(); w.chance(w.Mix.Reacts) && old.Deleted == nil {
		_, _ = deliver(ctx, w.API.Push(w.API.React(old.Place.Channel, old.TS, ledger.User(m.ID), "eyes"))) // it changes no reply
	}
	if w.chance(w.Mix.Again) {
		_, _ = deliver(ctx, w.Push(w.said[w.random.IntN(len(w.said))])) // Slack sends it until it is acknowledged
	}
}

// Say puts a conversation's next message on Slack, which sends its events: a message
// event, and in a channel an app_mention. From now on the message must get a reply,
// since the daemon can read it, unless it is in a channel and unaddressed.
func (t *Trial) Say(c *ledger.Conversation, unaddressed bool) (*ledger.Message, []slacktest.Delivery) {
	unaddressed = unaddressed && c.Place.Channel[0] != 'D'
	m := t.Ledger.Add(c, ledger.Message{Unaddressed: unaddressed, Silent: unaddressed, OnSlack: true})
	said, deliveries := t.API.Say(m.Slack())
	c.SetTS(m, said.TS)
	return m, deliveries
}

// Put puts a message on Slack without an event. It must get no reply.
func (t *Trial) Put(c *ledger.Conversation, ts string) {
	m := t.Ledger.Add(c, ledger.Message{Silent: true})
	said := m.Slack()
	c.SetTS(m, t.API.Put(slacktest.Post{Channel: said.Channel, User: said.User, Text: said.Text, TS: ts, ThreadTS: said.ThreadTS}).TS)
}

// Push sends a message's event once more.
func (t *Trial) Push(m *ledger.Message) slacktest.Delivery {
	return t.API.PushRaw(slacktest.EventsAPI, m.Slack().Event())
}

// Edit changes the message on Slack, sends the event, and waits until Slack has finished
// it. It does nothing to a deleted message.
func (t *Trial) Edit(ctx context.Context, m *ledger.Message) {
	if m.Deleted == nil {
		m.Revisions = append(m.Revisions, ledger.Span{Sent: time.Now()})
		newest := len(m.Revisions) - 1
		m.Revisions[newest].Acked, _ = deliver(ctx, t.API.Push(t.API.Edit(m.Place.Channel, m.TS, m.Text(newest))))
	}
}

// Await waits until Slack has finished a message's events. A time of the message that is
// not zero replaces the time of its sending.
func (t *Trial) Await(ctx context.Context, m *ledger.Message, at time.Time, deliveries ...slacktest.Delivery) {
	if !at.IsZero() {
		m.Revisions[0].Sent = at
	}
	m.Revisions[0].Acked, m.Attempts = deliver(ctx, deliveries...)
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
