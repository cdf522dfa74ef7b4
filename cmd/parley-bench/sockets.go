package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// socketsFlags are sockets' own.
type socketsFlags struct {
	common
	nodesFlags
	disconnects, sockets, threads, channels int
	rate                                    float64
	every, drain                            time.Duration
	seed                                    uint64
}

func (f *socketsFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	f.nodesFlags.define(flags)
	flags.IntVar(&f.disconnects, "disconnects", 100, "how often sockets are taken away, in a random order of all the ways")
	flags.IntVar(&f.sockets, "sockets", 2, "how many the daemon keeps open")
	flags.IntVar(&f.threads, "threads", 32, "how many conversations go on, every fourth a direct message")
	flags.IntVar(&f.channels, "channels", 6, "in how many channels the others stand")
	flags.Float64Var(&f.rate, "rate", 20, "messages a second, of all conversations together")
	flags.DurationVar(&f.every, "every", 2*time.Second, "the mean time between two disconnects")
	flags.DurationVar(&f.drain, "drain", 10*time.Minute, "how long to wait for what is left: Slack's last repetition comes after six minutes")
	flags.Uint64Var(&f.seed, "seed", 0, "of everything that is random; 0 for a new one, which is printed")
}

func (f *socketsFlags) validate() error {
	if f.disconnects < 0 || f.sockets < 1 || f.threads < 1 || f.channels < 1 || f.rate <= 0 || f.every <= 0 {
		return usageError{errors.New("sockets, threads, channels, rate and every must be more than 0, disconnects not below it")}
	}
	if f.seed == 0 {
		f.seed = rand.Uint64()
	}
	return f.nodesFlags.validate()
}

// disconnect is a way in which sockets go. It returns how many it took.
type disconnect struct {
	name string
	do   func(*slacktest.Server) int
}

// opening is the method by which a socket begins.
const opening = "apps.connections.open"

// disconnects are all the ways, in the shares in which they come. A half-open socket
// stands last, since it takes the daemon half a minute to notice.
func disconnects() []disconnect {
	warned := disconnect{"warning", func(s *slacktest.Server) int { return s.Disconnect("warning", 1) }}
	refreshed := disconnect{"refresh_requested", func(s *slacktest.Server) int { return s.Disconnect("refresh_requested", 1) }}
	cut := disconnect{"cut", func(s *slacktest.Server) int { return s.Cut(1) }}
	refused := disconnect{"cut, and 503 for the next", func(s *slacktest.Server) int {
		return scripted(s, 1, slacktest.Fault{Status: http.StatusServiceUnavailable})
	}}
	limited := disconnect{"cut, and 429 for the next", func(s *slacktest.Server) int {
		return scripted(s, 1, slacktest.RateLimited(time.Second))
	}}
	allRefreshed := disconnect{"all refreshed", func(s *slacktest.Server) int { return s.Disconnect("refresh_requested", slacktest.All) }}
	allCut := disconnect{"all cut, and 503 for as many", func(s *slacktest.Server) int {
		return scripted(s, slacktest.All, slacktest.Fault{Status: http.StatusServiceUnavailable})
	}}
	muted := disconnect{"half-open", func(s *slacktest.Server) int { return s.Mute(1) }}
	return []disconnect{warned, cut, refreshed, allCut, limited, allRefreshed, refused, warned, refreshed, cut,
		warned, refreshed, cut, warned, refreshed, refused, warned, refreshed, muted, muted}
}

// scripted cuts so many sockets, and lets as many that follow fail. Where there is
// none to cut nothing more shall fail, or the daemon might never have one again.
func scripted(s *slacktest.Server, n int, fault slacktest.Fault) int {
	open, _ := s.Sockets()
	for range min(n, open) {
		s.Script(opening, fault)
	}
	return s.Cut(min(n, open))
}

// runSockets takes the daemon's sockets away under load, and keeps the ledger.
func runSockets(ctx context.Context, args []string, out io.Writer) (err error) {
	var f socketsFlags
	if err := parseFlags("sockets", args, f.define); err != nil {
		return err
	}
	if err := f.validate(); err != nil {
		return err
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	b.printf("sockets: %d of them, %s, %d disconnects, %v messages/s in %d conversations, seed %d\n",
		f.sockets, f.words(), f.disconnects, f.rate, f.threads, f.seed)
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		return err
	}
	defer api.Close()
	n, err := b.newDaemons(ctx, "parley", f.nodesFlags, settings{api: api, sockets: f.sockets})
	if err != nil {
		return err
	}
	defer n.end()
	run := &severing{bench: b, socketsFlags: f, api: api, nodes: n,
		random: rand.New(rand.NewPCG(f.seed, 0)), counts: map[string]int{},
		talk: &talk{api: api, ledger: newLedger(echoed)}}
	if err := run.run(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, n.logTail())
	}
	return nil
}

