package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// agents measures what the daemon adds to the first token of each kind of agent, and kills it
// while it asks them.
type agents struct {
	kind, part           string
	kills, samples, most int
	rate                 float64
}

func (a *agents) define(f *flagSet) {
	kinds := []string{"all"}
	for _, d := range dialects() {
		kinds = append(kinds, d.kind)
	}
	f.choice(&a.kind, "kind", "all", kinds, "the kind of agent")
	f.choice(&a.part, "part", "all", []string{"all", "tokens", "kills"}, "tokens: the delay of the first token; kills: kill -9 under load")
	f.number(&a.kills, "kills", 20, 1, "number of kills for each kind")
	f.number(&a.samples, "samples", 200, 1, "least number of answers for each number of streams")
	f.number(&a.most, "streams", 500, 1, "largest number of streams at once")
	f.float(&a.rate, "rate", 30, 0.001, "messages per second under the kills")
}

func (a *agents) run(ctx context.Context, b *bench) error {
	for _, d := range dialects() {
		if a.kind != "all" && a.kind != d.kind {
			continue
		}
		var err error
		if a.part != "kills" {
			err = a.tokens(ctx, b, d)
		}
		if err == nil && a.part != "tokens" {
			err = a.underKills(ctx, b, d)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", d.kind, err)
		}
	}
	return nil
}

// The delay that the daemon may add to the first token.
const mostP50, mostP99 = 5 * time.Millisecond, 25 * time.Millisecond

// tokens measures the delay from the agent's first token to the first call of Slack, at 1, 50
// and 500 streams at once.
func (a *agents) tokens(ctx context.Context, b *bench, d dialect) error {
	var slow []string
	for _, n := range []int{1, 50, 500} {
		if n > a.most {
			continue
		}
		delays, err := a.firstTokens(ctx, b, d, n)
		if err != nil {
			return err
		}
		b.printf("%-9s  %3d streams at once  from the agent's first token to the first call of Slack: %v\n", d.kind, n, delays)
		if delays.p50 > mostP50 || delays.p99 > mostP99 {
			slow = append(slow, fmt.Sprintf("%d streams: p50 must be at most %v, p99 at most %v", n, mostP50, mostP99))
		}
	}
	return violations(slow)
}

// between is the time between two first tokens, and opening the time that the daemon has to
// open one stream before the first of them.
const between, opening = 20 * time.Millisecond, 10 * time.Millisecond

// firstTokens measures the delays while n answers stream. Their first tokens come one after
// the other, when all streams are open, and no answer ends before the last of them. It leaves
// out direct chats, since a chat is one place for several messages.
func (a *agents) firstTokens(ctx context.Context, b *bench, d dialect, n int) (times, error) {
	var tokens, calls sync.Map // the first times, by message and by place
	answers := shortAnswers(0)
	answers.dialect = d
	answers.first = func(id int) time.Duration {
		return 300*time.Millisecond + time.Duration(n)*opening + time.Duration(id%n)*between
	}
	answers.duration = func(id int) time.Duration { return 2*time.Second + time.Duration(n-id%n)*between }
	answers.onFirstToken = func(id int) { tokens.Store(id, time.Now()) }
	onCall := func(call slacktest.Call) {
		if call.Method == "chat.startStream" || call.Method == "chat.postMessage" {
			calls.LoadOrStore(place{call.Form.Get("channel"), call.Form.Get("thread_ts")}, time.Now())
		}
	}
	s := setup{model: &answers, streams: true, runs: n, slack: slacktest.Options{OnCall: onCall}}
	t, err := b.startTrial(ctx, fmt.Sprintf("tokens-%s-%d", d.kind, n), s)
	if err != nil {
		return times{}, err
	}
	for sent := 0; sent < a.samples; sent += n {
		traffic{trial: t, conversations: newConversations(n), each: 1, bare: true}.run(ctx, nil)
		if left := t.settle(ctx, sent+n, false, time.Minute); left != "" {
			return times{}, fmt.Errorf("not answered: %s\n%s", left, t.nodes.logTail())
		}
	}
	var all []time.Duration
	for _, m := range t.ledger.messages {
		token, said := tokens.Load(m.id)
		call, shown := calls.Load(m.place)
		if said && shown && !m.direct() {
			all = append(all, call.(time.Time).Sub(token.(time.Time)))
		}
	}
	return summarize(all), t.finish()
}

// underKills kills the daemon under load. No run may be asked twice, except one whose request
// a kill ended, and each reply must be there once.
func (a *agents) underKills(ctx context.Context, b *bench, d dialect) error {
	answers := longAnswers()
	answers.dialect = d
	t, err := b.startTrial(ctx, "kills-"+d.kind, setup{model: &answers})
	if err != nil {
		return err
	}
	load := traffic{trial: t, conversations: newConversations(100), workers: 16, rate: a.rate}
	err = during(func(stop <-chan struct{}) { load.run(ctx, stop) }, func() error {
		return repeat(ctx, b.random, a.kills, 2*time.Second, func() error { return t.nodes.crashOne(ctx, b.random) })
	})
	if err != nil {
		return err
	}
	left := t.settle(ctx, 0, false, 2*time.Minute)
	deaths := t.nodes.deaths
	faults, repeated := t.ledger.askedTwice(deaths)
	b.printf("%-9s  %d kills, %d requests, %d of them again after a kill, %d without a reason\n", d.kind, len(deaths), len(t.ledger.requests), repeated, len(faults))
	return t.finish(append(faults, left)...)
}
