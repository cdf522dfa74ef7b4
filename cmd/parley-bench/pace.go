package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// pace measures the post rate of one channel.
type pace struct {
	threads, messages int
	gap               time.Duration
}

func (p *pace) define(f *flagSet) {
	f.number(&p.threads, "threads", 20, 1, "number of threads in the channel")
	f.number(&p.messages, "messages", 4, 1, "number of messages in each thread")
	f.duration(&p.gap, "gap", 900*time.Millisecond, 0, "a post that comes sooner after the channel's last post gets a 429; the default is a second minus a tolerance for the network")
}

// A channel accepts one post per second. The limits hold for any window of this length,
// with a tolerance of 1/20.
// https://docs.slack.dev/apis/web-api/rate-limits#posting_messages
const (
	paceWindow = 20 * time.Second
	paceMost   = 21
)

func (p *pace) run(ctx context.Context, b *bench) error {
	b.printf("pace: %s, one channel, %d threads of %d messages\n", b.store(), p.threads, p.messages)
	limit := &paceLimit{gap: p.gap, last: map[string]time.Time{}}
	t, err := b.startTrial(ctx, "parley", setup{slack: slacktest.Options{Plan: limit.plan}, postRate: 1})
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
	figures := measurePace(t.api.Posts(), limit.refusals())
	b.printf("%v\n", figures)
	return t.finish(figures.faults()...)
}

// paceLimit is Slack's limit for a channel, without the short bursts that Slack allows.
type paceLimit struct {
	gap time.Duration

	mu      sync.Mutex
	last    map[string]time.Time // the last accepted post, by channel
	refused int
}

func (l *paceLimit) plan(call slacktest.Call) slacktest.Fault {
	if call.Method == "chat.postMessage" && !l.accept(call.Form.Get("channel"), time.Now()) {
		return slacktest.RateLimited(time.Second)
	}
	return slacktest.Fault{}
}

// accept reports whether the channel accepts a post that arrives now.
func (l *paceLimit) accept(channel string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, any := l.last[channel]; any && now.Sub(last) < l.gap {
		l.refused++
		return false
	}
	l.last[channel] = now
	return true
}

// refusals returns the number of refused posts.
func (l *paceLimit) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// paceFigures are the rates of some posts.
type paceFigures struct {
	posts, refused int
	took           time.Duration // from the first to the last
	smallest       time.Duration // between two posts
	most           int           // in any paceWindow
}

// measurePace measures posts that are in order of time.
func measurePace(posts []slacktest.Post, refused int) paceFigures {
	f := paceFigures{posts: len(posts), refused: refused}
	oldest := 0
	for i, post := range posts {
		for post.At.Sub(posts[oldest].At) >= paceWindow {
			oldest++
		}
		f.most = max(f.most, i-oldest+1)
		if i == 0 {
			continue
		}
		gap := post.At.Sub(posts[i-1].At)
		if i == 1 || gap < f.smallest {
			f.smallest = gap
		}
		f.took += gap
	}
	return f
}

// String counts the gaps between posts for the rate, since the first post waits for none.
func (f paceFigures) String() string {
	rate := 0.0
	if f.took > 0 {
		rate = float64(f.posts-1) / f.took.Seconds()
	}
	return fmt.Sprintf("%d posts in %v, %.3f a second; %d or fewer in any %v; smallest gap %s; %d times 429",
		f.posts, f.took.Round(time.Millisecond), rate, f.most, paceWindow, millis(f.smallest), f.refused)
}

func (f paceFigures) faults() (faults []string) {
	if f.most > paceMost {
		faults = append(faults, fmt.Sprintf("%d posts in %v, more than %d", f.most, paceWindow, paceMost))
	}
	if f.refused > 0 {
		faults = append(faults, fmt.Sprintf("%d posts were refused with a 429", f.refused))
	}
	return faults
}
