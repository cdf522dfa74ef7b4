package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// pace measures the post rate of one channel, which accepts one post per second.
// https://docs.slack.dev/apis/web-api/rate-limits#posting_messages
type pace struct{ threads, messages int }

func (p *pace) define(f *flagSet) {
	f.number(&p.threads, "threads", 20, 2, "number of threads in the channel")
	f.number(&p.messages, "messages", 4, 1, "number of messages in each thread")
}

func (p *pace) run(ctx context.Context, b *bench) error {
	var calls atomic.Int64
	onCall := func(call slacktest.Call) {
		if call.Method == "chat.postMessage" {
			calls.Add(1)
		}
	}
	t, err := b.startTrial(ctx, "parley", setup{slack: slacktest.Options{PostRate: 1, OnCall: onCall}, postRate: 1})
	if err != nil {
		return err
	}
	load := traffic{trial: t, each: p.messages, bare: true}
	for range p.threads {
		load.conversations = append(load.conversations, &conversation{place: place{channel: "C0PACE"}})
	}
	load.run(ctx, nil)
	total := p.threads * p.messages
	if err := t.awaitPosts(ctx, total, time.Minute+2*time.Duration(total)*time.Second); err != nil {
		return err
	}
	posts, fault := t.api.Posts(), ""
	took, refused := posts[len(posts)-1].At.Sub(posts[0].At), int(calls.Load())-len(posts)
	b.printf("%d posts in %v, %.3f a second; %d times 429\n", len(posts), took.Round(time.Millisecond), float64(len(posts)-1)/took.Seconds(), refused)
	if refused > 0 {
		fault = fmt.Sprintf("%d posts were refused with a 429", refused)
	}
	return t.finish(fault)
}
