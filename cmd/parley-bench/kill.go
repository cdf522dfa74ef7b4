package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// kill kills the daemons under load and checks the ledger.
type kill struct {
	profile, timeout       string
	kills, events, threads int
	rate, gentle           float64
	after, drain, margin   time.Duration

	*trial
	load   profile
	starts []time.Duration // the durations of the restarts
	stops  []time.Duration // the durations of the ends after SIGTERM
	faults                 // of cluster; none by default
}

func (k *kill) define(f *flagSet) { k.defineWith(f, 100, 0, 0, defaultMargin) }

// defineWith declares the flags with defaults that kill and cluster do not share.
func (k *kill) defineWith(f *flagSet, kills int, gentle float64, after, margin time.Duration) {
	f.choice(&k.profile, "profile", "echo", []string{"echo", "model", "stream"}, "echo: faults at Slack's API; model: an agent that needs time, with edits, deletes, reactions and mentions; stream: growing answers with faults, interrupts and failing runs")
	f.number(&k.kills, "kills", kills, 0, "number of kills, divided between 1, 16 and 64 connections")
	f.number(&k.events, "events", 30_000, 1, "largest number of messages")
	f.number(&k.threads, "threads", 1000, slices.Max(phases()), "number of threads for each number of connections")
	f.float(&k.rate, "rate", 0, 0, "messages per second; 0 for the profile's rate")
	f.float(&k.gentle, "gentle", gentle, 0, "share of the kills (0 to 1) that are a SIGTERM; the daemon must end within its own time limit")
	f.duration(&k.after, "after", after, 0, "longest time between a start and a kill; 0 for the profile's time")
	f.duration(&k.drain, "drain", 5*time.Minute, 0, "time limit for the remaining work after the last kill")
	f.duration(&k.margin, "margin", margin, 0, "time that the daemon has to apply an acknowledged edit or delete; longer if a node must learn of it from another node")
	f.StringVar(&k.timeout, "timeout", "", "slack.timeout in the daemon's configuration; if empty, the daemon's default")
}

func (k *kill) check(*bench) error {
	if k.gentle > 1 {
		return fmt.Errorf("gentle must be at most 1")
	}
	return nil
}

// profile is one kind of load.
type profile struct {
	rate   float64
	after  time.Duration // the longest life of a process
	mix    mix
	model  *behaviour // nil for the echo agent
	faults []slacktest.Chance
}

func profiles(name string) profile {
	switch name {
	case "model":
		// The daemon gives up a run after the deaths of some twenty processes in a row. A
		// process must live longer than a run, or that would happen by chance.
		long := longAnswers()
		return profile{rate: 80, after: 2 * time.Second, model: &long,
			mix: mix{edits: 0.1, deletes: 0.05, reacts: 0.05, twice: 0.02}}
	case "stream":
		slow := slowAnswers()
		return profile{rate: 15, after: 3 * time.Second, model: &slow, faults: apiFaults("chat.postMessage", "chat.update", "chat.delete",
			"chat.startStream", "chat.appendStream", "chat.stopStream", "reactions.add", "reactions.remove")}
	}
	return profile{rate: 300, after: 600 * time.Millisecond, mix: mix{twice: 0.025, again: 0.025}, faults: apiFaults("chat.postMessage")}
}

// latest is the longest delay between a request and its effect. It is longer than the
// daemon's timeout for a call, 10 s, and shorter than the 15 s after which the daemon
// looks for the post.
const latest = 12 * time.Second

// apiFaults returns the faults of some methods. Only after the first two faults the
// daemon knows at once that the call had no effect.
func apiFaults(methods ...string) (all []slacktest.Chance) {
	for _, method := range methods {
		add := func(p float64, fault slacktest.Fault) {
			all = append(all, slacktest.Chance{Method: method, P: p, Fault: fault})
		}
		add(0.01, slacktest.RateLimited(time.Second))
		add(0.005, slacktest.Fault{Status: http.StatusTooManyRequests, RetryAfter: "0"})
		add(0.01, slacktest.Fault{Status: http.StatusServiceUnavailable})
		add(0.01, slacktest.Fault{Status: http.StatusInternalServerError, Effect: true})
		add(0.02, slacktest.Fault{Cut: true, Effect: true})
		for late := time.Second; late <= latest; late += time.Second {
			add(0.0005, slacktest.Fault{Late: late})
		}
	}
	return all
}

