package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// mix is how often a message has company, each as a probability.
type mix struct {
	twice   float64 // an event is delivered twice at the same moment
	again   float64 // an older event is delivered once more
	pairs   float64 // a message in a channel comes as message and app_mention, in either order
	edits   float64
	deletes float64
	reacts  float64
}

// pacer hands out moments, evenly spread, to all who share it.
type pacer struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time
}

func newPacer(rate float64) *pacer {
	return &pacer{every: time.Duration(float64(time.Second) / rate), next: time.Now()}
}

// wait returns when the caller's moment has come, and false where ctx ends first.
func (p *pacer) wait(ctx context.Context) bool {
	p.mu.Lock()
	if now := time.Now(); p.next.Before(now.Add(-time.Second)) {
		p.next = now // who was held up does not make up for it
	}
	at := p.next
	p.next = p.next.Add(p.every)
	p.mu.Unlock()
	return pause(ctx, time.Until(at))
}

// attempt is one try to deliver an event.
type attempt struct {
	sent, ended time.Time
	status      int // 0 where there was no answer
}

// sender is one of Slack's connections with the conversations that come over it,
// in order: the next event leaves when the last was acknowledged. An event that
// got no 200 is sent again until it gets one. What is delivered twice at the same
// moment goes over the spare route, to the same node or another.
type sender struct {
	ledger        *ledger
	route, spare  *route
	random        *rand.Rand
	mix           mix
	pacer         *pacer
	conversations []*conversation
	observe       func(attempt) // every try; nil for nobody

	recent [][]byte   // events that were acknowledged
	due    []followUp // what is still to be said of earlier messages
}

// followUp is an event about a message that was sent; it comes some messages later.
type followUp struct {
	after int
	send  func(ctx context.Context)
}

func newSender(l *ledger, b *balancer, conversations []*conversation, m mix, p *pacer, seed, stream uint64) *sender {
	random := rand.New(rand.NewPCG(seed, stream))
	nodes := len(b.backends)
	return &sender{
		ledger: l, route: b.route(random.IntN(nodes)), spare: b.route(random.IntN(nodes)), mix: m, pacer: p,
		random: random, conversations: conversations,
	}
}

// run sends until stop is closed or budget is used up, and then what is due. ctx
// ends it without that.
func (s *sender) run(ctx context.Context, stop <-chan struct{}, budget func() bool) {
	defer s.route.close()
	defer s.spare.close()
	for ctx.Err() == nil && !closed(stop) && budget() && s.pacer.wait(ctx) {
		s.message(ctx)
		s.followUps(ctx)
	}
	for ctx.Err() == nil && len(s.due) > 0 {
		s.followUps(ctx)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *sender) followUps(ctx context.Context) {
	due := s.due
	s.due = nil
	for _, f := range due {
		if f.after--; f.after < 0 {
			f.send(ctx)
		} else {
			s.due = append(s.due, f)
		}
	}
}

// later puts an event off until 0 to 3 messages have gone.
func (s *sender) later(send func(context.Context)) {
	s.due = append(s.due, followUp{s.random.IntN(4), send})
}

// chance is true with probability p.
func (s *sender) chance(p float64) bool { return s.random.Float64() < p }

// message says the next thing in one of the conversations.
func (s *sender) message(ctx context.Context) {
	m := s.ledger.say(s.conversations[s.random.IntN(len(s.conversations))])
	bodies := [][]byte{m.said()}
	if !m.direct() && s.chance(s.mix.pairs) {
		bodies = append(bodies, m.mentioned())
		if s.chance(0.5) {
			bodies[0], bodies[1] = bodies[1], bodies[0]
		}
	}
	m.revisions[0] = s.deliver(ctx, bodies[0])
	if m.revisions[0].acked.IsZero() {
		return
	}
	s.company(m)
	if len(bodies) > 1 {
		twin := func(ctx context.Context) { s.deliver(ctx, bodies[1]) }
		if s.chance(0.7) {
			twin(ctx)
		} else {
			s.later(twin)
		}
	}
	if s.chance(s.mix.again) {
		s.deliver(ctx, s.recent[s.random.IntN(len(s.recent))])
	}
}

// company decides what else will be said of a message.
func (s *sender) company(m *message) {
	if s.chance(s.mix.edits) {
		s.later(func(ctx context.Context) { s.edit(ctx, m) })
	}
	if s.chance(s.mix.deletes) {
		s.later(func(ctx context.Context) {
			span := s.deliver(ctx, m.removed(s.ledger.nextTS()))
			m.deleted = &span
		})
	}
	if s.chance(s.mix.reacts) {
		s.later(func(ctx context.Context) { s.deliver(ctx, m.reacted(s.ledger.nextTS())) })
	}
}

func (s *sender) edit(ctx context.Context, m *message) {
	if m.deleted == nil {
		m.revisions = append(m.revisions, span{sent: time.Now()})
		m.revisions[len(m.revisions)-1] = s.deliver(ctx, m.edited(len(m.revisions)-1, s.ledger.nextTS()))
	}
}

// maxRecent bounds what is kept for being delivered once more.
const maxRecent = 100

// deliver sends an event until it is acknowledged, as Slack does, only that its
// pauses between two tries are shorter.
func (s *sender) deliver(ctx context.Context, body []byte) span {
	sent := time.Now()
	var twin sync.WaitGroup
	if s.chance(s.mix.twice) {
		twin.Go(func() { _, _ = s.spare.post(body, 0, sent) }) // the route's own outcome counts
	}
	defer twin.Wait()
	backoff := 5 * time.Millisecond
	for n := 0; ; n++ {
		tried := attempt{sent: time.Now()}
		tried.status, _ = s.route.post(body, n, tried.sent) // no answer is status 0
		tried.ended = time.Now()
		if s.observe != nil {
			s.observe(tried)
		}
		if tried.status == http.StatusOK {
			s.remember(body)
			return span{sent, tried.ended}
		}
		if !pause(ctx, backoff) {
			return span{sent: sent}
		}
		backoff = min(2*backoff, 100*time.Millisecond)
	}
}

func (s *sender) remember(body []byte) {
	if len(s.recent) < maxRecent {
		s.recent = append(s.recent, body)
		return
	}
	s.recent[s.random.IntN(maxRecent)] = body
}

// fleet starts a sender for each connection, each with its share of the
// conversations, and returns what waits for all of them.
func fleet(ctx context.Context, senders []*sender, stop <-chan struct{}, budget func() bool) (wait func()) {
	var group sync.WaitGroup
	for _, s := range senders {
		group.Go(func() { s.run(ctx, stop, budget) })
	}
	return group.Wait
}
