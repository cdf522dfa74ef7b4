package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"sync"
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
	streams bool
}

func (f *slowFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	f.nodesFlags.define(flags)
	flags.IntVar(&f.threads, "threads", 60, "how many threads ask one message each, all at once")
	flags.DurationVar(&f.agent, "agent", 2*time.Second, "how long the agent takes to answer")
	flags.BoolVar(&f.streams, "stream", false, "show the answers while they grow, and measure how soon they are begun")
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
	var shown firsts
	api, err := startAPI(slacktest.Options{OnCall: shown.called})
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
	model.begins = func(id int) { shown.begun.Store(l.messages[id].place, time.Now()) }
	b.printf("slow: %s, %d threads at once, the agent takes %v\n", f.words(), f.threads, f.agent)
	if err := b.slow(ctx, f, l, settings{api: api, modelURL: model.url, streams: f.streams}); err != nil {
		return err
	}
	posts := api.Posts()
	waits := l.waits(posts)
	b.printf("the last reply came %s after the first message was sent; each after its own: %v\n", millis(l.span(posts)), summarize(waits))
	if f.streams {
		b.printf("from the model's first token to the first call of Slack: %v\n", summarize(shown.waits()))
	}
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
	for len(s.api.OpenStreams()) > 0 && pause(patience, time.Millisecond) {
		continue
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

// firsts measures how soon answers are begun on Slack.
type firsts struct {
	begun sync.Map // by place: when the model wrote its first token
	calls sync.Map // by place: when Slack was first called to show it
}

// called notes the first call that shows something.
func (f *firsts) called(call slacktest.Call) {
	if call.Method == "chat.startStream" || call.Method == "chat.postMessage" {
		f.calls.LoadOrStore(place{call.Form.Get("channel"), call.Form.Get("thread_ts")}, time.Now())
	}
}

func (f *firsts) waits() (waits []time.Duration) {
	f.calls.Range(func(where, at any) bool {
		if begun, ok := f.begun.Load(where); ok {
			waits = append(waits, at.(time.Time).Sub(begun.(time.Time)))
		}
		return true
	})
	return waits
}
