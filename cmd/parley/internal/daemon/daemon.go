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
	"parley/adapters/guard"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/files"
	"parley/assembly/workstream"
	"parley/cmd/parley/internal/boot"
	"parley/cmd/parley/internal/console"
	"parley/cmd/parley/internal/figures"
	"parley/cmd/parley/internal/operator"
	"parley/cmd/parley/internal/pipeline"
	"parley/cmd/parley/internal/traces"
	"parley/config"
	"parley/ingest"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/storage"
	"parley/ingest/schedule"
	"parley/ingest/work"
)

// Daemon is the whole of Parley in one process.
type Daemon struct {
	log         *slog.Logger
	pauses      *ingest.Pauses
	strangers   *ingest.Strangers
	shared      bool // other nodes may have the same accounts
	logging     func(config.Log)
	load        func() (*config.Config, error)
	hello       func(text string)
	notify      func(state string)
	chat        string
	open        string           // the command line that opens the console
	now         func() time.Time // of our own waits and rows
	wall        func() time.Time // for comparisons with a platform's time
	lease       time.Duration
	alertsEvery time.Duration
	metrics     *figures.Metrics
	watch       *figures.Watch

	accounts
	version     string // of the program
	workstreams *workstream.Service
	schedules   *schedule.Service
	outbox      *deliver.Outbox
	files       *attach.Store
	storage     files.Storage

	traces     *traces.Traces // nil for none
	listener   net.Listener
	server     *http.Server
	operator   *operator.Service
	console    *console.Console // nil if it has no address
	consoleURL string
	entrances  []entrance // of the operator API
	events     *operator.Log
	counts     atomic.Bool // this node tells the figures of the store
	started    *config.Config
	// operatorAddr is the address of operator.listen; nil for none.
	operatorAddr net.Addr
	node         string
	guard        *guard.Guard
	streams      *exchange.Streams
	keys         *access.KeySets
	probe        *probe
	sights       sights
	runTokens    *access.RunTokens
	offered      sync.Map // the functions offered to the models of runs, an []offer by the run's id

	platforms map[event.Platform]adapters.Platform
	connected sync.WaitGroup           // the adapters that are running
	running   map[string]chan struct{} // by workspace; closed when its last adapter has ended
	reloading chan *reloadRequest
}

// Options configure a Daemon.
type Options struct {
	Config *config.Config
	// Load reads the configuration again, for Reload.
	Load func() (*config.Config, error)
	Log  *slog.Logger
	// Logging applies the settings of a configuration to Log; nil if Log has its own.
	Logging func(config.Log)
	// Hello gets a text for each workspace that is up: the way to talk to the agent there.
	// It may be called concurrently. If it is nil, there are no such texts.
	Hello func(text string)
	// Notify gets the state for a service manager in the form of sd_notify(3): READY=1 when the daemon serves, and
	// STOPPING=1 with the time it takes at most when it begins to stop. If it is nil, the daemon notifies no manager.
	Notify func(state string)
	// Chat is the command line that talks to the built-in workspace, for Hello.
	Chat string
	// Console is the command line that opens the console, for Hello.
	Console string
	// Now is the clock of all waits and stored times. If it is nil, the clock is the store's
	// if several nodes share the store, and steady otherwise; see storage.NewSteadyClock.
	Now func() time.Time
	// Wall is the clock for comparisons with a platform's time. If it is nil, the clock is Now, or the
	// system's if Now is nil and the store has none.
	Wall func() time.Time
	// Lease is the time after which other nodes take over the threads of a dead node; 0
	// is DefaultLease.
	Lease time.Duration
	// AlertsEvery is the time between two looks for troubles; 0 is 15 seconds.
	AlertsEvery time.Duration
	// Engine is the store, which the daemon closes. If it is nil, New opens the configured
	// store.
	Engine storage.Engine
	// Platforms are the chat platforms; nil for config.Platforms.
	Platforms []adapters.Platform
	// Version is that of the program, for operators.
	Version string
}

