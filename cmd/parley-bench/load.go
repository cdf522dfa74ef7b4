package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// loadFlags are load's own.
type loadFlags struct {
	common
	connections, events, threads, rounds, warmUp int
	rate                                         float64
	only                                         string
	wait, calm                                   time.Duration
}

func (f *loadFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
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
	return nil
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
	defer func() { err = errors.Join(err, b.close()) }()
	b.printf("load: %d connections, %d messages in %d threads, rate %v\n", f.connections, f.events, f.threads, f.rate)
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

// figures are the outcome of one measurement.
type figures struct {
	rate       float64 // durable messages a second: acknowledged, and answered at the API
	ack        times
	cpu        time.Duration // of the program under test, for each message
	idle, busy memory
}

func (f figures) String() string {
	return fmt.Sprintf("%7.0f messages/s   ack %v   CPU %s/message   idle %.0f MB   loaded %v",
		f.rate, f.ack, millis(f.cpu), float64(f.idle.now)/1e6, f.busy)
}

// newFloor is the floor in a directory of the run.
func (b *bench) newFloor(name string, s settings) (*child, error) {
	dir := filepath.Join(b.work, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the floor's directory: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the floor: %w", err)
	}
	c, err := newChild(self, dir)
	if err != nil {
		return nil, err
	}
	c.args = []string{"floor", "-listen", c.address, "-api", s.apiURL, "-store", c.storePath()}
	return c, nil
}

// measure starts a program for this and loads it.
func (b *bench) measure(ctx context.Context, target string, round int, f loadFlags) (figures, error) {
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		return figures{}, err
	}
	defer api.Close()
	start := b.newDaemon
	if target == theFloor {
		start = b.newFloor
	}
	c, err := start(fmt.Sprintf("%s%d", target, round), settings{apiURL: api.URL()})
	if err != nil {
		return figures{}, err
	}
	defer c.end()
	if _, err := c.start(ctx); err != nil {
		return figures{}, err
	}
	l := &load{loadFlags: f, api: api, child: c, ledger: newLedger(echoed)}
	measured, err := l.run(ctx)
	if err != nil {
		return figures{}, fmt.Errorf("%w\n%s", err, c.logTail())
	}
	if err := c.stop(); err != nil {
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

// load is one measurement.
type load struct {
	loadFlags
	api    *slacktest.Server
	child  *child
	ledger *ledger

	conversations []*conversation
	acks          [][]time.Duration // by connection
}

func (l *load) run(ctx context.Context) (f figures, err error) {
	for n := range l.threads {
		l.conversations = append(l.conversations, newConversation(n))
	}
	if !pause(ctx, l.calm) {
		return f, ctx.Err()
	}
	if f.idle, err = resident(l.child.pid()); err != nil {
		return f, err
	}
	if _, err := l.batch(ctx, l.warmUp, 0); err != nil {
		return f, err
	}
	before, err := cpu(l.child.pid())
	if err != nil {
		return f, err
	}
	took, err := l.batch(ctx, l.events, l.rate)
	if err != nil {
		return f, err
	}
	after, err := cpu(l.child.pid())
	if err != nil {
		return f, err
	}
	f.rate = float64(l.events) / took.Seconds()
	f.cpu = (after - before) / time.Duration(l.events)
	var all []time.Duration
	for _, acks := range l.acks {
		all = append(all, acks...)
	}
	f.ack = summarize(all)
	f.busy, err = resident(l.child.pid())
	return f, err
}

// batch sends n messages, waits until each has its reply, and returns how long
// that took.
func (l *load) batch(ctx context.Context, n int, rate float64) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	queues := l.prepare(n)
	l.acks = make([][]time.Duration, l.connections)
	errs := make([]error, l.connections)
	begun := time.Now()
	var group sync.WaitGroup
	for c := range l.connections {
		group.Go(func() { l.acks[c], errs[c] = l.connection(ctx, queues[c], begun, rate) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	posts, err := l.api.Await(ctx, len(l.ledger.messages))
	if err != nil {
		return 0, err
	}
	return posts[len(posts)-1].At.Sub(begun), nil
}

// letter is a message ready to be sent; n is its number in the batch.
type letter struct {
	n       int
	message *message
	request []byte
}

// prepare makes the requests of a batch, by connection. A conversation belongs to
// one connection, so that its messages come in order.
func (l *load) prepare(n int) [][]letter {
	now := time.Now()
	queues := make([][]letter, l.connections)
	share := l.threads / l.connections
	for i := range n {
		c := i % l.connections
		m := l.ledger.say(l.conversations[i/l.connections%share*l.connections+c])
		queues[c] = append(queues[c], letter{i, m, signed(l.child.address, m.said(), 0, now)})
	}
	return queues
}

// connection sends its letters one after the other. With a rate each has its
// time, from which its acknowledgement is counted: what waits in line has waited.
func (l *load) connection(ctx context.Context, letters []letter, begun time.Time, rate float64) ([]time.Duration, error) {
	line := &line{address: l.child.address}
	defer line.close()
	acks := make([]time.Duration, 0, len(letters))
	for _, letter := range letters {
		from := time.Now()
		if rate > 0 {
			from = begun.Add(time.Duration(float64(letter.n) / rate * float64(time.Second)))
			if !pause(ctx, time.Until(from)) {
				return acks, ctx.Err()
			}
		}
		letter.message.revisions[0].sent = from
		status, err := line.post(letter.request)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		if err != nil {
			return acks, fmt.Errorf("send an event: %w", err)
		}
		letter.message.revisions[0].acked = time.Now()
		acks = append(acks, time.Since(from))
	}
	return acks, nil
}
