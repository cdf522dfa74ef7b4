package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// restarts stops the daemon, sends messages during its downtime, and checks the ledger.
type restarts struct {
	mode                                            string
	restarts, messages, threads, channels, mentions int
	tiers                                           bool
	rate                                            float64
	drain, newWithin, oldWithin                     time.Duration

	*trial
	known  []*conversation // in which the daemon takes part
	unseen []*conversation // whose first message is older than the daemon's first start
}

func (r *restarts) define(f *flagSet) {
	f.choice(&r.mode, "mode", "socket", []string{"socket", "http"}, "the transport of events")
	f.number(&r.restarts, "restarts", 3, 0, "number of restarts; the daemon is stopped by SIGTERM and by kill -9 in turn")
	f.number(&r.messages, "messages", 200, 1, "number of messages during each downtime")
	f.number(&r.threads, "threads", 40, 4, "number of conversations before that; every fourth is a direct message")
	f.number(&r.channels, "channels", 8, 1, "number of channels for the other conversations")
	f.number(&r.mentions, "mentions", 0, 0, "number of new threads, and of mentions in old threads, directly after each start, instead of the messages at that rate; a model answers, and the tool checks its input")
	f.duration(&r.newWithin, "new-within", time.Second, 0, "time limit for the reply in such a new thread")
	f.duration(&r.oldWithin, "old-within", 12*time.Second, 0, "time limit for the reply in such an old thread")
	f.BoolVar(&r.tiers, "tiers", false, "Slack enforces its limits per minute, such as 50 reads of channels")
	f.float(&r.rate, "rate", 20, 0.001, "messages per second while the daemon runs")
	f.duration(&r.drain, "drain", 5*time.Minute, 0, "time limit until all missed messages have their replies")
}

func (r *restarts) run(ctx context.Context, b *bench) (err error) {
	s := setup{slack: slacktest.Options{Tiers: r.tiers}, wholeThread: true, slackRetries: true}
	if r.mode == "socket" {
		s.sockets = 1
	}
	if r.mentions > 0 {
		model := shortAnswers(50 * time.Millisecond)
		model.recordInput = true
		s.model = &model
	}
	if r.trial, err = b.newTrial(ctx, "parley", s); err != nil {
		return err
	}
	if err := r.all(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, r.nodes.logTail())
	}
	return r.finishLate(ctx)
}

// all makes all restarts and waits for the remaining work, Slack's events included.
func (r *restarts) all(ctx context.Context) error {
	r.begin()
	if err := r.start(ctx); err != nil {
		return err
	}
	r.load(ctx, len(r.known)+r.messages/4, nil)
	for n := range r.restarts {
		if err := r.restart(ctx, n); err != nil {
			return err
		}
	}
	r.faults = append(r.faults, r.settle(ctx, r.ledger.due(), true, r.drain))
	settled, cancel := context.WithTimeout(ctx, r.drain)
	defer cancel()
	_ = await(settled, func() bool { return r.api.UnderWay() == 0 }) // the line below tells
	r.printf("%d events had no acknowledgement after Slack's last attempt, %d found no socket, %d are under way\n", r.api.Unacked(), r.api.Missed(), r.api.UnderWay())
	return ctx.Err()
}

// longAgo is the age of a thread that the daemon can find only in its own store.
const longAgo = 3 * time.Hour

// begin puts messages on Slack before the daemon's first start. They must get no reply.
// Some are in conversations that go on later, some of these have an old root, and some
// are in threads that the daemon first hears of during its downtime.
func (r *restarts) begin() {
	for n := range r.threads {
		c := newRoom(n, r.channels)
		switch n % 8 {
		case 0:
			r.put(c, slacktest.Timestamp(time.Now().Add(-longAgo-time.Duration(n)*time.Second)))
		case 1, 3:
			r.put(c, "")
		}
		r.known = append(r.known, c)
	}
	for n := range r.restarts * r.threads / 4 {
		c := newThread(n % r.channels)
		r.put(c, "")
		r.unseen = append(r.unseen, c)
	}
}

// load sends messages in the known conversations until Slack has finished all of them or
// stop is closed.
func (r *restarts) load(ctx context.Context, messages int, stop <-chan struct{}) {
	traffic{trial: r.trial, conversations: r.known, rate: r.rate, messages: messages, stream: r.random.Uint64()}.run(ctx, stop)
}

