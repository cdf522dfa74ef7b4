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

// slowFlags are slow's own.
type slowFlags struct {
	common
	nodesFlags
	threads int
	agent   time.Duration
	wait    time.Duration
}

func (f *slowFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	f.nodesFlags.define(flags)
	flags.IntVar(&f.threads, "threads", 60, "how many threads ask one message each, all at once")
	flags.DurationVar(&f.agent, "agent", 2*time.Second, "how long the agent takes to answer")
	flags.DurationVar(&f.wait, "wait", 5*time.Minute, "how long to wait for the last reply")
}

// runSlow measures how long many threads wait for a slow agent.
func runSlow(ctx context.Context, args []string, out io.Writer) (err error) {
	var f slowFlags
	if err := parseFlags("slow", args, f.define); err != nil {
		return err
	}
	if f.threads < 1 || f.agent < 0 {
		return usageError{errors.New("threads must be at least 1, agent not below 0")}
	}
	if err := f.validate(); err != nil {
		return err
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		return err
	}
	defer api.Close()
	l := newLedger(nil)
	model, err := startModel(l, briefly(f.agent))
	if err != nil {
		return err
	}
	defer model.close()
	b.printf("slow: %s, %d threads at once, the agent takes %v\n", f.words(), f.threads, f.agent)
	if err := b.slow(ctx, f, l, settings{api: api, modelURL: model.url}); err != nil {
		return err
	}
	posts := api.Posts()
	waits := l.waits(posts)
	b.printf("the last reply came %s after the first message was sent; each after its own: %v\n", millis(l.span(posts)), summarize(waits))
	if verdict := l.check(posts); verdict.total() > 0 {
		b.printf("%v", verdict)
		return errViolated
	}
	return nil
}

// slow has the daemons answer all threads.
func (b *bench) slow(ctx context.Context, f slowFlags, l *ledger, s settings) error {
	n, err := b.newDaemons(ctx, "parley", f.nodesFlags, s)
	if err != nil {
		return err
	}
	defer n.end()
	if err := n.start(ctx); err != nil {
		return err
	}
	conversations := make([]*conversation, f.threads)
	for i := range conversations {
		conversations[i] = newConversation(i)
	}
	patience, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	chatter(patience, l, n.balancer(), conversations, 1)
	if _, err := s.api.Await(patience, f.threads); err != nil {
		return fmt.Errorf("%w\n%s", err, n.logTail())
	}
	return n.stop()
}

// span is the time from the first message sent to the last post.
func (l *ledger) span(posts []slacktest.Post) time.Duration {
	first := l.messages[0].revisions[0].sent
	for _, m := range l.messages {
		if sent := m.revisions[0].sent; sent.Before(first) {
			first = sent
		}
	}
	return posts[len(posts)-1].At.Sub(first)
}

// waits are how long after its message each post came.
func (l *ledger) waits(posts []slacktest.Post) (waits []time.Duration) {
	for _, post := range posts {
		if id, _, _, ok := readMark(post.Shown()); ok && id < len(l.messages) {
			waits = append(waits, post.At.Sub(l.messages[id].revisions[0].sent))
		}
	}
	return waits
}
