package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/adapters/slack/slacktest"
)

// freezeFlags are freeze's own.
type freezeFlags struct {
	common
	connections int
	rate        float64
	hold, drain time.Duration
}

func (f *freezeFlags) define(flags *flag.FlagSet) {
	f.common.define(flags)
	flags.IntVar(&f.connections, "connections", 64, "how many connections Slack has to the hook")
	flags.Float64Var(&f.rate, "rate", 300, "messages a second")
	flags.DurationVar(&f.hold, "hold", 10*time.Second, "how long the store is locked")
	flags.DurationVar(&f.drain, "drain", time.Minute, "how long to wait for what is left at the end")
}

const (
	// moreMemory is what the daemon may hold of those who wait, in bytes.
	moreMemory = 50e6
	// thawWithin is how soon a message must be taken after the store is free.
	thawWithin = 3 * time.Second
	// around is how long the load lasts before the freeze, and after it.
	around = 3 * time.Second
)

// runFreeze locks the daemon's store under load.
func runFreeze(ctx context.Context, args []string, out io.Writer) (err error) {
	var f freezeFlags
	if err := parseFlags("freeze", args, f.define); err != nil {
		return err
	}
	if f.connections < 1 || f.rate <= 0 || f.hold <= 0 {
		return usageError{errors.New("connections, rate and hold must be more than 0")}
	}
	b, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	b.printf("freeze: %v under %v messages/s over %d connections\n", f.hold, f.rate, f.connections)
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		return err
	}
	defer api.Close()
	z := &freezing{bench: b, freezeFlags: f, api: api, ledger: newLedger(echoed)}
	if z.daemon, err = b.newDaemon("parley", settings{api: api}); err != nil {
		return err
	}
	defer z.daemon.end()
	if _, err := z.daemon.start(ctx); err != nil {
		return err
	}
	return z.run(ctx)
}

// freezing is one run of freeze.
type freezing struct {
	*bench
	freezeFlags
	api    *slacktest.Server
	ledger *ledger
	daemon *child

	mu       sync.Mutex
	attempts []attempt

	frozen, thawed time.Time
	before, most   memory
}

func (z *freezing) observe(a attempt) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.attempts = append(z.attempts, a)
}

func (z *freezing) run(ctx context.Context) error {
	pacer, balancer := newPacer(z.rate), newBalancer(z.daemon.address)
	senders := make([]*sender, z.connections)
	for c := range senders {
		var own []*conversation
		for n := range 10 {
			own = append(own, newConversation(c*10+n))
		}
		senders[c] = newSender(z.ledger, balancer, own, mix{}, pacer, 1, uint64(c))
		senders[c].observe = z.observe
	}
	stop := make(chan struct{})
	wait := fleet(ctx, senders, stop, func() bool { return true })
	err := z.freeze(ctx)
	close(stop)
	wait()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	left, err := drain(ctx, alone(z.daemon), z.drain)
	if err != nil {
		return err
	}
	if !left.empty() {
		z.printf("not drained within %v: %v\n", z.drain, left)
	}
	if err := z.daemon.stop(); err != nil {
		return err
	}
	return z.report()
}

// freeze loads the daemon, holds its store's write lock for a while, and loads it
// for as long again.
func (z *freezing) freeze(ctx context.Context) (err error) {
	db, err := openStore(z.daemon.storePath())
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("open the daemon's store: %w", err)
	}
	defer conn.Close()
	pause(ctx, around)
	if z.before, err = resident(z.daemon.pid()); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("lock the daemon's store: %w", err)
	}
	z.frozen = time.Now()
	err = errors.Join(z.watch(ctx), unlock(ctx, conn))
	z.thawed = time.Now()
	pause(ctx, around)
	return err
}

func unlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return err
}

// watch watches the daemon's memory until the time is over.
func (z *freezing) watch(ctx context.Context) error {
	for time.Since(z.frozen) < z.hold {
		now, err := resident(z.daemon.pid())
		if err != nil {
			return err
		}
		if now.now > z.most.now {
			z.most = now
		}
		if !pause(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	status, err := z.daemon.get(ctx, "/readyz")
	z.printf("/readyz at the end of the freeze: %d\n", status)
	return err
}

// report says how the daemon bore it, and what of that breaks a promise.
func (z *freezing) report() error {
	a := sift(z.attempts, z.frozen, z.thawed)
	more := z.most.now - z.before.now
	z.printf("answers while frozen, by status: %v; %v\n", a.statuses, a.during)
	z.printf("memory before %.0f MB, %.0f MB more while frozen; first message taken %v after the thaw\n",
		float64(z.before.now)/1e6, float64(more)/1e6, a.thaw.Round(time.Millisecond))
	verdict := z.ledger.check(z.api.Posts())
	z.printf("%v", verdict)
	faults := a.faults()
	if more > moreMemory {
		faults = append(faults, fmt.Sprintf("%.0f MB more memory while the store was frozen", float64(more)/1e6))
	}
	if verdict.total() > 0 {
		faults = append(faults, "the ledger is not clean")
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", errViolated, strings.Join(faults, "; "))
	}
	return nil
}

// answers are what the events of a freeze got.
type answers struct {
	statuses map[int]int // of the events that were sent and answered while the store was frozen
	during   times       // that those took
	longest  time.Duration
	thaw     time.Duration // until the first message was taken again
}

// never is longer than any run.
const never = 24 * time.Hour

func sift(attempts []attempt, frozen, thawed time.Time) answers {
	a := answers{statuses: map[int]int{}, thaw: never}
	var during []time.Duration
	for _, try := range attempts {
		took := try.ended.Sub(try.sent)
		a.longest = max(a.longest, took)
		if try.sent.After(frozen) && try.ended.Before(thawed) {
			a.statuses[try.status]++
			during = append(during, took)
		}
		if try.status == http.StatusOK && try.ended.After(thawed) {
			a.thaw = min(a.thaw, try.ended.Sub(thawed))
		}
	}
	a.during = summarize(during)
	return a
}

// faults are what should not have been.
func (a answers) faults() (faults []string) {
	refused := a.statuses[http.StatusServiceUnavailable]
	if refused == 0 || len(a.statuses) != 1 {
		faults = append(faults, fmt.Sprintf("answers while the store was frozen, by status, should all be 503: %v", a.statuses))
	}
	if a.longest >= slackPatience {
		faults = append(faults, fmt.Sprintf("an answer took %v", a.longest))
	}
	if a.thaw > thawWithin {
		faults = append(faults, fmt.Sprintf("no message was taken within %v of the thaw", thawWithin))
	}
	return faults
}
