package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"parley/adapters/slack/slacktest"
)

// loadFlags are load's own.
type loadFlags struct {
	common
	nodesFlags
	connections, events, threads, rounds, warmUp int
	rate                                         float64
	only                                         string
	wait, calm                                   time.Duration
}

func (f *loadFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	f.nodesFlags.define(flags)
	flags.IntVar(&f.connections, "connections", 16, "how many connections Slack has to the hook; each sends its next event when the last was answered")
	flags.IntVar(&f.events, "events", 20_000, "how many messages are measured")
	flags.IntVar(&f.threads, "threads", 1000, "in how many threads they stand")
	flags.IntVar(&f.warmUp, "warmup", warmUp, "how many messages go before the measured ones")
	flags.IntVar(&f.rounds, "rounds", 1, "how often floor and daemon are measured, in turns; the medians are compared")
	flags.Float64Var(&f.rate, "rate", 0, "messages a second, whether or not the last was answered; 0 for as many as the connections carry")
	flags.StringVar(&f.only, "only", "", "measure only this one: floor or parley")
	flags.DurationVar(&f.wait, "wait", 5*time.Minute, "how long to wait for the last reply of a measurement")
	flags.DurationVar(&f.calm, "calm", time.Second, "how long a program is left alone before its memory counts as idle")
}

func (f *loadFlags) validate() error {
	if f.connections < 1 || f.events < 1 || f.rounds < 1 || f.warmUp < 1 || f.rate < 0 {
		return usageError{errors.New("connections, events, warmup and rounds must be at least 1, rate not below 0")}
	}
	if f.only != "" && !slices.Contains(targets(), f.only) {
		return usageError{fmt.Errorf("only must be one of %v", targets())}
	}
	if f.threads < f.connections {
		return usageError{errors.New("threads must not be fewer than connections: a thread's messages come over one connection, in order")}
	}
	return f.nodesFlags.validate()
}

// warmUp messages open files and connections, and resolve the speakers' names,
// before anything is measured.
const warmUp = 500

// runLoad measures the daemon beside the floor.
func runLoad(ctx context.Context, args []string, out io.Writer) (err error) {
	var f loadFlags
	if err := parseFlags("load", args, f.define); err != nil {
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
	b.printf("load: %d connections, %d messages in %d threads, rate %v, %s, %d cores for all\n",
		f.connections, f.events, f.threads, f.rate, f.words(), runtime.NumCPU())
	if f.postgres != "" {
		b.printf("postgres is the whole server's CPU, whoever uses it; the tool is Slack; each floor has as many connections as a daemon\n")
	}
	rates := map[string][]float64{}
	for round := range f.rounds {
		for _, target := range targets() {
			if f.only != "" && f.only != target {
				continue
			}
			figures, err := b.measure(ctx, target, round, f)
			if err != nil {
				return fmt.Errorf("measure %s: %w", target, err)
			}
			b.printf("%-7s %v\n", target, figures)
			rates[target] = append(rates[target], figures.rate)
		}
	}
	if f.only == "" && f.rate == 0 {
		b.printf("ratio   %.2f of the floor's messages/s\n", median(rates[theDaemon])/median(rates[theFloor]))
	}
	return nil
}

// The programs under test.
const (
	theFloor  = "floor"
	theDaemon = "parley"
)

// targets are the programs under test, in the order of a round.
func targets() []string { return []string{theFloor, theDaemon} }

// measure starts a program for this and loads it.
func (b *bench) measure(ctx context.Context, target string, round int, f loadFlags) (figures, error) {
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		return figures{}, err
	}
	defer api.Close()
	start := b.newDaemons
	if target == theFloor {
		start = b.newFloors
	}
	n, err := start(ctx, fmt.Sprintf("%s%d", target, round), f.nodesFlags, settings{api: api})
	if err != nil {
		return figures{}, err
	}
	defer n.end()
	if err := n.start(ctx); err != nil {
		return figures{}, err
	}
	l := &load{loadFlags: f, api: api, nodes: n, ledger: newLedger(echoed)}
	measured, err := l.run(ctx)
	if err != nil {
		return figures{}, fmt.Errorf("%w\n%s", err, n.logTail())
	}
	if err := n.stop(); err != nil {
		return figures{}, err
	}
	verdict := l.ledger.check(api.Posts())
	if target == theFloor {
		delete(verdict.counts, disordered) // it promises no order
	}
	if verdict.total() > 0 {
		b.printf("%v", verdict)
		return figures{}, errViolated
	}
	return measured, nil
}
