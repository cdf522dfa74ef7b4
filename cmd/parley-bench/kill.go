package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// killFlags are kill's own.
type killFlags struct {
	common
	nodesFlags
	profile                string
	kills, events, threads int
	rate                   float64
	after                  time.Duration
	gentle                 float64
	seed                   uint64
	drain, margin          time.Duration
	timeout                string
}

func (f *killFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	f.nodesFlags.define(flags)
	flags.StringVar(&f.profile, "profile", "echo", "echo: faults at the API; model: an agent that takes its time, edits, deletes, reactions, twins; stream: its answers grow on Slack, with faults there, while it is interrupted and fails")
	flags.IntVar(&f.kills, "kills", f.kills, "how often a daemon is killed, spread over 1, 16 and 64 connections")
	flags.IntVar(&f.events, "events", 30_000, "how many messages are sent at the most")
	flags.IntVar(&f.threads, "threads", 1000, "in how many threads they stand, for each number of connections")
	flags.Float64Var(&f.rate, "rate", 0, "messages a second; 0 for the profile's own")
	flags.DurationVar(&f.after, "after", f.after, "a kill comes at a random moment, at most so long after the start; 0 for the profile's own")
	flags.Float64Var(&f.gentle, "gentle", f.gentle, "the share of the kills that is a SIGTERM: the daemon must end within its own bound for that")
	flags.Uint64Var(&f.seed, "seed", 0, "of everything that is random; 0 for a new one, which is printed")
	flags.StringVar(&f.timeout, "timeout", "", "slack.timeout in the daemon's configuration; empty for the daemon's own")
	flags.DurationVar(&f.margin, "margin", f.margin, "how long an edit or a delete that was acknowledged may have no effect yet; longer where a node must hear of it from another")
	flags.DurationVar(&f.drain, "drain", 5*time.Minute, "how long to wait for what is left after the last kill")
}

// profile is one kind of load.
type profile struct {
	rate  float64
	after time.Duration // the longest life of a process
	mix   mix
	model bool
	// streams says that answers are shown while they grow, and that the daemon is
	// killed while one does.
	streams bool
	faults  []slacktest.Chance
}

// crowds are the numbers of connections, in turn.
func crowds() []int { return []int{1, 16, 64} }

func (f *killFlags) profileOf() (profile, error) {
	switch f.profile {
	case "echo":
		return profile{rate: 300, after: 600 * time.Millisecond, mix: mix{twice: 0.025, again: 0.025}, faults: apiFaults()}, nil
	case "model":
		// A run is given up after some twenty processes have died over it, one after
		// the other. A process must live longer than a run for that to be no accident.
		return profile{rate: 80, after: 2 * time.Second, model: true,
			mix: mix{pairs: 0.2, edits: 0.1, deletes: 0.05, reacts: 0.05, twice: 0.02}}, nil
	}
	if f.profile == "stream" {
		return profile{rate: 15, after: 3 * time.Second, model: true, streams: true, faults: streamFaults()}, nil
	}
	return profile{}, usageError{fmt.Errorf("profile %q: must be echo, model or stream", f.profile)}
}

// apiFaults are what goes wrong with chat.postMessage. After any of them but the
// first two nobody can tell at once whether the post is there.
func apiFaults() []slacktest.Chance {
	chances := []slacktest.Chance{
		{P: 0.01, Fault: slacktest.RateLimited(time.Second)},
		{P: 0.005, Fault: slacktest.Fault{Status: http.StatusTooManyRequests, RetryAfter: "0"}},
		{P: 0.01, Fault: slacktest.Fault{Status: http.StatusServiceUnavailable}},
		{P: 0.01, Fault: slacktest.Fault{Status: http.StatusInternalServerError, Effect: true}},
		{P: 0.02, Fault: slacktest.Fault{Cut: true, Effect: true}},
	}
	for late := time.Second; late <= latest; late += time.Second {
		chances = append(chances, slacktest.Chance{P: 0.0005, Fault: slacktest.Fault{Late: late}})
	}
	return chances
}

// streamFaults are what goes wrong with every method that a growing answer needs.
func streamFaults() (chances []slacktest.Chance) {
	for _, method := range []string{"chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "chat.delete", "chat.postMessage",
		"reactions.add", "reactions.remove"} {
		for _, chance := range apiFaults() {
			chance.Method = method
			chances = append(chances, chance)
		}
	}
	return chances
}

