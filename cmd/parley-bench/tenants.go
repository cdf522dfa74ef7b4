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
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/slack/slacktest"
)

// tenantsFlags are tenants' own.
type tenantsFlags struct {
	common
	rate, beside float64
	lasts        time.Duration
	threads      int
}

func (f *tenantsFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	flags.Float64Var(&f.rate, "rate", 150, "messages a second in the healthy workspace")
	flags.Float64Var(&f.beside, "beside", 150, "messages a second in each of the other two")
	flags.DurationVar(&f.lasts, "lasts", 20*time.Second, "how long each of the three measurements is")
	flags.IntVar(&f.threads, "threads", 500, "in how many threads the messages of each workspace stand")
}

// tenantLines are Slack's connections to the hook of each workspace.
const tenantLines = 16

// runTenants measures one workspace alone, beside two healthy ones, and beside two
// sick ones.
func runTenants(ctx context.Context, args []string, out io.Writer) (err error) {
	var f tenantsFlags
	if err := parseFlags("tenants", args, f.define); err != nil {
		return err
	}
	if f.rate <= 0 || f.beside <= 0 || f.lasts <= 0 || f.threads < tenantLines {
		return usageError{fmt.Errorf("rate, beside and lasts must be more than 0, threads at least %d", tenantLines)}
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	b.printf("tenants: %v messages/s in the healthy workspace, %v in each of the others, %v each\n", f.rate, f.beside, f.lasts)
	t := &tenants{bench: b, tenantsFlags: f, ledger: newLedger(echoed)}
	healthy, err := startAPI(slacktest.Options{})
	if err != nil {
		return err
	}
	defer healthy.Close()
	t.throttled, t.revoked = &neighbour{id: "throttled"}, &neighbour{id: "revoked"}
	for _, n := range []*neighbour{t.throttled, t.revoked} {
		if n.api, err = startAPI(slacktest.Options{Token: n.token(), Plan: n.plan}); err != nil {
			return err
		}
		defer n.api.Close()
	}
	if t.daemon, err = b.newDaemon("parley", settings{api: healthy}); err != nil {
		return err
	}
	defer t.daemon.end()
	t.load = &load{loadFlags: loadFlags{connections: tenantLines, threads: f.threads, wait: time.Minute}, api: healthy, nodes: alone(t.daemon), ledger: t.ledger}
	if err := t.run(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, t.daemon.logTail())
	}
	return b.judge(t.ledger, healthy, "")
}

// tenants is one run.
type tenants struct {
	*bench
	tenantsFlags
	daemon             *child
	ledger             *ledger
	load               *load // of the healthy workspace
	throttled, revoked *neighbour
}

func (t *tenants) run(ctx context.Context) error {
	for _, n := range []*neighbour{t.throttled, t.revoked} {
		if err := t.admit(n); err != nil {
			return err
		}
	}
	if _, err := t.daemon.start(ctx); err != nil {
		return err
	}
	for n := range t.threads {
		t.load.conversations = append(t.load.conversations, newConversation(n))
	}
	if _, err := t.load.batch(ctx, warmUp, 0); err != nil {
		return err
	}
	if err := t.measure(ctx, "alone", nil); err != nil {
		return err
	}
	if err := t.measure(ctx, "beside two that are well", func(time.Duration) {}); err != nil {
		return err
	}
	if err := t.measure(ctx, "beside two that are not", func(half time.Duration) {
		t.throttled.slow.Store(true)
		if pause(ctx, half) {
			t.revoked.api.Revoke()
		}
	}); err != nil {
		return err
	}
	left, err := t.backlog(ctx)
	if err != nil {
		return err
	}
	t.printf("the throttled one: %d events, %d posts, %d times 429; the revoked one: %d events, %d not taken, %d posts; %d deliveries wait\n",
		t.throttled.sent.Load(), len(t.throttled.api.Posts()), t.throttled.limited.Load(),
		t.revoked.sent.Load(), t.revoked.refused.Load(), len(t.revoked.api.Posts()), left.deliveries)
	return t.daemon.stop()
}