// restart stops the daemon in the middle of a load, sends messages during the downtime,
// starts the daemon, and waits until all messages have their replies.
func (r *restarts) restart(ctx context.Context, n int) error {
	daemon := r.nodes.all[0]
	signal, end := "SIGTERM", daemon.stop
	if n%2 == 1 {
		signal, end = "kill -9", daemon.kill
	}
	loading, cancel := context.WithCancel(ctx)
	err := during(func(stop <-chan struct{}) { r.load(loading, r.messages/20, stop) }, func() error {
		defer cancel() // Slack may try to deliver the last events for minutes
		return errors.Join(daemon.alive(), end())
	})
	if err != nil {
		return err
	}
	first := len(r.ledger.messages)
	missed := r.downtime(ctx)
	if r.tiers && r.mentions > 0 && !wake.After(ctx, time.Minute) { // Slack also counts the calls before the stop
		return ctx.Err()
	}
	ready, err := daemon.start(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	var fresh, old []mention
	var group sync.WaitGroup
	if r.mentions > 0 {
		if err := r.api.AwaitFresh(ctx, r.setup.sockets); err != nil {
			return err
		}
		fresh, old = r.mentionAll(ctx, first)
	} else {
		group.Go(func() { r.load(ctx, r.messages/2, nil) })
	}
	left := r.settle(ctx, r.ledger.due(), true, r.drain)
	took := round(begun)
	group.Wait()
	r.printf("restart %d, %s: %s; ready in %v, caught up %v later\n", n+1, signal, missed, ready.Round(time.Millisecond), took)
	if r.mentions > 0 {
		r.report("new", fresh)
		r.report("old", old)
	}
	r.faults = append(r.faults, left)
	return nil
}

// downtime sends messages and edits while the daemon is down, and describes them.
func (r *restarts) downtime(ctx context.Context) string {
	gone, cancel := context.WithCancel(ctx)
	cancel() // no event can be delivered now, so edit waits for none
	var said []*message
	edits, unaddressed := 0, 0
	for len(said) < r.messages && wake.After(ctx, 5*time.Millisecond) {
		if len(said) > 0 && r.random.Float64() < 0.1 {
			r.edit(gone, said[r.random.IntN(len(said))])
			edits++
			continue
		}
		m, _ := r.say(r.choose(), r.random.Float64() < 0.25)
		said = append(said, m)
		if m.unaddressed {
			unaddressed++
		}
	}
	return fmt.Sprintf("%d messages during the downtime (%d unaddressed) and %d edits", len(said), unaddressed, edits)
}

// choose returns the conversation of the next message: a new thread, a thread that the
// daemon never saw, or a known conversation.
func (r *restarts) choose() *conversation {
	c := r.known[r.random.IntN(len(r.known))]
	switch draw := r.random.Float64(); {
	case draw < 0.2:
		c = newThread(r.random.IntN(r.channels))
		r.known = append(r.known, c)
	case draw < 0.3 && len(r.unseen) > 0:
		c, r.unseen = r.unseen[0], r.unseen[1:]
		r.known = append(r.known, c)
	}
	return c
}

// mention is a message to the daemon directly after a start.
type mention struct {
	*message
	missed []int // the missed messages of its thread
	within time.Duration
}

// mentionAll mentions the bot in new threads and in old ones with missed messages, in
// turn. The missed messages are those from the index first on. It returns when Slack has
// finished all events.
func (r *restarts) mentionAll(ctx context.Context, first int) (fresh, old []mention) {
	missed := map[place][]int{}
	for _, m := range r.ledger.since(first) {
		missed[m.place] = append(missed[m.place], m.id)
	}
	behind := slices.DeleteFunc(slices.Clone(r.known), func(c *conversation) bool { return len(missed[c.place]) == 0 })
	r.random.Shuffle(len(behind), func(i, j int) { behind[i], behind[j] = behind[j], behind[i] })
	ask := func(c *conversation, within time.Duration) mention {
		m, deliveries := r.say(c, false)
		r.await(ctx, m, time.Time{}, deliveries...)
		return mention{m, missed[m.place], within}
	}
	for n := range r.mentions {
		c := newThread(n % r.channels)
		r.known = append(r.known, c)
		fresh = append(fresh, ask(c, r.newWithin))
		if n < len(behind) {
			old = append(old, ask(behind[n], r.oldWithin))
		}
	}
	return fresh, old
}

// report prints the waiting times of some mentions, and the number of their threads'
// missed messages in the model's input. Late replies and missing messages are faults.
func (r *restarts) report(kind string, mentions []mention) {
	waits, wanted, given := r.ledger.waits(r.api.Posts()), 0, 0
	var all []time.Duration
	for _, m := range mentions {
		took, answered := waits[m.id]
		all = append(all, took)
		if !answered || took > m.within {
			r.faults = append(r.faults, fmt.Sprintf("m%d was not answered within %v", m.id, m.within))
		}
		wanted += len(m.missed)
		last := r.ledger.lastRequest(func(r *request) bool { return r.id == m.id })
		for _, id := range m.missed {
			if last != nil && slices.Contains(last.input, id) {
				given++
			}
		}
	}
	if given < wanted {
		r.faults = append(r.faults, "the model's input lacks missed messages")
	}
	r.printf("    answered in %d %s threads: %v; %d of their %d missed messages were in the model's input\n",
		len(mentions), kind, summarize(all), given, wanted)
}
