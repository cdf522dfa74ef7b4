package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// figures are the outcome of one measurement.
type figures struct {
	rate       float64 // durable messages a second: acknowledged, and answered at the API
	ack        times
	cpu        spent // for each message
	idle, busy memory
}

func (f figures) String() string {
	return fmt.Sprintf("%7.0f messages/s   ack %v   CPU %v   idle %.0f MB   loaded %v",
		f.rate, f.ack, f.cpu, float64(f.idle.now)/1e6, f.busy)
}

// spent is the CPU time of those who share the machine.
type spent struct {
	programs time.Duration // the programs under test, together
	server   time.Duration // PostgreSQL with all it does for anybody; 0 where it can't be read, or is not there
	tool     time.Duration // this process, which is Slack
}

func (s spent) String() string {
	words := []string{millis(s.programs) + "/message"}
	if s.server > 0 {
		words = append(words, "postgres "+millis(s.server))
	}
	return strings.Join(append(words, "tool "+millis(s.tool)), ", ")
}

// since is what was spent on each of n messages after an earlier moment.
func (s spent) since(earlier spent, n int) spent {
	each := func(now, then time.Duration) time.Duration { return (now - then) / time.Duration(n) }
	return spent{each(s.programs, earlier.programs), each(s.server, earlier.server), each(s.tool, earlier.tool)}
}

func (n *nodes) spent() (s spent, err error) {
	if s.programs, err = n.cpu(); err != nil {
		return s, err
	}
	if n.database != nil {
		s.server = n.database.serverCPU()
	}
	s.tool, err = cpu(os.Getpid())
	return s, err
}

// load is one measurement.
type load struct {
	loadFlags
	api    *slacktest.Server
	nodes  *nodes
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
	if f.idle, err = l.nodes.resident(); err != nil {
		return f, err
	}
	if _, err := l.batch(ctx, l.warmUp, 0); err != nil {
		return f, err
	}
	before, err := l.nodes.spent()
	if err != nil {
		return f, err
	}
	took, err := l.batch(ctx, l.events, l.rate)
	if err != nil {
		return f, err
	}
	after, err := l.nodes.spent()
	if err != nil {
		return f, err
	}
	f.rate = float64(l.events) / took.Seconds()
	f.cpu = after.since(before, l.events)
	var all []time.Duration
	for _, acks := range l.acks {
		all = append(all, acks...)
	}
	f.ack = summarize(all)
	f.busy, err = l.nodes.resident()
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
	node    int // to whom
	message *message
	request []byte
}

// prepare makes the requests of a batch, by connection. A conversation belongs to
// one connection, so that its messages come in order; each connection goes around
// the nodes.
func (l *load) prepare(n int) [][]letter {
	now := time.Now()
	addresses := l.nodes.addresses()
	queues := make([][]letter, l.connections)
	share := l.threads / l.connections
	for i := range n {
		c := i % l.connections
		node := (i/l.connections + c) % len(addresses)
		m := l.ledger.say(l.conversations[i/l.connections%share*l.connections+c])
		queues[c] = append(queues[c], letter{i, node, m, signed(addresses[node], m.said(), 0, now)})
	}
	return queues
}

// connection sends its letters one after the other. With a rate each has its
// time, from which its acknowledgement is counted: what waits in line has waited.
func (l *load) connection(ctx context.Context, letters []letter, begun time.Time, rate float64) ([]time.Duration, error) {
	route := l.nodes.balancer().route(0)
	defer route.close()
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
		status, err := route.lines[letter.node].post(letter.request)
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
