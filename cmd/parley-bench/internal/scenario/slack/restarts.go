package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Restarts stops the daemon, sends messages during its downtime, and checks the ledger.
type Restarts struct {
	mode                                            string
	restarts, messages, threads, channels, mentions int
	tiers                                           bool
	rate                                            float64
	drain, newWithin, oldWithin                     time.Duration

	*trial.Trial
	known  []*ledger.Conversation // in which the daemon takes part
	unseen []*ledger.Conversation // whose first message is older than the daemon's first start
}

func (r *Restarts) Define(f *rig.FlagSet) {
	f.Choice(&r.mode, "mode", "socket", []string{"socket", "http"}, "the transport of events")
	f.Number(&r.restarts, "restarts", 3, 0, "number of restarts; the daemon is stopped by SIGTERM and by kill -9 in turn")
	f.Number(&r.messages, "messages", 200, 1, "number of messages during each downtime")
	f.Number(&r.threads, "threads", 40, 4, "number of conversations before that; every fourth is a direct message")
	f.Number(&r.channels, "channels", 8, 1, "number of channels for the other conversations")
	f.Number(&r.mentions, "mentions", 0, 0, "number of new threads, and of mentions in old threads, directly after each start, instead of the messages at that rate; a model answers, and the tool checks its input")
	f.Duration(&r.newWithin, "new-within", time.Second, 0, "time limit for the reply in such a new thread")
	f.Duration(&r.oldWithin, "old-within", 12*time.Second, 0, "time limit for the reply in such an old thread")
	f.BoolVar(&r.tiers, "tiers", false, "Slack enforces its limits per minute, such as 50 reads of channels")
	f.Float(&r.rate, "rate", 20, 0.001, "messages per second while the daemon runs")
	f.Duration(&r.drain, "drain", 5*time.Minute, 0, "time limit until all missed messages have their replies")
}

func (r *Restarts) Run(ctx context.Context, b *rig.Bench) (err error) {
	s := trial.Setup{Slack: slacktest.Options{Tiers: r.tiers}, WholeThread: true, SlackRetries: true}
	if r.mode == "socket" {
		s.Sockets = 1
	}
	if r.mentions > 0 {
		model := trial.ShortAnswers(50 * time.Millisecond)
		model.RecordInput = true
		s.Model = &model
	}
	if r.Trial, err = trial.New(ctx, b, "parley", s); err != nil {
		return err
	}
	if err := r.all(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, r.Nodes.LogTail())
	}
	return r.FinishLate(ctx)
}

// all makes all restarts and waits for the remaining work, Slack's events included.
func (r *Restarts) all(ctx context.Context) error {
	r.begin()
	if err := r.Start(ctx); err != nil {
		return err
	}
	r.load(ctx, len(r.known)+r.messages/4, nil)
	for n := range r.restarts {
		if err := r.restart(ctx, n); err != nil {
			return err
		}
	}
	r.Faults = append(r.Faults, r.Settle(ctx, r.Ledger.Due(), true, r.drain))
	settled, cancel := context.WithTimeout(ctx, r.drain)
	defer cancel()
	_ = rig.Await(settled, func() bool { return r.API.UnderWay() == 0 }) // the line below tells
	r.Printf("%d events had no acknowledgement after Slack's last attempt, %d found no socket, %d are under way\n", r.API.Unacked(), r.API.Missed(), r.API.UnderWay())
	return ctx.Err()
}

// longAgo is the age of a thread that the daemon can find only in its own store.
const longAgo = 3 * time.Hour

// begin puts messages on Slack before the daemon's first start. They must get no reply.
// Some are in conversations that go on later, some of these have an old root, and some
// are in threads that the daemon first hears of during its downtime.
func (r *Restarts) begin() {
	for n := range r.threads {
		c := ledger.NewRoom(n, r.channels)
		switch n % 8 {
		case 0:
			r.Put(c, slacktest.Timestamp(time.Now().Add(-longAgo-time.Duration(n)*time.Second)))
		case 1, 3:
			r.Put(c, "")
		}
		r.known = append(r.known, c)
	}
	for n := range r.restarts * r.threads / 4 {
		c := ledger.NewThread(n % r.channels)
		r.Put(c, "")
		r.unseen = append(r.unseen, c)
	}
}

// load sends messages in the known conversations until Slack has finished all of them or
// stop is closed.
func (r *Restarts) load(ctx context.Context, messages int, stop <-chan struct{}) {
	trial.Traffic{Trial: r.Trial, Conversations: r.known, Rate: r.rate, Messages: messages, Stream: r.Random.Uint64()}.Run(ctx, stop)
}

