package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// restartsFlags are restarts' own.
type restartsFlags struct {
	common
	nodesFlags
	restarts, messages, threads, channels, mentions int

	mode  string
	tiers bool
	rate  float64
	drain time.Duration
	seed  uint64

	newWithin, oldWithin time.Duration
}

func (f *restartsFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	flags.StringVar(&f.mode, "mode", "socket", "how the daemon hears of events: socket or http")
	flags.IntVar(&f.restarts, "restarts", 3, "how often the daemon is stopped: by a SIGTERM, then by kill -9, in turns")
	flags.IntVar(&f.messages, "messages", 200, "how many messages are said each time while it is down")
	flags.IntVar(&f.threads, "threads", 40, "in how many conversations it takes part before that, every fourth a direct message")
	flags.IntVar(&f.channels, "channels", 8, "in how many channels the others stand")
	flags.IntVar(&f.mentions, "mentions", 0, "how many threads begin as soon as it is up again, and in how many old ones somebody asks it then, instead of the messages at that rate; a model answers, and what it is given is checked")
	flags.DurationVar(&f.newWithin, "new-within", time.Second, "how long the answer in such a new thread may take")
	flags.DurationVar(&f.oldWithin, "old-within", 12*time.Second, "how long the answer in such an old thread may take")
	flags.BoolVar(&f.tiers, "tiers", false, "hold each method to its calls a minute, such as 50 for reading channels")
	flags.Float64Var(&f.rate, "rate", 20, "messages a second while it is up, from the moment when it is ready")
	flags.DurationVar(&f.drain, "drain", 5*time.Minute, "how long it may take until it has caught up")
	flags.Uint64Var(&f.seed, "seed", 0, "of everything that is random; 0 for a new one, which is printed")
}

func (f *restartsFlags) validate() error {
	if f.restarts < 0 || f.messages < 1 || f.threads < 4 || f.channels < 1 || f.rate <= 0 || f.mentions < 0 {
		return usageError{errors.New("messages, channels and rate must be more than 0, threads at least 4, restarts and mentions not below 0")}
	}
	if f.mode != "socket" && f.mode != "http" {
		return usageError{fmt.Errorf("mode %q: must be socket or http", f.mode)}
	}
	if f.seed == 0 {
		f.seed = rand.Uint64()
	}
	return nil
}

// runRestarts stops the daemon, says things meanwhile, and keeps the ledger.
func runRestarts(ctx context.Context, args []string, out io.Writer) (err error) {
	var f restartsFlags
	if err := parseFlags("restarts", args, f.define); err != nil {
		return err
	}
	if err := f.validate(); err != nil {
		return err
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	limits := ""
	if f.tiers {
		limits = ", Slack's limits a minute"
	}
	b.printf("restarts: mode %s%s, %d restarts with %d messages each, seed %d\n", f.mode, limits, f.restarts, f.messages, f.seed)
	calls := new(tally)
	api, err := startAPI(slacktest.Options{Tiers: f.tiers, OnCall: calls.add})
	if err != nil {
		return err
	}
	defer api.Close()
	s, l := settings{api: api}, newLedger(echoed)
	if f.mode == "socket" {
		s.sockets = 1
	}
	if f.mentions > 0 {
		m, err := startModel(l, briefly(thinking))
		if err != nil {
			return err
		}
		defer m.close()
		m.alone = true
		s.modelURL, s.whole = m.url, true
	}
	c, err := b.newDaemon("parley", s)
	if err != nil {
		return err
	}
	defer c.end()
	if f.mode == "http" {
		api.SetHook(slacktest.Hook{URL: "http://" + c.address + hookPath, Secret: signingSecret})
	}
	run := &absences{bench: b, restartsFlags: f, api: api, daemon: c, calls: calls,
		random: rand.New(rand.NewPCG(f.seed, 0)), talk: &talk{api: api, ledger: l}}
	if err := run.run(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, c.logTail())
	}
	return nil
}

// thinking is how long the model's answers take.
const thinking = 50 * time.Millisecond

// absences is one run of restarts.
type absences struct {
	*bench
	restartsFlags
	api    *slacktest.Server
	daemon *child
	calls  *tally
	random *rand.Rand
	talk   *talk

	known   []*conversation // that the daemon takes part in
	unheard []*conversation // whose first message it was not there for
	late    int             // mentions that were not answered as they shall be
}

