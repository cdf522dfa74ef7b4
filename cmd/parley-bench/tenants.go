package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// tenants measures one workspace alone, beside two healthy workspaces, and beside a
// throttled and a revoked one.
type tenants struct {
	rate, beside float64
	lasts        time.Duration
	threads      int
}

// tenantConnections is the number of Slack's connections to each workspace's hook.
const tenantConnections = 16

func (t *tenants) define(f *flagSet) {
	f.float(&t.rate, "rate", 150, 0.001, "messages per second in the healthy workspace")
	f.float(&t.beside, "beside", 150, 0.001, "messages per second in each of the other two")
	f.duration(&t.lasts, "lasts", 20*time.Second, time.Millisecond, "duration of each of the three measurements")
	f.number(&t.threads, "threads", 500, tenantConnections, "number of threads in each workspace")
}

func (t *tenants) run(ctx context.Context, b *bench) error {
	throttled, revoked := &neighbour{id: "throttled"}, &neighbour{id: "revoked"}
	both := []*neighbour{throttled, revoked}
	l, err := t.start(ctx, b, "parley", setup{}, both)
	if err != nil {
		return err
	}
	fail := func() {
		throttled.slow.Store(true)
		if wake.After(ctx, t.lasts/2) {
			revoked.api.Revoke()
		}
	}
	if _, err := t.measure(ctx, l, "alone", nil, func() {}); err != nil {
		return err
	}
	if _, err := t.measure(ctx, l, "beside two healthy ones", both, func() {}); err != nil {
		return err
	}
	if _, err := t.measure(ctx, l, "beside two failing ones", both, fail); err != nil {
		return err
	}
	b.printf("the throttled one: %d events, %d posts, %d times 429; the revoked one: %d events, %d not accepted, %d posts\n",
		throttled.sent, len(throttled.api.Posts()), throttled.throttled.Load(), revoked.sent, revoked.refused, len(revoked.api.Posts()))
	b.printf("left in the store: %s\n", l.settle(ctx, 0, true, time.Second))
	return l.finish()
}

// start starts a daemon with the healthy workspace and its neighbours, and warms it up.
func (t *tenants) start(ctx context.Context, b *bench, name string, s setup, neighbours []*neighbour) (*loader, error) {
	healthy, err := b.newTrial(ctx, name, s)
	if err != nil {
		return nil, err
	}
	for _, n := range neighbours {
		if err := n.prepare(healthy); err != nil {
			return nil, err
		}
	}
	if err := healthy.start(ctx); err != nil {
		return nil, err
	}
	l := newLoader(healthy, loading{connections: tenantConnections, threads: t.threads, wait: time.Minute})
	_, err = l.batch(ctx, defaultWarmUp, 0)
	return l, err
}

// measure loads the healthy workspace and its neighbours, while fail runs. It returns the times
// of the healthy workspace's answers.
func (t *tenants) measure(ctx context.Context, l *loader, name string, neighbours []*neighbour, fail func()) (answered times, err error) {
	first := len(l.ledger.messages)
	load := func(stop <-chan struct{}) {
		var group sync.WaitGroup
		group.Go(fail)
		for _, n := range neighbours {
			group.Go(func() { n.load(ctx, l, t.beside, stop) })
		}
		group.Wait()
	}
	err = during(load, func() error {
		_, err := l.batch(ctx, int(t.rate*t.lasts.Seconds()), t.rate)
		return err
	})
	answered = summarize(slices.Collect(maps.Values(l.ledger.waits(l.api.Posts()[first:])))) // a bare message has one post
	l.printf("%-24s  acknowledged %v   answered %v\n", name, l.ackTimes(first), answered)
	return answered, err
}

// neighbour is another workspace of the same daemon.
type neighbour struct {
	id, agent     string
	api           *slacktest.Server
	slow          atomic.Bool  // from now on it accepts one post per second
	accepted      atomic.Int64 // the time of the last post since then, in Unix nanoseconds
	throttled     atomic.Int64 // the posts that came too soon
	sent, refused int
}

// token returns the bot's token, since two workspaces must not be one account.
func (n *neighbour) token() string { return slacktest.Token + "-" + n.id }

func (n *neighbour) path() string { return "/hooks/slack/" + n.id }

// prepare starts the neighbour's Slack and adds the workspace to the daemon's
// configuration.
func (n *neighbour) prepare(t *trial) (err error) {
	once := slacktest.SocketOptions{Repeat: []time.Duration{}}
	if n.api, err = t.startSlack(slacktest.Options{Token: n.token(), Plan: n.plan, SocketOptions: once}); err != nil {
		return err
	}
	client := &http.Client{Transport: newTransport(t.nodes.addresses())}
	n.api.SetHook(slacktest.Hook{URL: "http://daemon" + n.path(), Secret: signingSecret, Client: client})
	return t.nodes.all[0].write("workspaces/"+n.id+".yaml", fmt.Sprintf(`id: %s
platform: slack
agent: %s
slack: {mode: http, bot_token: %s, signing_secret: %s, api_url: %q}
turns: {coalesce: 0s, coalesce_max: 0s}
`, n.id, cmp.Or(n.agent, "echo"), n.token(), signingSecret, n.api.URL()))
}

// plan refuses all posts but one per second after the workspace became slow.
func (n *neighbour) plan(call slacktest.Call) slacktest.Fault {
	if call.Method != "chat.postMessage" || !n.slow.Load() {
		return slacktest.Fault{}
	}
	now, last := time.Now().UnixNano(), n.accepted.Load()
	if now-last >= int64(time.Second) && n.accepted.CompareAndSwap(last, now) {
		return slacktest.Fault{}
	}
	n.throttled.Add(1)
	return slacktest.RateLimited(time.Second)
}

// load sends messages, each once, until stop is closed. It uses as many threads and
// connections as the healthy workspace.
func (n *neighbour) load(ctx context.Context, l *loader, rate float64, stop <-chan struct{}) {
	own := &trial{bench: l.bench, api: n.api, ledger: newLedger()}
	traffic{trial: own, conversations: newConversations(l.threads), workers: l.connections, rate: rate, bare: true}.run(ctx, stop)
	once, _, none := own.ledger.acks(0)
	n.sent, n.refused = n.sent+len(once)+none, n.refused+none
}