// restart stops the daemon in the middle of a load, sends messages during the downtime,
// starts the daemon, and waits until all messages have their replies.
func (r *Restarts) restart(ctx context.Context, n int) error {
	daemon := r.Nodes.All[0]
	signal, end := "SIGTERM", daemon.Stop
	if n%2 == 1 {
		signal, end = "kill -9", daemon.Kill
	}
	loading, cancel := context.WithCancel(ctx)
	err := trial.During(func(stop <-chan struct{}) { r.load(loading, r.messages/20, stop) }, func() error {
		defer cancel() // Slack may try to deliver the last events for minutes
		return errors.Join(daemon.Alive(), end())
	})
	if err != nil {
		return err
	}
	first := len(r.Ledger.Messages)
	missed := r.downtime(ctx)
	if r.tiers && r.mentions > 0 && !wake.After(ctx, time.Minute) { // Slack also counts the calls before the stop
		return ctx.Err()
	}
	ready, err := daemon.Start(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	var fresh, old []mention
	var group sync.WaitGroup
	if r.mentions > 0 {
		if err := r.API.AwaitFresh(ctx, r.Setup.Sockets); err != nil {
			return err
		}
		fresh, old = r.mentionAll(ctx, first)
	} else {
		group.Go(func() { r.load(ctx, r.messages/2, nil) })
	}
	left := r.Settle(ctx, r.Ledger.Due(), true, r.drain)
	took := figure.Round(begun)
	group.Wait()
	r.Printf("restart %d, %s: %s; ready in %v, caught up %v later\n", n+1, signal, missed, ready.Round(time.Millisecond), took)
	if r.mentions > 0 {
		r.report("new", fresh)
		r.report("old", old)
	}
	r.Faults = append(r.Faults, left)
	return nil
}

// downtime sends messages and edits while the daemon is down, and describes them.
func (r *Restarts) downtime(ctx context.Context) string {
	gone, cancel := context.WithCancel(ctx)
	cancel() // no event can be delivered now, so edit waits for none
	var said []*ledger.Message
	edits, unaddressed := 0, 0
	for len(said) < r.messages && wake.After(ctx, 5*time.Millisecond) {
		if len(said) > 0 && r.Random.Float64() < 0.1 {
			r.Edit(gone, said[r.Random.IntN(len(said))])
			edits++
			continue
		}
		m, _ := r.Say(r.choose(), r.Random.Float64() < 0.25)
		said = append(said, m)
		if m.Unaddressed {
			unaddressed++
		}
	}
	return fmt.Sprintf("%d messages during the downtime (%d unaddressed) and %d edits", len(said), unaddressed, edits)
}

// choose returns the conversation of the next message: a new thread, a thread that the
// daemon never saw, or a known conversation.
func (r *Restarts) choose() *ledger.Conversation {
	c := r.known[r.Random.IntN(len(r.known))]
	switch draw := r.Random.Float64(); {
	case draw < 0.2:
		c = ledger.NewThread(r.Random.IntN(r.channels))
		r.known = append(r.known, c)
	case draw < 0.3 && len(r.unseen) > 0:
		c, r.unseen = r.unseen[0], r.unseen[1:]
		r.known = append(r.known, c)
	}
	return c
}

// mention is a message to the daemon directly after a start.
type mention struct {
	*ledger.Message
	missed []int // the missed messages of its thread
	within time.Duration
}

// mentionAll mentions the bot in new threads and in old ones with missed messages, in
// turn. The missed messages are those from the index first on. It returns when Slack has
// finished all events.
func (r *Restarts) mentionAll(ctx context.Context, first int) (fresh, old []mention) {
	missed := map[ledger.Place][]int{}
	for _, m := range r.Ledger.Since(first) {
		missed[m.Place] = append(missed[m.Place], m.ID)
	}
	behind := slices.DeleteFunc(slices.Clone(r.known), func(c *ledger.Conversation) bool { return len(missed[c.Place]) == 0 })
	r.Random.Shuffle(len(behind), func(i, j int) { behind[i], behind[j] = behind[j], behind[i] })
	ask := func(c *ledger.Conversation, within time.Duration) mention {
		m, deliveries := r.Say(c, false)
		r.Await(ctx, m, time.Time{}, deliveries...)
		return mention{m, missed[m.Place], within}
	}
	for n := range r.mentions {
		c := ledger.NewThread(n % r.channels)
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
func (r *Restarts) report(kind string, mentions []mention) {
	waits, wanted, given := r.Ledger.Waits(r.API.Posts()), 0, 0
	var all []time.Duration
	for _, m := range mentions {
		took, answered := waits[m.ID]
		all = append(all, took)
		if !answered || took > m.within {
			r.Faults = append(r.Faults, fmt.Sprintf("m%d was not answered within %v", m.ID, m.within))
		}
		wanted += len(m.missed)
		last := r.Ledger.LastRequest(func(r *ledger.Request) bool { return r.ID == m.ID })
		for _, id := range m.missed {
			if last != nil && slices.Contains(last.Input, id) {
				given++
			}
		}
	}
	if given < wanted {
		r.Faults = append(r.Faults, "the model's input lacks missed messages")
	}
	r.Printf("    answered in %d %s threads: %v; %d of their %d missed messages were in the model's input\n",
		len(mentions), kind, figure.Summarize(all), given, wanted)
}