// severing is one run of sockets.
type severing struct {
	*bench
	socketsFlags
	api    *slacktest.Server
	nodes  *nodes
	random *rand.Rand
	talk   *talk
	counts map[string]int // disconnects, by way
}

func (s *severing) run(ctx context.Context) error {
	if err := s.nodes.start(ctx); err != nil {
		return err
	}
	if err := s.api.AwaitFresh(ctx, s.sockets); err != nil {
		return err
	}
	var conversations []*conversation
	for n := range s.threads {
		conversations = append(conversations, room(n, s.channels))
	}
	stop, begun := make(chan struct{}), time.Now()
	var group sync.WaitGroup
	group.Go(func() {
		s.talk.goOn(ctx, conversations, newPacer(s.rate), stop, func() bool { return true })
	})
	var dark darkness
	group.Go(func() { dark = watchSockets(s.api, stop) })
	err := s.sever(ctx)
	close(stop)
	loaded := time.Since(begun)
	group.Wait()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	return s.settle(ctx, begun, loaded, dark)
}

// sever takes sockets away, in a random order of all the ways.
func (s *severing) sever(ctx context.Context) error {
	ways := disconnects()
	var plan []disconnect
	for n := range s.disconnects {
		plan = append(plan, ways[n%len(ways)])
	}
	s.random.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	for _, way := range plan {
		if !pause(ctx, time.Duration(s.random.Int64N(int64(2*s.every)))) {
			return ctx.Err()
		}
		for way.do(s.api) == 0 { // there is none at the moment
			if err := s.nodes.alive(); err != nil {
				return err
			}
			if !pause(ctx, 100*time.Millisecond) {
				return ctx.Err()
			}
		}
		s.counts[way.name]++
	}
	return s.api.AwaitFresh(ctx, 1)
}

// settle waits for what is left, and checks the ledger.
func (s *severing) settle(ctx context.Context, begun time.Time, loaded time.Duration, dark darkness) error {
	left, err := s.talk.caughtUp(ctx, s.nodes, s.drain)
	if err != nil {
		return err
	}
	settled := time.Since(begun)
	if !pause(ctx, lateDouble) {
		return ctx.Err()
	}
	if err := s.nodes.stop(); err != nil {
		return err
	}
	var ways []string
	for _, name := range slices.Sorted(maps.Keys(s.counts)) {
		ways = append(ways, fmt.Sprintf("%d %s", s.counts[name], name))
	}
	_, most := s.api.Sockets()
	t := s.talk
	s.printf("disconnects: %s; most sockets at once %d; %v\n", strings.Join(ways, ", "), most, dark)
	s.printf("loaded for %v, settled %v later; %d events came at the first attempt, %d at a later one, %d at none, %d found no socket; %d messages came by no event\n",
		loaded.Round(time.Millisecond), (settled - loaded).Round(time.Millisecond), len(t.heard), len(t.late), s.api.Unacked(), s.api.Missed(), t.unread)
	s.printf("acknowledged at the first attempt %v; with those that Slack sent again %v\n", summarize(t.heard), summarize(append(t.late, t.heard...)))
	return s.judge(t.ledger, s.api, left)
}

// lateDouble is how long a second answer might be in coming, once all is settled.
const lateDouble = 3 * time.Second

// judge prints the ledger's verdict, and what was left undone.
func (b *bench) judge(l *ledger, api *slacktest.Server, left string) error {
	verdict := l.check(api.Posts())
	b.printf("%v", verdict)
	if left != "" {
		b.printf("left undone: %s\n", left)
	}
	if verdict.total() > 0 || left != "" {
		return errViolated
	}
	return nil
}

// darkness is the time in which no socket was open at all.
type darkness struct {
	times        int
	sum, longest time.Duration
}

func (d darkness) String() string {
	return fmt.Sprintf("none open %d times, for %v, at the longest %v", d.times, d.sum.Round(time.Millisecond), d.longest.Round(time.Millisecond))
}

// watchSockets looks every few milliseconds, until stop is closed.
func watchSockets(api *slacktest.Server, stop <-chan struct{}) (d darkness) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	var since time.Time
	for over := false; ; {
		open, _ := api.Sockets()
		switch now := time.Now(); {
		case open == 0 && since.IsZero():
			since = now
			d.times++
		case !since.IsZero() && (open > 0 || over):
			d.sum += now.Sub(since)
			d.longest = max(d.longest, now.Sub(since))
			since = time.Time{}
		}
		if over {
			return d
		}
		select {
		case <-stop:
			over = true
		case <-ticker.C:
		}
	}
}