// latest is how long after its request a post may take effect: longer than the
// daemon's timeout for a call, which is 10 s, and shorter than the 15 s after
// which it may look.
const latest = 12 * time.Second

// prepare checks the flags, and completes them and the profile.
func (f *killFlags) prepare() (profile, error) {
	p, err := f.profileOf()
	if err != nil {
		return p, err
	}
	if f.kills < 0 || f.events < 1 || f.threads < slices.Max(crowds()) || f.rate < 0 || f.after < 0 || f.gentle < 0 || f.gentle > 1 {
		return p, usageError{fmt.Errorf("events must be more than 0, kills, rate and after not below it, gentle a share, threads at least %d", slices.Max(crowds()))}
	}
	if f.rate > 0 {
		p.rate = f.rate
	}
	if f.after > 0 {
		p.after = f.after
	}
	if f.seed == 0 {
		f.seed = rand.Uint64()
	}
	return p, f.nodesFlags.validate()
}

// runKill kills the daemon and keeps the ledger.
func runKill(ctx context.Context, args []string, out io.Writer) (err error) {
	f := killFlags{kills: 100, margin: margin}
	if err := parseFlags("kill", args, f.define); err != nil {
		return err
	}
	p, err := f.prepare()
	if err != nil {
		return err
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	b.printf("kill: profile %s, %s, %d kills, %v messages/s, seed %d\n", f.profile, f.words(), f.kills, p.rate, f.seed)
	k := newKilling(b, f, p)
	return k.run(ctx)
}

// killing is one run of kill.
type killing struct {
	*bench
	killFlags
	profile profile
	random  *rand.Rand // of the kills; each sender has one of its own
	ledger  *ledger
	api     *slacktest.Server
	nodes   *nodes
	starts  []time.Duration
	obeyed  []time.Duration // how long each SIGTERM took
	outage  *outage         // of the store; nil for none
	// plan is the API's faults, and harm what is done to the daemons in a phase.
	plan func(slacktest.Call) slacktest.Fault
	harm func(ctx context.Context, phase int) error
}

func newKilling(b *bench, f killFlags, p profile) *killing {
	k := &killing{bench: b, killFlags: f, profile: p, random: rand.New(rand.NewPCG(f.seed, 0)), ledger: newLedger(echoed)}
	k.ledger.margin = f.margin
	k.plan = slacktest.Mix(f.seed, p.faults...)
	k.harm = k.killings
	return k
}

func (k *killing) run(ctx context.Context) (err error) {
	api, err := startAPI(slacktest.Options{Plan: k.plan})
	if err != nil {
		return err
	}
	defer api.Close()
	k.api = api
	s := settings{api: api, timeout: k.timeout}
	if k.profile.model {
		how := atLength()
		if k.profile.streams {
			how, s.streams = atEase(), true
			k.ledger.places = func(m *message) {
				api.Put(slacktest.Post{Channel: m.place.channel, User: m.sender, Text: m.text(0), TS: m.ts, ThreadTS: m.slack().ThreadTS})
			}
		}
		model, err := startModel(k.ledger, how)
		if err != nil {
			return err
		}
		defer model.close()
		s.modelURL = model.url
	}
	if k.nodes, err = k.newDaemons(ctx, "parley", k.nodesFlags, s); err != nil {
		return err
	}
	defer k.nodes.end()
	if err := k.nodes.start(ctx); err != nil {
		return err
	}
	begun := time.Now()
	for i, connections := range crowds() {
		if err := k.phase(ctx, i, connections); err != nil {
			return err
		}
	}
	return k.settle(ctx, api, begun)
}

// phase loads the daemons over some connections while they are harmed.
func (k *killing) phase(ctx context.Context, number, connections int) error {
	stop := make(chan struct{})
	var sent atomic.Int64
	budget := func() bool { return sent.Add(1) <= int64(k.events/len(crowds())) }
	pacer, balancer := newPacer(k.profile.rate), k.nodes.balancer()
	senders := make([]*sender, connections)
	for c := range senders {
		var own []*conversation
		for n := c; n < k.threads; n += connections {
			own = append(own, newConversation(number*k.threads+n))
		}
		senders[c] = newSender(k.ledger, balancer, own, k.profile.mix, pacer, k.seed, uint64(1+number*1000+c))
	}
	wait := fleet(ctx, senders, stop, budget)
	err := k.harm(ctx, number)
	close(stop)
	wait()
	return errors.Join(err, ctx.Err())
}

// killings kills a phase's share of times, each time a random daemon at a random
// moment, and starts it again.
func (k *killing) killings(ctx context.Context, phase int) error {
	for range (k.kills + phase) / len(crowds()) {
		if !pause(ctx, time.Duration(k.random.Int64N(int64(k.profile.after)))) || !k.awaitStream(ctx) {
			return ctx.Err()
		}
		if err := k.kill(ctx, k.nodes.seize(k.random)); err != nil {
			return err
		}
	}
	return nil
}

// leftovers counts what growing answers have left on Slack: open streams and signs of
// work.
func (k *killing) leftovers() int {
	if !k.profile.streams {
		return 0
	}
	open, signs, gone := len(k.api.OpenStreams()), 0, 0
	for _, m := range k.ledger.messages {
		signs += len(k.api.Reactions(m.place.channel, m.ts))
	}
	posts := k.api.Posts()
	for _, post := range posts {
		if post.Deleted {
			gone++
		}
	}
	k.printf("%d streams left open, %d signs of work left; %d of %d posts were taken away again\n", open, signs, gone, len(posts))
	return open + signs
}

// awaitStream waits until an answer grows on Slack, where that is when a daemon is to
// be killed.
func (k *killing) awaitStream(ctx context.Context) bool {
	for k.profile.streams && len(k.api.OpenStreams()) == 0 {
		if !pause(ctx, time.Millisecond) {
			return false
		}
	}
	return true
}

// kill ends a daemon that is held, one way or the other, and starts it again.
func (k *killing) kill(ctx context.Context, daemon *child) error {
	defer daemon.held.Unlock()
	if err := daemon.alive(); err != nil {
		return err
	}
	end := daemon.kill
	if k.random.Float64() < k.gentle {
		end = func() error { return k.dismiss(daemon) }
	}
	if err := end(); err != nil {
		return err
	}
	took, err := k.begin(ctx, daemon)
	if err != nil {
		return err
	}
	k.starts = append(k.starts, took)
	k.ledger.starts = append(k.ledger.starts, time.Now())
	return nil
}

// dismiss asks a daemon to end. Where its store was away meanwhile it may say that
// something was left undone, but no later than otherwise.
func (k *killing) dismiss(daemon *child) error {
	begun := time.Now()
	err := daemon.stop()
	took := time.Since(begun)
	k.obeyed = append(k.obeyed, took)
	if took < stopWithin && k.outage.during(begun) {
		return nil
	}
	return err
}

// begin starts a daemon, again and again while its store is away, as whoever
// supervises it would.
func (k *killing) begin(ctx context.Context, daemon *child) (time.Duration, error) {
	for {
		begun := time.Now()
		took, err := daemon.start(ctx)
		if err == nil || !k.outage.during(begun) || !pause(ctx, 100*time.Millisecond) {
			return took, err
		}
	}
}

// killed is how often daemons were killed, in words.
func (k *killing) killed() string {
	words := fmt.Sprintf("%d kills", len(k.starts))
	if len(k.obeyed) > 0 {
		words += fmt.Sprintf(", %d of them a SIGTERM, obeyed in %v", len(k.obeyed), summarize(k.obeyed))
	}
	return words
}

// settle waits for what is left, and checks the ledger.
func (k *killing) settle(ctx context.Context, api *slacktest.Server, begun time.Time) error {
	loaded := time.Since(begun)
	left, err := drain(ctx, k.nodes, k.drain)
	if err != nil {
		return err
	}
	k.printf("%v; loaded for %v, drained in %v; restarts %v\n", k.killed(), loaded.Round(time.Millisecond),
		(time.Since(begun) - loaded).Round(time.Millisecond), summarize(k.starts))
	if !left.empty() {
		k.printf("not drained within %v: %v\n", k.drain, left)
	}
	if len(k.profile.faults) > 0 && !pause(ctx, latest) { // what a late effect would double
		return ctx.Err()
	}
	if err := k.nodes.stop(); err != nil {
		return err
	}
	verdict := k.ledger.check(api.Posts())
	k.printf("%v", verdict)
	if verdict.total()+k.leftovers() > 0 {
		return errViolated
	}
	return nil
}
