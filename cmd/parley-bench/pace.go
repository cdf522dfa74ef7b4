package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// paceFlags are pace's own.
type paceFlags struct {
	common
	nodesFlags
	threads, messages int
	gap               time.Duration
}

func (f *paceFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	f.nodesFlags.define(flags)
	flags.IntVar(&f.threads, "threads", 20, "how many threads of one channel are answered")
	flags.IntVar(&f.messages, "messages", 4, "how many messages each of them holds")
	flags.DurationVar(&f.gap, "gap", 900*time.Millisecond, "a post that comes sooner after the last one of its channel gets a 429; a second, less what the network may take off it")
}

// What a channel may take: one post a second, with a tolerance of a twentieth, over
// any time of this length.
// https://docs.slack.dev/apis/web-api/rate-limits#posting_messages
const (
	paceWindow = 20 * time.Second
	paceMost   = 21
)

// runPace holds the daemons to the pace that one channel takes.
func runPace(ctx context.Context, args []string, out io.Writer) (err error) {
	f := paceFlags{nodesFlags: nodesFlags{daemons: 4}}
	if err := parseFlags("pace", args, f.define); err != nil {
		return err
	}
	if f.threads < 1 || f.messages < 1 || f.gap < 0 {
		return usageError{errors.New("threads and messages must be at least 1, gap not below 0")}
	}
	if err := f.validate(); err != nil {
		return err
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	b.printf("pace: %s, one channel, %d threads of %d messages\n", f.words(), f.threads, f.messages)
	rule := &paceRule{gap: f.gap, last: map[string]time.Time{}}
	api, err := startAPI(slacktest.Options{Plan: rule.plan})
	if err != nil {
		return err
	}
	defer api.Close()
	l, err := b.pace(ctx, f, api)
	if err != nil {
		return err
	}
	posts := api.Posts()
	verdict := l.check(posts)
	b.printf("%v", verdict)
	figures := paceOf(posts, rule.count())
	b.printf("%v\n", figures)
	faults := figures.faults()
	if verdict.total() > 0 {
		faults = append(faults, "the ledger is not clean")
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", errViolated, strings.Join(faults, "; "))
	}
	return nil
}

// pace has the daemons answer all messages.
func (b *bench) pace(ctx context.Context, f paceFlags, api *slacktest.Server) (*ledger, error) {
	n, err := b.newDaemons(ctx, "parley", f.nodesFlags, settings{api: api, postRate: 1})
	if err != nil {
		return nil, err
	}
	defer n.end()
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	l := newLedger(echoed)
	conversations := make([]*conversation, f.threads)
	for i := range conversations {
		conversations[i] = &conversation{place: place{channel: "C0PACE"}}
	}
	chatter(ctx, l, n.balancer(), conversations, f.messages)
	total := f.threads * f.messages
	patience, cancel := context.WithTimeout(ctx, time.Minute+2*time.Duration(total)*time.Second)
	defer cancel()
	if _, err := api.Await(patience, total); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, n.logTail())
	}
	return l, n.stop()
}

// paceRule is what Slack grants a channel, without the short bursts that it bears.
type paceRule struct {
	gap time.Duration

	mu      sync.Mutex
	last    map[string]time.Time // the last post that was taken, by channel
	refused int
}

func (r *paceRule) plan(call slacktest.Call) slacktest.Fault {
	if call.Method == "chat.postMessage" && !r.take(call.Form.Get("channel"), time.Now()) {
		return slacktest.RateLimited(time.Second)
	}
	return slacktest.Fault{}
}

// take says whether a post that arrives now is taken.
func (r *paceRule) take(channel string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, any := r.last[channel]; any && now.Sub(last) < r.gap {
		r.refused++
		return false
	}
	r.last[channel] = now
	return true
}

func (r *paceRule) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// paceFigures are how fast posts came.
type paceFigures struct {
	posts    int
	took     time.Duration // from the first to the last
	smallest time.Duration // between two
	most     int           // in any paceWindow
	refused  int
}

// paceOf measures posts that are in order.
func paceOf(posts []slacktest.Post, refused int) paceFigures {
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
		f.took = post.At.Sub(posts[0].At)
	}
	return f
}

// rate is posts a second: of the gaps between them, since the first post waits
// for none.
func (f paceFigures) rate() float64 {
	if f.took == 0 {
		return 0
	}
	return float64(f.posts-1) / f.took.Seconds()
}

func (f paceFigures) String() string {
	return fmt.Sprintf("%d posts in %v, %.3f a second; at the most %d in %v; smallest gap %s; %d times 429",
		f.posts, f.took.Round(time.Millisecond), f.rate(), f.most, paceWindow, millis(f.smallest), f.refused)
}

// faults are what should not have been.
func (f paceFigures) faults() (faults []string) {
	if f.most > paceMost {
		faults = append(faults, fmt.Sprintf("%d posts in %v, more than %d", f.most, paceWindow, paceMost))
	}
	if f.refused > 0 {
		faults = append(faults, fmt.Sprintf("%d posts were refused with a 429", f.refused))
	}
	return faults
}
