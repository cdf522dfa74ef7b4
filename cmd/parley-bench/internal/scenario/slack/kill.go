package slack

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Kill kills the daemons under load and checks the ledger.
type Kill struct {
	profile, timeout       string
	kills, events, threads int
	rate, gentle           float64
	after, drain, margin   time.Duration

	*trial.Trial
	load   profile
	starts []time.Duration // the durations of the restarts
	stops  []time.Duration // the durations of the ends after SIGTERM
	faults                 // of cluster; none by default
}

func (k *Kill) Define(f *rig.FlagSet) { k.defineWith(f, 100, 0, 0, ledger.DefaultMargin) }

// defineWith declares the flags with defaults that kill and cluster do not share.
func (k *Kill) defineWith(f *rig.FlagSet, kills int, gentle float64, after, margin time.Duration) {
	f.Choice(&k.profile, "profile", "echo", []string{"echo", "model", "stream"}, "echo: faults at Slack's API; model: an agent that needs time, with edits, deletes, reactions and mentions; stream: growing answers with faults, interrupts and failing runs")
	f.Number(&k.kills, "kills", kills, 0, "number of kills, divided between 1, 16 and 64 connections")
	f.Number(&k.events, "events", 30_000, 1, "largest number of messages")
	f.Number(&k.threads, "threads", 1000, slices.Max(phases()), "number of threads for each number of connections")
	f.Float(&k.rate, "rate", 0, 0, "messages per second; 0 for the profile's rate")
	f.Float(&k.gentle, "gentle", gentle, 0, "share of the kills (0 to 1) that are a SIGTERM; the daemon must end within its own time limit")
	f.Duration(&k.after, "after", after, 0, "longest time between a start and a kill; 0 for the profile's time")
	f.Duration(&k.drain, "drain", 5*time.Minute, 0, "time limit for the remaining work after the last kill")
	f.Duration(&k.margin, "margin", margin, 0, "time that the daemon has to apply an acknowledged edit or delete; longer if a node must learn of it from another node")
	f.StringVar(&k.timeout, "timeout", "", "slack.timeout in the daemon's configuration; if empty, the daemon's default")
}

func (k *Kill) Check(*rig.Bench) error {
	if k.gentle > 1 {
		return fmt.Errorf("gentle must be at most 1")
	}
	return nil
}

// profile is one kind of load.
type profile struct {
	rate   float64
	after  time.Duration // the longest life of a process
	mix    trial.Mix
	model  *trial.Behaviour // nil for the echo agent
	faults []slacktest.Chance
}

func profiles(name string) profile {
	switch name {
	case "model":
		// The daemon gives up a run after the deaths of some twenty processes in a row. A
		// process must live longer than a run, or that would happen by chance.
		long := trial.LongAnswers()
		return profile{rate: 80, after: 2 * time.Second, model: &long,
			mix: trial.Mix{Edits: 0.1, Deletes: 0.05, Reacts: 0.05, Twice: 0.02}}
	case "stream":
		slow := trial.SlowAnswers()
		return profile{rate: 15, after: 3 * time.Second, model: &slow, faults: apiFaults("chat.postMessage", "chat.update", "chat.delete",
			"chat.startStream", "chat.appendStream", "chat.stopStream", "reactions.add", "reactions.remove")}
	}
	return profile{rate: 300, after: 600 * time.Millisecond, mix: trial.Mix{Twice: 0.025, Again: 0.025}, faults: apiFaults("chat.postMessage")}
}

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
		for late := time.Second; late <= trial.Latest; late += time.Second {
			add(0.0005, slacktest.Fault{Late: late})
		}
	}
	return all
}

// phases are the numbers of connections, one after the other.
func phases() []int { return []int{1, 16, 64} }