// phases are the numbers of connections, one after the other.
func phases() []int { return []int{1, 16, 64} }

func (k *kill) run(ctx context.Context, b *bench) (err error) {
	k.load = profiles(k.profile)
	k.rate, k.after = cmp.Or(k.rate, k.load.rate), cmp.Or(k.after, k.load.after)
	k.ambush.suspended = make(chan error, 1)
	slack := slacktest.Options{Plan: slacktest.Mix(b.seed, k.load.faults...), OnCall: k.ambush.onCall}
	s := setup{slack: slack, timeout: k.timeout, model: k.load.model, streams: k.profile == "stream"}
	if k.trial, err = b.startTrial(ctx, "parley", s); err != nil {
		return err
	}
	k.ledger.margin, k.ledger.suspended = k.margin, k.describe
	begun := time.Now()
	for number, connections := range phases() {
		if err := k.phase(ctx, number, connections); err != nil {
			return err
		}
	}
	return k.finish(ctx, begun)
}

// phase loads the daemons over some connections while it kills them.
func (k *kill) phase(ctx context.Context, number, connections int) error {
	load := traffic{
		trial: k.trial, workers: connections, mix: k.load.mix, rate: k.rate, messages: max(1, k.events/len(phases())),
		stream: uint64(number * 1000), conversations: newRooms(number*k.threads, k.threads, defaultChannels),
	}
	return during(func(stop <-chan struct{}) { load.run(ctx, stop) }, func() error { return k.harm(ctx, number) })
}

// killOne kills a random daemon and starts it again. With the profile stream, it waits
// until an answer grows on Slack.
func (k *kill) killOne(ctx context.Context) error {
	if err := await(ctx, func() bool { return !k.setup.streams || len(k.api.OpenStreams()) > 0 }); err != nil {
		return err
	}
	daemon := k.nodes.lockOne(k.random)
	defer daemon.Unlock()
	return k.restart(ctx, daemon)
}

// restart ends a daemon by SIGKILL or SIGTERM and starts it again. During an outage of
// the store a daemon may report unfinished work when it ends, and may fail to start.
func (k *kill) restart(ctx context.Context, daemon *child) error {
	if err := daemon.alive(); err != nil {
		return err
	}
	begun, end, gentle := time.Now(), daemon.kill, k.random.Float64() < k.gentle
	if gentle {
		end = daemon.stop
	}
	err := end()
	took := time.Since(begun)
	if err != nil && (took >= stopWithin || !k.outageSince(begun)) {
		return err
	}
	if gentle {
		k.stops = append(k.stops, took)
	}
	for {
		begun := time.Now()
		took, err := daemon.start(ctx)
		if err == nil {
			k.starts = append(k.starts, took)
			return nil
		}
		if !k.outageSince(begun) || !wake.After(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// finish waits for the remaining work, and checks the ledger and the growing answers.
func (k *kill) finish(ctx context.Context, begun time.Time) error {
	loaded := round(begun)
	left := k.settle(ctx, 0, false, k.drain)
	k.printf("%d kills; loaded for %v, drained in %v; restarts %v\n", len(k.starts), loaded, round(begun)-loaded, summarize(k.starts))
	if len(k.stops) > 0 {
		k.printf("%d of the kills were a SIGTERM, obeyed in %v\n", len(k.stops), summarize(k.stops))
	}
	if left != "" {
		k.printf("not drained within %v: %s\n", k.drain, left)
	}
	if len(k.load.faults) > 0 && !wake.After(ctx, latest) { // a late effect could double a post
		return ctx.Err()
	}
	return k.trial.finish(k.leftovers())
}

// leftovers describes the open streams and working reactions that are left on Slack;
// empty for none.
func (k *kill) leftovers() string {
	if !k.setup.streams {
		return ""
	}
	open, reactions := len(k.api.OpenStreams()), 0
	for _, m := range k.ledger.messages {
		reactions += len(k.api.Reactions(m.place.channel, m.ts))
	}
	left := fmt.Sprintf("%d streams left open, %d working reactions left", open, reactions)
	k.printf("%s\n", left)
	if open+reactions == 0 {
		return ""
	}
	return left
}
