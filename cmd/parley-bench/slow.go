package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// slow measures the waiting times of many threads with a slow agent.
type slow struct {
	threads     int
	agent, wait time.Duration
	stream      bool
}

func (s *slow) define(f *flagSet) {
	f.number(&s.threads, "threads", 60, 1, "number of threads, each with one message, all at once")
	f.duration(&s.agent, "agent", 2*time.Second, 0, "time that the agent needs for an answer")
	f.BoolVar(&s.stream, "stream", false, "Slack shows the answers while they grow; measures the delay of their first token")
	f.duration(&s.wait, "wait", 5*time.Minute, 0, "time limit for the last reply")
}

func (s *slow) run(ctx context.Context, b *bench) error {
	model := shortAnswers(s.agent)
	t, delays, err := b.startTimed(ctx, "parley", setup{model: &model, streams: s.stream})
	if err != nil {
		return err
	}
	begun := time.Now()
	traffic{trial: t, conversations: newConversations(s.threads), each: 1, bare: true}.run(ctx, nil)
	if err := t.awaitPosts(ctx, s.threads, s.wait); err != nil {
		return err
	}
	if err := await(ctx, func() bool { return len(t.api.OpenStreams()) == 0 }); err != nil {
		return err
	}
	posts := t.api.Posts()
	b.printf("the last reply came %s after the first message; each reply after its own message: %v\n",
		millis(posts[len(posts)-1].At.Sub(begun)), summarize(slices.Collect(maps.Values(t.ledger.waits(posts)))))
	if s.stream {
		b.printf("from the model's first token to the first call of Slack: %v\n", delays())
	}
	return t.finish()
}

// startTimed starts a trial. delays returns the times from the model's first token for a message
// to the first call of Slack in its thread. It leaves out direct chats, since a chat is one place
// for several messages.
func (b *bench) startTimed(ctx context.Context, name string, s setup) (t *trial, delays func() times, err error) {
	var tokens, calls sync.Map // the first times, by message and by place
	s.model.onFirstToken = func(id int) { tokens.Store(id, time.Now()) }
	s.slack.OnCall = func(call slacktest.Call) {
		if call.Method == "chat.startStream" || call.Method == "chat.postMessage" {
			calls.LoadOrStore(place{call.Form.Get("channel"), call.Form.Get("thread_ts")}, time.Now())
		}
	}
	t, err = b.startTrial(ctx, name, s)
	return t, func() times {
		var all []time.Duration
		for _, m := range t.ledger.messages {
			token, said := tokens.Load(m.id)
			call, shown := calls.Load(m.place)
			if said && shown && !m.direct() {
				all = append(all, call.(time.Time).Sub(token.(time.Time)))
			}
		}
		return summarize(all)
	}, err
}
