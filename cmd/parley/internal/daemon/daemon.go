// Package daemon wires the parts into one process and owns their lifetime.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/sqlite"
	"parley/ingest/work"
)

// Daemon is the whole of Parley in one process.
type Daemon struct {
	log     *slog.Logger
	level   *slog.LevelVar
	load    func() (*config.Config, error)
	now     func() time.Time
	lease   time.Duration
	metrics *metrics

	journal *journal.Journal
	work    *work.Scheduler
	ingest  *ingest.Ingest
	turns   *turn.Runner
	outbox  *deliver.Outbox
	files   *attach.Store

	current  atomic.Pointer[setup]
	listener net.Listener
	server   *http.Server

	platforms map[event.Platform]func(config.Workspace) adapters.Adapter
	accounts  sync.WaitGroup           // the adapters that are running
	running   map[string]chan struct{} // by workspace; closed when its last adapter has ended
	lanes     map[string]bool
	reloading chan struct{}
	opened    chan greeting
}

// Options are what a Daemon is made of.
type Options struct {
	Config *config.Config
	// Load reads the configuration again, for Reload.
	Load  func() (*config.Config, error)
	Log   *slog.Logger
	Level *slog.LevelVar // of Log
	// Now is the clock of everything that waits for a time or is stored with
	// one; nil is time.Now.
	Now func() time.Time
	// Lease is how long a node that has died keeps its threads from the others; 0 is
	// DefaultLease.
	Lease time.Duration
	// Engine is the store, which the daemon closes; nil opens the configured one.
	Engine journal.Engine
	// Platforms makes each platform's adapter; nil is Platforms.
	Platforms map[event.Platform]func(config.Workspace) adapters.Adapter
}

// New opens the store and the listener. It serves nothing before Run.
func New(ctx context.Context, o Options) (*Daemon, error) {
	d := &Daemon{log: o.Log, level: o.Level, load: o.Load, now: o.Now, lease: cmp.Or(o.Lease, DefaultLease), metrics: newMetrics(), platforms: o.Platforms,
		running: map[string]chan struct{}{}, lanes: map[string]bool{}, reloading: make(chan struct{}, 1), opened: make(chan greeting, maxGreetings)}
	if d.platforms == nil {
		d.platforms = Platforms()
	}
	if err := checkListen(o.Config); err != nil {
		return nil, err
	}
	engine, err := o.Engine, error(nil)
	if engine == nil {
		if engine, err = openStore(ctx, o.Config.Store, d.log, d.metrics); err != nil {
			return nil, err
		}
	}
	if err := journal.Whole(ctx, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	shared := d.share(engine)
	d.journal = journal.New(engine, shared)
	d.work = work.New(engine, work.Options{Node: shared.Node, Lease: shared.Lease, Now: shared.Now, Log: d.log})
	if d.files, err = newFiles(o.Config, d.journal); err != nil {
		return nil, errors.Join(err, d.journal.Close())
	}
	d.assemble()
	if err := d.configure(ctx, o.Config); err != nil {
		return nil, errors.Join(err, d.journal.Close())
	}
	d.metrics.backlog(context.WithoutCancel(ctx), d.journal)
	if d.listener, err = net.Listen("tcp", o.Config.Listen); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), d.journal.Close())
	}
	d.server = d.newServer()
	return d, nil
}

// openStore opens the configured engine.
func openStore(ctx context.Context, store config.Store, log *slog.Logger, m *metrics) (journal.Engine, error) {
	if store.Engine == config.Postgres {
		return postgres.Open(ctx, postgres.Options{
			URL: store.URL.Reveal(), ListenURL: store.ListenURL.Reveal(), Connections: store.Connections, Log: log, Recorder: m,
		})
	}
	return sqlite.Open(ctx, store.Path, sqlite.WithLogger(log), sqlite.WithRecorder(m))
}

// DefaultLease is how long a node that has died keeps its threads from the others.
const DefaultLease = 8 * time.Second

// share says how this process shares the journal with others: on a store for
// several nodes it goes by the store's time, unless it was given a clock.
func (d *Daemon) share(engine journal.Engine) journal.Options {
	o := journal.Options{Node: uuid.NewString()}
	if clock, shared := engine.(journal.Clock); shared {
		o.Lease = d.lease
		if d.now == nil {
			d.now = clock.Now
		}
	}
	if d.now == nil {
		d.now = time.Now
	}
	o.Now = d.now
	return o
}

// checkListen refuses to offer the local workspace, which asks for no token, to
// other machines.
func checkListen(c *config.Config) error {
	for _, w := range c.Workspaces {
		host, _, err := net.SplitHostPort(c.Listen)
		if ip := net.ParseIP(host); w.Local && (err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback())) {
			return fmt.Errorf("listen: %s is not a loopback address, as the local workspace needs: it asks for no token", c.Listen)
		}
	}
	return nil
}