func (k *Kill) Run(ctx context.Context, b *rig.Bench) (err error) {
	k.load = profiles(k.profile)
	k.rate, k.after = cmp.Or(k.rate, k.load.rate), cmp.Or(k.after, k.load.after)
	k.ambush.suspended = make(chan error, 1)
	slack := slacktest.Options{Plan: slacktest.Mix(b.Seed, k.load.faults...), OnCall: k.ambush.onCall}
	s := trial.Setup{Slack: slack, Timeout: k.timeout, Model: k.load.model, Streams: k.profile == "stream"}
	if k.Trial, err = trial.Start(ctx, b, "parley", s); err != nil {
		return err
	}
	k.Ledger.Margin, k.Ledger.Suspended = k.margin, k.describe
	begun := time.Now()
	for number, connections := range phases() {
		if err := k.phase(ctx, number, connections); err != nil {
			return err
		}
	}
	return k.finish(ctx, begun)
}

// phase loads the daemons over some connections while it kills them.
func (k *Kill) phase(ctx context.Context, number, connections int) error {
	load := trial.Traffic{
		Trial: k.Trial, Workers: connections, Mix: k.load.mix, Rate: k.rate, Messages: max(1, k.events/len(phases())),
		Stream: uint64(number * 1000), Conversations: ledger.NewRooms(number*k.threads, k.threads, ledger.DefaultChannels),
	}
	return trial.During(func(stop <-chan struct{}) { load.Run(ctx, stop) }, func() error { return k.harm(ctx, number) })
}

// killOne kills a random daemon and starts it again. With the profile stream, it waits
// until an answer grows on Slack.
func (k *Kill) killOne(ctx context.Context) error {
	if err := rig.Await(ctx, func() bool { return !k.Setup.Streams || len(k.API.OpenStreams()) > 0 }); err != nil {
		return err
	}
	daemon := k.Nodes.LockOne(k.Random)
	defer daemon.Unlock()
	return k.restart(ctx, daemon)
}

// restart ends a daemon by SIGKILL or SIGTERM and starts it again. During an outage of
// the store a daemon may report unfinished work when it ends, and may fail to start.
func (k *Kill) restart(ctx context.Context, daemon *rig.Child) error {
	if err := daemon.Alive(); err != nil {
		return err
	}
	begun, end, gentle := time.Now(), daemon.Kill, k.Random.Float64() < k.gentle
	if gentle {
		end = daemon.Stop
	}
	err := end()
	took := time.Since(begun)
	if err != nil && (took >= rig.StopWithin || !k.outageSince(begun)) {
		return err
	}
	if gentle {
		k.stops = append(k.stops, took)
	}
	for {
		begun := time.Now()
		took, err := daemon.Start(ctx)
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
func (k *Kill) finish(ctx context.Context, begun time.Time) error {
	loaded := figure.Round(begun)
	left := k.Settle(ctx, 0, false, k.drain)
	k.Printf("%d kills; loaded for %v, drained in %v; restarts %v\n", len(k.starts), loaded, figure.Round(begun)-loaded, figure.Summarize(k.starts))
	if len(k.stops) > 0 {
		k.Printf("%d of the kills were a SIGTERM, obeyed in %v\n", len(k.stops), figure.Summarize(k.stops))
	}
	if left != "" {
		k.Printf("not drained within %v: %s\n", k.drain, left)
	}
	if len(k.load.faults) > 0 && !wake.After(ctx, trial.Latest) { // a late effect could double a post
		return ctx.Err()
	}
	return k.Trial.Finish(k.leftovers())
}

// leftovers describes the open streams and working reactions that are left on Slack;
// empty for none.
func (k *Kill) leftovers() string {
	if !k.Setup.Streams {
		return ""
	}
	open, reactions := len(k.API.OpenStreams()), 0
	for _, m := range k.Ledger.Messages {
		reactions += len(k.API.Reactions(m.Place.Channel, m.TS))
	}
	left := fmt.Sprintf("%d streams left open, %d working reactions left", open, reactions)
	k.Printf("%s\n", left)
	if open+reactions == 0 {
		return ""
	}
	return left
}