// backlog is what the daemon has still to do, for whichever workspace.
func (t *tenants) backlog(ctx context.Context) (backlog, error) {
	db, err := t.load.nodes.store()
	if err != nil {
		return backlog{}, err
	}
	defer db.Close()
	return readBacklog(ctx, db)
}

// admit adds the neighbour's workspace to the daemon's configuration.
func (t *tenants) admit(n *neighbour) error {
	text := fmt.Sprintf(`id: %s
platform: slack
agent: echo
slack: {mode: http, bot_token: %s, signing_secret: %s, api_url: %q}
turns: {coalesce: 0s, coalesce_max: 0s}
`, n.id, n.token(), signingSecret, n.api.URL())
	n.address = t.daemon.address
	for i := range t.threads {
		n.conversations = append(n.conversations, newConversation(i))
	}
	if err := os.WriteFile(filepath.Join(t.daemon.dir, "workspaces", n.id+".yaml"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return nil
}

// measure loads the healthy workspace, and the others with it unless nothing shall
// befall them.
func (t *tenants) measure(ctx context.Context, name string, befall func(half time.Duration)) error {
	first := len(t.ledger.messages)
	beside, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	if befall != nil {
		group.Go(func() { befall(t.lasts / 2) })
		for _, n := range []*neighbour{t.throttled, t.revoked} {
			group.Go(func() { n.load(beside, t.beside) })
		}
	}
	_, err := t.load.batch(ctx, int(t.rate*t.lasts.Seconds()), t.rate)
	cancel()
	group.Wait()
	if err != nil {
		return err
	}
	var acks []time.Duration
	for _, some := range t.load.acks {
		acks = append(acks, some...)
	}
	t.printf("%-24s  acknowledged %v   answered %v\n", name, summarize(acks), summarize(t.ledger.answered(t.load.api.Posts(), first)))
	return nil
}

// answered is how long each message waited for the first post of its answer, from that
// number on.
func (l *ledger) answered(posts []slacktest.Post, first int) (all []time.Duration) {
	seen := map[int]bool{}
	for _, post := range posts {
		id, _, _, ok := readMark(post.Shown())
		if ok && id >= first && id < len(l.messages) && !seen[id] {
			seen[id] = true
			all = append(all, post.At.Sub(l.messages[id].revisions[0].sent))
		}
	}
	return all
}

// neighbour is another workspace of the same daemon.
type neighbour struct {
	id, address   string
	api           *slacktest.Server
	conversations []*conversation

	slow          atomic.Bool // from now on it takes one post a second
	mu            sync.Mutex
	free          time.Time // when it takes the next one
	limited       atomic.Int64
	sent, refused atomic.Int64
}

// token is the bot's, since no two workspaces are one account.
func (n *neighbour) token() string { return slacktest.Token + "-" + n.id }

// plan refuses every post but one a second, once it is slow.
func (n *neighbour) plan(call slacktest.Call) slacktest.Fault {
	if call.Method != "chat.postMessage" || !n.slow.Load() {
		return slacktest.Fault{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); !now.Before(n.free) {
		n.free = now.Add(time.Second)
		return slacktest.Fault{}
	}
	n.limited.Add(1)
	return slacktest.RateLimited(time.Second)
}

// load sends messages over as many lines as the healthy workspace has, each once,
// until ctx ends.
func (n *neighbour) load(ctx context.Context, rate float64) {
	l, pacer := newLedger(echoed), newPacer(rate)
	share := len(n.conversations) / tenantLines
	var group sync.WaitGroup
	for c := range tenantLines {
		group.Go(func() {
			line := &line{address: n.address}
			defer line.close()
			for i := 0; pacer.wait(ctx); i++ {
				n.sent.Add(1)
				body := l.say(n.conversations[i%share*tenantLines+c]).said()
				status, err := line.post(signedTo("/hooks/slack/"+n.id, n.address, body, 0, time.Now()))
				if err != nil || status != http.StatusOK {
					n.refused.Add(1)
				}
			}
		})
	}
	group.Wait()
}
