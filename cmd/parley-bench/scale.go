package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"parley/adapters/slack/slacktest"
)

// scaleFlags are scale's own.
type scaleFlags struct {
	common
	threads, stored, pending int
	wait                     time.Duration
}

func (f *scaleFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	flags.IntVar(&f.threads, "threads", 100_000, "how many threads say one message each; 0 leaves that out")
	flags.IntVar(&f.stored, "stored", 1_000_000, "how many messages are in the large store; 0 leaves that out")
	flags.IntVar(&f.pending, "pending", 100_000, "how many envelopes wait in the large store")
	flags.DurationVar(&f.wait, "wait", 10*time.Minute, "how long to wait for the answers to what was waiting")
}

// calm is how long a process is left alone before its memory counts as idle.
const calm = 3 * time.Second

// runScale measures start-up and memory.
func runScale(ctx context.Context, args []string, out io.Writer) (err error) {
	var f scaleFlags
	if err := parseFlags("scale", args, f.define); err != nil {
		return err
	}
	if f.threads < 0 || f.stored < 0 || f.pending < 0 {
		return usageError{errors.New("threads, stored and pending must not be below 0")}
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	s := &scaling{bench: b, scaleFlags: f}
	parts := []func(context.Context) error{s.empty}
	if f.threads > 0 {
		parts = append(parts, s.manyThreads)
	}
	if f.stored > 0 {
		parts = append(parts, s.largeStore)
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// scaling is one run of scale.
type scaling struct {
	*bench
	scaleFlags
}

// empty starts the daemon on an empty store some times.
func (s *scaling) empty(ctx context.Context) error {
	return s.with("empty", func(api *slacktest.Server, daemon *child) error {
		var starts []time.Duration
		for range 5 {
			took, idle, err := s.startIdle(ctx, daemon)
			if err != nil {
				return err
			}
			starts = append(starts, took)
			s.printf("empty store:     ready in %s, idle %v\n", millis(took), idle)
			if err := daemon.stop(); err != nil {
				return err
			}
		}
		s.printf("empty store:     ready %v\n", summarize(starts))
		return nil
	})
}

// startIdle starts the daemon and leaves it alone.
func (s *scaling) startIdle(ctx context.Context, daemon *child) (took time.Duration, idle memory, err error) {
	if took, err = daemon.start(ctx); err != nil {
		return took, idle, err
	}
	if !pause(ctx, calm) {
		return took, idle, ctx.Err()
	}
	idle, err = resident(daemon.pid())
	return took, idle, err
}

// manyThreads has one message answered in each of many threads.
func (s *scaling) manyThreads(ctx context.Context) error {
	return s.with("threads", func(api *slacktest.Server, daemon *child) error {
		if _, err := daemon.start(ctx); err != nil {
			return err
		}
		flags := loadFlags{connections: 16, events: s.threads, threads: max(16, s.threads), warmUp: warmUp, wait: s.wait, calm: calm}
		l := &load{loadFlags: flags, api: api, nodes: alone(daemon), ledger: newLedger(echoed)}
		measured, err := l.run(ctx)
		if err != nil {
			return err
		}
		s.printf("%d threads: %v\n", s.threads, measured)
		if !pause(ctx, 10*calm) {
			return ctx.Err()
		}
		idle, err := resident(daemon.pid())
		if err != nil {
			return err
		}
		s.printf("%d threads: %v later %v\n", s.threads, 10*calm, idle)
		return s.verdict(l.ledger, api, daemon)
	})
}

// largeStore starts the daemon on a store that holds much, and where much waits.
func (s *scaling) largeStore(ctx context.Context) error {
	return s.with("large", func(api *slacktest.Server, daemon *child) error {
		l := newLedger(echoed)
		begun := time.Now()
		if err := fill(ctx, daemon.storePath(), s.stored, s.pending, l); err != nil {
			return err
		}
		s.printf("large store:     filled in %v\n", time.Since(begun).Round(time.Millisecond))
		took, err := daemon.start(ctx)
		if err != nil {
			return err
		}
		ready, begun := took, time.Now()
		waiting, cancel := context.WithTimeout(ctx, s.wait)
		defer cancel()
		if _, err := api.Await(waiting, s.pending); err != nil {
			return fmt.Errorf("%w\n%s", err, daemon.logTail())
		}
		worked := time.Since(begun)
		loaded, err := resident(daemon.pid())
		if err != nil {
			return err
		}
		s.printf("%d stored, %d pending: ready in %s; all answered %v after that, %v\n",
			s.stored, s.pending, millis(ready), worked.Round(time.Millisecond), loaded)
		if err := s.verdict(l, api, daemon); err != nil {
			return err
		}
		took, idle, err := s.startIdle(ctx, daemon)
		if err != nil {
			return err
		}
		s.printf("%d stored, none pending: ready in %s, idle %v\n", s.stored+2*s.pending, millis(took), idle)
		return daemon.stop()
	})
}

// with gives a part an API and a daemon of its own.
func (s *scaling) with(name string, part func(*slacktest.Server, *child) error) error {
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		return err
	}
	defer api.Close()
	daemon, err := s.newDaemon(name, settings{api: api})
	if err != nil {
		return err
	}
	defer daemon.end()
	return part(api, daemon)
}

// verdict stops the daemon and checks the ledger.
func (s *scaling) verdict(l *ledger, api *slacktest.Server, daemon *child) error {
	if err := daemon.stop(); err != nil {
		return err
	}
	if verdict := l.check(api.Posts()); verdict.total() > 0 {
		s.printf("%v", verdict)
		return errViolated
	}
	return nil
}