// assemble makes the parts that a message passes through.
func (d *Daemon) assemble() {
	d.outbox = deliver.New(deliver.Parts{
		Journal: d.journal, Work: d.work, Platform: d.platform, Files: d.files, Observer: d.metrics, Log: d.log, Now: d.now,
	})
	d.turns = turn.New(turn.Parts{
		Journal: d.journal, Work: d.work, Outbox: d.outbox, Files: d, History: d, Observer: d.metrics, Log: d.log, Now: d.now,
		Settings: d.turnSettings, Profile: d.profile,
	})
	d.ingest = ingest.New(ingest.Parts{
		Journal: d.journal, Work: d.work, Turns: d.turns, Observer: doorman{d.metrics, d.opened}, Log: d.log, Now: d.now,
	})
}

// Addr is the address that the daemon listens on.
func (d *Daemon) Addr() net.Addr { return d.listener.Addr() }

// storeTime is how much of the time for stopping is kept for each of the last phases;
// less where there is little. What the phases before have left is theirs too.
const storeTime = time.Second

// Run serves until ctx ends or the server fails; then it stops in named phases,
// each bounded, so that the whole takes no longer than the configured shutdown.
func (d *Daemon) Run(ctx context.Context) error {
	d.log.Info("parley is ready", "listen", d.Addr().String(), "workspaces", len(d.current.Load().config.Workspaces))
	base := context.WithoutCancel(ctx)
	serve, stopServing := context.WithCancel(base)
	claim, stopClaiming := context.WithCancel(base)
	send, stopSending := context.WithCancel(base)
	work, stopWork := context.WithCancelCause(base)
	defer stopWork(nil)

	var workers, senders sync.WaitGroup
	failed := make(chan error, 1)
	d.start(serve, claim, work, &workers, failed)
	d.run(&senders, "scheduler", func() error { return d.work.Run(send) })
	d.run(&senders, "outbox", func() error { return d.outbox.Run(send, work) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	budget := d.current.Load().config.Shutdown
	end, last := time.Now().Add(budget), min(storeTime, budget/6)
	d.log.Info("parley stops", "within", budget.String())
	if d.phase(base, "requests", budget/4, func(ctx context.Context) error { return d.server.Shutdown(ctx) }) != nil {
		err = errors.Join(err, d.server.Close()) // who is still connected is slow, or idle
	}
	err = errors.Join(err, d.phase(base, "platforms", budget/4, func(ctx context.Context) error {
		stopServing()
		return await(ctx, &d.accounts)
	}))
	stopClaiming()
	finish := func(ctx context.Context) error { // the replies of the last runs are sent too
		err := await(ctx, &workers)
		stopSending()
		return errors.Join(err, await(ctx, &senders))
	}
	if d.phase(base, "runs and posts under way", time.Until(end.Add(-3*last)), finish) != nil {
		d.log.Info("runs that are still going on are asked again at the next start")
		stopWork(context.Canceled)
		err = errors.Join(err, d.phase(base, "what was cut short", last, finish))
	}
	err = errors.Join(err, d.phase(base, "threads", max(last, time.Until(end.Add(-last))), d.work.Close))
	return errors.Join(err, d.phase(base, "store", max(last, time.Until(end)), func(context.Context) error { return d.journal.Close() }))
}

// start begins everything that works on its own.
func (d *Daemon) start(serve, claim, work context.Context, workers *sync.WaitGroup, failed chan<- error) {
	d.run(workers, "intake", func() error { return d.ingest.Run(claim) })
	d.run(workers, "review", func() error { return d.ingest.Review(claim) })
	d.run(workers, "retention", func() error { return d.retain(claim) })
	d.run(workers, "unfinished files", func() error { return d.sweep(claim) })
	for range greeters {
		d.run(workers, "greetings", func() error { return d.greet(serve) })
	}
	d.startAccounts(serve)
	d.startLanes(claim, work, workers)
	d.run(workers, "reload", func() error { return d.reloads(serve, claim, work, workers) })
	workers.Go(func() {
		if err := d.server.Serve(d.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve http: %w", err)
		}
	})
}

// run starts a part of the daemon in a group.
func (d *Daemon) run(group *sync.WaitGroup, name string, f func() error) {
	group.Go(func() {
		if err := f(); err != nil {
			d.log.Error("a part ended", "part", name, "err", err)
		}
	})
}

// phase is one step of stopping, within its time.
func (d *Daemon) phase(ctx context.Context, name string, within time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, max(within, 10*time.Millisecond))
	defer cancel()
	begun := time.Now()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	d.log.Debug("stopped", "phase", name, "took", time.Since(begun), "err", err)
	if err != nil {
		return fmt.Errorf("stop %s: %w", name, err)
	}
	return nil
}

// await waits for a group, as long as ctx allows.
func await(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