func (a *absences) run(ctx context.Context) error {
	a.before()
	if _, err := a.daemon.start(ctx); err != nil {
		return err
	}
	if err := a.awaitUp(ctx); err != nil {
		return err
	}
	a.talkOn(ctx, len(a.known)+a.messages/4)
	for n := range a.restarts {
		if err := a.absence(ctx, n); err != nil {
			return err
		}
	}
	left, err := a.settle(ctx)
	if err != nil {
		return err
	}
	if a.late > 0 {
		err = errViolated
	}
	return errors.Join(err, a.judge(a.talk.ledger, a.api, left))
}

// before says things before the daemon's first start, which nobody shall answer: in
// conversations that go on later, in some whose root is long ago, and in some that it
// will first hear of by a reply while it is down.
func (a *absences) before() {
	for n := range a.threads {
		c := room(n, a.channels)
		switch n % 8 {
		case 0:
			a.talk.put(c, slacktest.Timestamp(time.Now().Add(-longAgo-time.Duration(n)*time.Second)))
		case 1, 3:
			a.talk.put(c, "")
		}
		a.known = append(a.known, c)
	}
	for n := range a.restarts * a.threads / 4 {
		c := newThread(n % a.channels)
		a.talk.put(c, "")
		a.unheard = append(a.unheard, c)
	}
}

// longAgo is when a thread began that is found by nothing but what is known of it.
const longAgo = 3 * time.Hour

// awaitUp waits until events reach the daemon.
func (a *absences) awaitUp(ctx context.Context) error {
	if a.mode == "socket" {
		return a.api.AwaitFresh(ctx, 1)
	}
	return nil
}

// talkOn has so many messages said in the known conversations, and returns once Slack
// is done with them.
func (a *absences) talkOn(ctx context.Context, messages int) {
	var said atomic.Int64
	a.talk.goOn(ctx, a.known, newPacer(a.rate), nil, func() bool { return said.Add(1) <= int64(messages) })
}

// absence stops the daemon, says things while it is down, and starts it again.
func (a *absences) absence(ctx context.Context, n int) error {
	var group sync.WaitGroup
	stopped := "SIGTERM"
	end := a.daemon.stop
	if n%2 == 1 {
		stopped, end = "kill -9", a.daemon.kill
	}
	leaving, left := context.WithCancel(ctx)
	group.Go(func() { a.talkOn(leaving, a.messages/20) }) // what is under way when it stops
	err := errors.Join(a.daemon.alive(), end())
	left()
	group.Wait()
	if err != nil {
		return err
	}
	first := a.talk.ledger.count()
	missed := a.meanwhile(ctx)
	a.calls.take()
	ready, err := a.daemon.start(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	var asked mentions
	if a.mentions > 0 {
		if err := a.awaitUp(ctx); err != nil {
			return err
		}
		asked = a.mention(ctx, first)
	} else {
		group.Go(func() { a.talkOn(ctx, a.messages/2) })
	}
	undone, err := a.talk.caughtUp(ctx, alone(a.daemon), a.drain)
	took := time.Since(begun)
	group.Wait()
	if err != nil {
		return err
	}
	a.printf("restart %d, %s: %v; ready in %v, caught up %v later; calls: %s\n", n+1, stopped, missed, ready.Round(time.Millisecond),
		took.Round(time.Millisecond), a.calls.take())
	if a.mentions > 0 {
		a.report(asked)
	}
	if undone != "" {
		a.printf("left undone: %s\n", undone)
	}
	return nil
}

// settle waits until nothing is left, nothing of Slack's either, and stops the daemon.
func (a *absences) settle(ctx context.Context) (left string, err error) {
	left, err = a.talk.caughtUp(ctx, alone(a.daemon), a.drain)
	if err != nil {
		return "", err
	}
	for begun := time.Now(); a.api.UnderWay() > 0 && time.Since(begun) < a.drain; {
		if !pause(ctx, 50*time.Millisecond) {
			return "", ctx.Err()
		}
	}
	if !pause(ctx, lateDouble) {
		return "", ctx.Err()
	}
	a.printf("%d events were sent in vain as often as Slack does, %d found no socket, %d are under way\n", a.api.Unacked(), a.api.Missed(), a.api.UnderWay())
	return left, a.daemon.stop()
}

// tally counts calls by method.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (t *tally) add(call slacktest.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = map[string]int{}
	}
	t.count[call.Method]++
}

// take returns the counts of reading in words, and begins anew.
func (t *tally) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var words []string
	for method, n := range t.count {
		if strings.Contains(method, "conversations") {
			words = append(words, fmt.Sprintf("%d %s", n, method))
		}
	}
	t.count = nil
	slices.Sort(words)
	return strings.Join(words, ", ")
}