// New opens the store and the listener. It serves nothing before Run.
func New(ctx context.Context, o Options) (*Daemon, error) {
	d := &Daemon{
		logging: o.Logging, load: o.Load, hello: o.Hello, notify: o.Notify, chat: o.Chat, open: o.Console, now: o.Now, wall: o.Wall, lease: cmp.Or(o.Lease, DefaultLease), alertsEvery: cmp.Or(o.AlertsEvery, alertsEvery),
		metrics: figures.NewMetrics(), platforms: map[event.Platform]adapters.Platform{}, running: map[string]chan struct{}{},
		reloading: make(chan *reloadRequest, 1),
		events:    new(operator.Log), started: o.Config,
	}
	d.log = slog.New(d.events.Handler(o.Log.Handler()))
	if o.Platforms == nil {
		o.Platforms = config.Platforms()
	}
	for _, p := range o.Platforms {
		d.platforms[p.Name] = p
	}
	d.guard, d.streams = guard.New(d.metrics.Reject), exchange.NewStreams()
	d.runTokens = &access.RunTokens{Key: func(ctx context.Context) ([]byte, error) { return d.Journal.Threads.Key(ctx, "runs") }}
	d.keys = access.NewKeySets(func() time.Time { return d.now() }, func(err error) { d.guard.Fault(err) })
	d.guard.Fault = func(err error) { d.log.Error("a request fails", "err", err) }
	engine, err := o.Engine, error(nil)
	if engine == nil {
		if engine, err = boot.Store(ctx, o.Config.Store, d.log, d.metrics); err != nil {
			return nil, err
		}
	}
	if err := storage.Whole(ctx, engine); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	shared, current := d.share(engine), new(pipeline.Current)
	d.node, shared.Remembered, shared.Rows, shared.Zone = shared.Node, o.Config.RememberedWindows, current.Rows, current.Zone
	j := journal.New(engine, shared)
	scheduler := work.New(engine, work.Options{
		Node: shared.Node, Lease: shared.Lease, Now: shared.Now, Log: d.log, Words: j.Heard, Missed: j.Missed,
	})
	if err := scheduler.AdjustClock(ctx); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if d.files, err = boot.Files(o.Config, j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	d.files.Refused = func(err error) { d.log.Warn("files are refused; messages go on without them", "err", err) }
	d.files.Changed, d.version = d.filesChanged, o.Version
	if err := d.openTraces(ctx, o.Config, j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	d.assemble(o.Config, current, j, scheduler)
	if err := d.configure(ctx, o.Config); err != nil {
		return nil, errors.Join(err, d.Journal.Close())
	}
	d.metrics.Stored(context.WithoutCancel(ctx), d.Journal, d.probe, &d.counts, d.configured, d.now)
	d.metrics.Connected(&d.accounts, d.streams)
	d.metrics.Remembered(d.Journal)
	d.metrics.Traced(d.traces)
	d.metrics.Describe(o.Version)
	if d.listener, err = boot.Listen(o.Config); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", boot.Hinted(err)), d.Journal.Close())
	}
	if err := d.openOperator(o.Config, o.Version); err != nil {
		d.closeOperators()
		return nil, errors.Join(err, d.listener.Close(), d.Journal.Close())
	}
	d.server = d.newServer()
	return d, nil
}

// DefaultLease is the time after which other nodes take over the threads of a dead node.
const DefaultLease = 8 * time.Second

// share returns this node's options for the journal. On a store that several nodes share,
// the node has a lease, and uses the store's clock unless Options.Now is set.
func (d *Daemon) share(engine storage.Engine) journal.Options {
	o := journal.Options{Node: uuid.NewString(), Shows: d.shows}
	if clock, shared := engine.(storage.Clock); shared {
		o.Lease, d.shared = d.lease, true
		if d.now == nil {
			d.now = clock.Now
		}
	}
	if d.wall == nil {
		d.wall = d.now
	}
	if d.now == nil {
		d.now = storage.NewSteadyClock()
	}
	if d.wall == nil {
		d.wall = time.Now
	}
	o.Now = d.now
	if o.Lease == 0 { // nodes agree on the time of a tick by the store's clock
		o.Wall = d.wall
	}
	return o
}

// assemble makes the components that a message passes through.
func (d *Daemon) assemble(c *config.Config, current *pipeline.Current, j *journal.Journal, scheduler *work.Scheduler) {
	kept := attachments{d.files, j.Files, &d.accounts, d.log}
	d.watch = &figures.Watch{Metrics: d.metrics, Steps: new(operator.Steps), Workspaces: &d.accounts, Profiles: current, Traces: d.traces, Log: d.log, Now: d.now}
	d.storage = d.newStorage(c.Attachments)
	d.pauses = ingest.NewPauses(j.Threads, d.wall)
	d.outbox = deliver.New(deliver.Parts{
		Deliveries: j.Outbox, Records: j.Recorder, Runs: j.Runs, Threads: j.Threads,
		Work: scheduler, Platform: d.platform, Files: d.files, Hook: d.hookOf, Caller: d.callerOf, Paused: d.paused, Observer: d.watch, Log: d.log, Now: d.now,
	})
	d.strangers = ingest.NewStrangers(j.Strangers, d.outbox)
	d.Pipeline = pipeline.New(pipeline.Parts{
		Current: current, Journal: j, Work: scheduler, Workspaces: &d.accounts, Names: &d.accounts, Pauses: d.pauses, Strangers: d.strangers,
		Outbox: d.outbox, Files: kept, History: d, Copies: d.outbox, Tokens: tokens{d.runTokens, d}, Observer: observer{d.watch, d}, Version: d.version, Log: d.log, Now: d.now,
	})
	d.probe = &probe{journal: j, ingest: d.Ingest}
	d.workstreams = workstream.New(workstream.Parts{
		Runs: j.Runs, Workstreams: j.Workstreams, Inbox: d.Ingest, Config: d.Workstreams, Paused: d.pauses.HasAgent,
		Files: kept, Serves: d.serves, Log: d.log, Now: d.now,
	})
	d.schedules = schedule.New(schedule.Parts{
		Schedules: j.Schedules, Threads: j.Threads,
		Inbox: d.Ingest, Places: d.outbox, Observer: d.watch, Serves: d.ticking, Zone: d.timeZone, Log: d.log, Now: j.Schedules.PlanTime,
		Paused: func(workspace, channel, parent, agent string) bool {
			return d.pauses.Of(workspace, channel, parent, agent) != nil
		},
	})
}

// configured returns the ids of the workspaces and of the agents in use.
func (d *Daemon) configured() (workspaces, agents []string) {
	c := d.Setup().Config
	for _, w := range c.Workspaces {
		workspaces = append(workspaces, w.ID)
	}
	for _, a := range c.Agents {
		agents = append(agents, a.ID)
	}
	return workspaces, agents
}

// Addr returns the address that the daemon listens on.
func (d *Daemon) Addr() net.Addr { return d.listener.Addr() }

// storeTime is the part of the shutdown time that is reserved for each of the last phases.
// They have less if the shutdown time is short, and more if earlier phases leave time.
const storeTime = time.Second

// Run serves until ctx ends or the HTTP server fails. Then it stops in named phases. Each
// phase is bounded, so that all together take no longer than the configured shutdown.
func (d *Daemon) Run(ctx context.Context) error {
	d.log.Info("parley is ready", "listen", d.Addr().String(), "workspaces", len(d.Setup().Config.Workspaces))
	base := context.WithoutCancel(ctx)
	serve, stopServing := context.WithCancel(base)
	claim, stopClaiming := context.WithCancel(base)
	send, stopSending := context.WithCancel(base)
	work, stopWork := context.WithCancelCause(base)
	defer stopWork(nil)

	var workers, senders sync.WaitGroup
	failed := make(chan error, 1)
	d.start(serve, claim, work, &workers, failed)
	d.run(&senders, "scheduler", func() error { return d.Work.Run(send) })
	d.run(&senders, "outbox", func() error { return d.outbox.Run(send, work) })
	d.tell("READY=1")

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	budget := d.Setup().Config.Shutdown
	end, last := time.Now().Add(budget), min(storeTime, budget/6)
	d.log.Info("parley stops", "within", budget.String())
	d.tell(fmt.Sprintf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%d", (budget + storeTime).Microseconds()))
	if d.phase(base, "requests", budget/4, func(ctx context.Context) error { return errors.Join(d.stopOperators(ctx), d.server.Shutdown(ctx)) }) != nil {
		err = errors.Join(err, d.server.Close()) // the remaining connections are slow or idle
	}
	err = errors.Join(err, d.phase(base, "platforms", budget/4, func(ctx context.Context) error {
		stopServing()
		return await(ctx, &d.connected)
	}))
	stopClaiming()
	finish := func(ctx context.Context) error { // the last runs' replies are sent before the outbox stops
		err := await(ctx, &workers)
		stopSending()
		return errors.Join(err, await(ctx, &senders))
	}
	if d.phase(base, "active runs and deliveries", time.Until(end.Add(-3*last)), finish) != nil {
		d.log.Info("active runs are cancelled; the next start repeats them")
		stopWork(context.Canceled)
		err = errors.Join(err, d.phase(base, "cancelled runs", last, finish))
	}
	err = errors.Join(err, d.phase(base, "agents", last, func(context.Context) error { d.CloseAgents(); return nil }))
	var sending sync.WaitGroup
	sending.Go(func() { d.closeTraces(base, max(last, time.Until(end))) })
	defer sending.Wait()
	err = errors.Join(err, d.phase(base, "threads", max(last, time.Until(end.Add(-last))), d.Work.Close))
	return errors.Join(err, d.phase(base, "store", max(last, time.Until(end)), func(context.Context) error { return d.Journal.Close() }))
}

// tell gives the service manager, if there is one, a state.
func (d *Daemon) tell(state string) {
	if d.notify != nil {
		d.notify(state)
	}
}

// start starts every goroutine of the daemon.
func (d *Daemon) start(serve, claim, work context.Context, workers *sync.WaitGroup, failed chan<- error) {
	d.run(workers, "intake", func() error { return d.Ingest.Run(claim) })
	d.run(workers, "review", func() error { return d.Ingest.Review(claim) })
	d.run(workers, "workstreams", func() error { return d.workstreams.Serve(claim) })
	d.run(workers, "schedules", func() error { return d.schedules.Serve(claim) })
	d.run(workers, "strangers", func() error { return d.Ingest.ServeStrangers(claim) })
	d.run(workers, "pauses", func() error { return d.readPauses(claim) })
	d.run(workers, "alerts", func() error { return d.watchTroubles(claim) })
	d.run(workers, "retention", func() error { return d.retain(claim) })
	d.run(workers, "index of words", func() error { return d.fillSearch(claim) })
	d.run(workers, "unfinished files", func() error { return d.sweep(claim) })
	d.startAccounts(serve)
	d.ServeAgents(claim, work, workers)
	d.run(workers, "operator API", d.serveOperators)
	if d.console != nil {
		d.sayConsole()
		workers.Go(func() { d.console.Run(claim) })
	}
	d.run(workers, "reload", func() error { return d.reloads(serve, claim, work, workers) })
	workers.Go(func() {
		if err := d.server.Serve(d.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve http: %w", err)
		}
	})
}

// run starts a component of the daemon in a group.
func (d *Daemon) run(group *sync.WaitGroup, name string, f func() error) {
	group.Go(func() {
		if err := f(); err != nil {
			d.log.Error("component ended", "component", name, "err", err)
		}
	})
}

// phase runs one step of stopping, and waits for it no longer than within.
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

// await waits for a group until ctx ends.
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
